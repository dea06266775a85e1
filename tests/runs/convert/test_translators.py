"""Translators of others, as they lie on the hub: our tokens are those that their own library writes."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file as read_file
from safetensors.torch import save_file

import regard
from regard.config import merge, recipe_from
from regard.runs.conversion import export_model, import_model
from regard.runs.convert.hub import Fields
from regard.runs.convert.hub_import import read_hub_model
from regard.runs.convert.layouts import FORMATS
from regard.runs.convert.translator_files import language_tokens, translator_contents
from regard.runs.plan import Teacher
from regard.system.errors import RegardError, UsageError
from regard.tasks.protocols import InputFiles
from regard.tasks.text.preparation import Pretrained
from regard.tasks.training.base import ProductPaths
from regard.tasks.translation.training import TranslationJob
from regard.tasks.translation.translator import Translation
from regard.text.language_tokens import LanguageTokens
from regard.text.tokenizers.sentencepiece import SentencePieceTokenizer, fairseq_names
from regard.text.tokenizers.vocabulary import Vocabularies
from tests.refusals import refused
from tests.runs.convert import translator_folders as folders

KINDS = ["marian", "separate", "m2m", "nllb", "mbart"]
MORE = folders.sentences(300, seed=9)
TEXTS = MORE[:25]


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    """A model of theirs, ours, and the ids that each reads and begins with."""
    folder = tmp_path_factory.mktemp(request.param)
    peer = folders.write(request.param, folder)
    import_model(folder, folder / "ours")
    return request.param, peer, folder


def frame(kind: str, translator: Translation, texts: list[str] = TEXTS) -> tuple[list[list[int]], list[int]]:
    """What is read, and what begins the translation."""
    read = [[id for id, _, _ in translator.reads(text)[1]] for text in texts]
    return read, list(translator.symbols.prefix)


def written(peer, read: list[list[int]], prefix: list[int], beams: int, **rules) -> list[list[int]]:
    """Their search, texts of one length at once, scores not divided by lengths unless told; what follows the start."""
    found: dict[int, list[int]] = {}
    start = [peer.config.decoder_start_token_id, *prefix]
    for length in sorted(set(map(len, read))):
        numbers = [number for number, ids in enumerate(read) if len(ids) == length]
        out = peer.generate(
            torch.tensor([read[number] for number in numbers]),
            decoder_input_ids=torch.tensor([start] * len(numbers)),
            num_beams=beams,
            max_new_tokens=length + 5 - len(prefix),
            do_sample=False,
            **{"length_penalty": 0.0, "early_stopping": "never" if beams > 1 else False, **rules},
        )
        found.update(zip(numbers, map(ended, out[:, len(start) :].tolist(), [peer] * len(numbers)), strict=True))
    return [found[number] for number in range(len(read))]


def ended(ids: list[int], peer) -> list[int]:
    """The ids to the first end; what fills them up behind it is of the longest beside it."""
    end = peer.config.eos_token_id
    return ids[: ids.index(end) + 1] if end in ids else ids


NAMES = ("zh-CN", "cmn_Hans", "ca_valencia", "sr@latin", "d\x1b[31mu\x07", "\ud800", "a b", "x" * 41, "de\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_label_that_is_no_code_names_no_language(name: str) -> None:
    found = language_tokens(["</s>", ">>deu<<", f">>{name}<<"], begins=False)
    assert found.ids == {"deu": 1, **({name: 2} if name in NAMES[:4] else {})}


@pytest.mark.one_of(2)
def test_other_ends_and_starts_are_refused_by_name(both, tmp_path: Path) -> None:
    kind, peer, folder = both
    shutil.copytree(folder, given := tmp_path / "theirs", ignore=shutil.ignore_patterns("ours"))
    end, search = peer.config.eos_token_id, "generation_config.json"

    def write(file: str, name: str, value: object) -> Path:
        (given / file).write_text(json.dumps({**json.loads((folder / file).read_text()), name: value}))
        return given / file

    odd: list[tuple[str, str, object]] = [("config.json", "eos_token_id", 1), (search, "eos_token_id", [end, 1])]
    odd += [("config.json", "forced_eos_token_id", 10**9), (search, "forced_eos_token_id", "</s>")]
    odd += [(search, "decoder_start_token_id", 5)] if kind in ("marian", "separate") else []
    odd += [("config.json", "pad_token_id", 5)] if kind in ("m2m", "nllb") else []
    for file, name, value in odd:
        with refused(RegardError, write(file, name, value), name):
            read_hub_model(given)
        shutil.copy(folder / file, given)
    write("config.json", "eos_token_id", None)
    write(search, "eos_token_id", [end])
    read_hub_model(given)


@pytest.mark.one_of(2)
def test_other_shapes_and_numbers_are_refused_by_name(both, tmp_path: Path) -> None:
    """Where ours is only a part of it, too; and the vocabulary of each side must be there."""
    kind, peer, folder = both
    shutil.copytree(folder, given := tmp_path / "theirs", ignore=shutil.ignore_patterns("ours"))
    (given / "pytorch_model.bin").unlink()
    tensors = {name: tensor.clone() for name, tensor in peer.state_dict().items()}
    layer, table = "model.encoder.layers.0.self_attn", "model.encoder.embed_tokens.weight"
    odd = {f"{layer}.k_proj.weight": 1, f"{layer}.out_proj.weight": 0, f"{layer}.out_proj.bias": 0}
    changed = {name: torch.cat([tensors[name]] * 2, axis) for name, axis in odd.items()}
    changed |= {bias: tensors[bias][:, :0] for bias in ("final_logits_bias",) if bias in tensors}
    for name, tensor in [*changed.items(), (table, tensors[table].to(torch.float8_e4m3fn))]:
        save_file({**tensors, name: tensor.contiguous()}, given / "model.safetensors")
        with refused(RegardError, None, name):
            read_hub_model(given)
    if kind == "separate":
        (given / "target_vocab.json").unlink()
        save_file(tensors, given / "model.safetensors")
        with refused(RegardError, given / "target_vocab.json"):
            read_hub_model(given)


def test_a_translation_starts_as_in_their_search() -> None:
    said = {"vocab_size": 9, "decoder_start_token_id": 2}
    for search, start in (({}, 2), ({"decoder_start_token_id": 5}, 5)):
        assert FORMATS["m2m_100"].start_row(Fields(said, "a"), Fields(search, "b")) == start


@pytest.mark.one_of(3)
def test_a_model_of_others_goes_on_in_small_steps(both) -> None:
    _, _, folder = both
    training = Pretrained.load(folder / "ours").values("translation")["training"]
    assert training["rate"] == pytest.approx(0.0256 / 16)
    assert training["label_smoothing"] == 0.0


@pytest.mark.one_of(6, minutes=0.05)
@pytest.mark.parametrize("texts", [TEXTS, pytest.param(MORE, marks=pytest.mark.long(2))], ids=["25", "300"])
@pytest.mark.parametrize("beam", [1, 4])
def test_tokens_are_those_of_transformers(both, beam: int, texts: list[str]) -> None:
    """Of the engine, and of the model itself."""
    kind, peer, folder = both
    ours = regard.load(folder / "ours", "cpu").with_settings(["decoding.length_penalty=0.0"])
    theirs, end = written(peer, *frame(kind, ours, texts), beam), ours.symbols.end
    for engine in (ours.engine, None):
        ours.engine, alike = engine, 0
        for (one, *_), ids in zip(ours.nbest(texts, beam=beam, max_extra=5), theirs, strict=True):
            if one.finished and end not in ids:
                continue  # at the limit they prefer what has not ended where that is more probable
            assert [*one.tokens, *[end] * one.finished] == ids
            alike += 1
        assert alike > 0.8 * len(texts)


RULES = {
    "ngram": (1, {"no_repeat_ngram": 2}, {"no_repeat_ngram_size": 2}),
    "least": (1, {"min_length": 9}, {"min_new_tokens": 9}),
    "penalty": (3, {"repetition_penalty": 1.7}, {"repetition_penalty": 1.7}),
    "power": (1, {"length_penalty_by": "power", "length_penalty": 3.0}, {"length_penalty": 3.0}),
    "all": (
        1,
        {"no_repeat_ngram": 3, "min_length": 7, "length_penalty_by": "power", "length_penalty": 0.4},
        {"no_repeat_ngram_size": 3, "min_new_tokens": 7, "length_penalty": 0.4},
    ),
}
"""Ours and theirs, beside a rule that makes the outputs of a model with made-up weights end: no n-gram twice."""


@pytest.fixture(scope="module")
def ending(tmp_path_factory):
    """A model of theirs that is apt to end, and its folder."""
    folder = tmp_path_factory.mktemp("ending")
    peer = folders.write("marian", folder)
    peer.final_logits_bias[0, peer.config.eos_token_id] += 4.0
    peer.save_pretrained(folder)
    import_model(folder, folder / "ours")
    return peer, folder


@pytest.mark.one_of(6, minutes=0.03)
@pytest.mark.filterwarnings("ignore:Unfeasible")
@pytest.mark.parametrize("rule", RULES)
def test_rules_are_those_of_transformers(ending, rule: str) -> None:
    """With a beam of four, by the engine; what they penalise the start symbol for is left out: here it is the pad."""
    peer, folder = ending
    ours, (n, own, theirs) = regard.load(folder / "ours", "cpu"), RULES[rule]
    given = {"length_penalty": 0.0, "no_repeat_ngram": n, **own}
    ours.recipe = ours.recipe.model_copy(update={"decoding": ours.recipe.decoding.model_copy(update=given)})
    read, prefix = frame("marian", ours, TEXTS[:20])
    found = [best[0] for best in ours.nbest(TEXTS[:20], beam=4, max_extra=5)]
    plain = written(peer, read, prefix, 4, no_repeat_ngram_size=n)
    wanted = written(peer, read, prefix, 4, **{"no_repeat_ngram_size": n, **theirs})
    alike = changed = 0
    for one, ids, before in zip(found, wanted, plain, strict=True):
        if one.finished and ours.symbols.end not in ids:
            continue
        assert [*one.tokens, *[ours.symbols.end] * one.finished] == ids
        alike, changed = alike + 1, changed + (ids != before)
    assert alike > 0.8 * len(TEXTS[:20])
    assert changed


@pytest.mark.one_of(3)
@pytest.mark.filterwarnings("ignore:Recommended")
def test_the_numbers_read_are_those_of_their_tokenizer(both) -> None:
    kind, _, folder = both
    theirs = folders.tokenizer(kind, folder)
    ours = regard.load(folder / "ours", "cpu")
    read, _ = frame(kind, ours, MORE)
    given = [">>deu<< " + text if kind == "marian" else text for text in MORE]
    known = slice(1 if kind == "nllb" else 0, None)  # of a folder without tokenizer.json they number its languages anew
    assert [list(ids)[known] for ids in theirs(given)["input_ids"]] == [ids[known] for ids in read]
    outputs = np.random.default_rng(1).integers(4, 90, (20, 7)).tolist()
    said = [theirs.decode(ids, skip_special_tokens=True) for ids in outputs]
    assert said == ours.target_tokenizer.decode_batch(outputs)


@pytest.mark.one_of(6)
def test_what_came_in_goes_out_as_it_was(both, tmp_path: Path) -> None:
    """Tensors to the bit, the files of pieces too; their library loads the folder and computes the same."""
    _, peer, folder = both
    export_model(folder / "ours", tmp_path / "out")
    found = read_file(tmp_path / "out" / "model.safetensors")
    expected = {name: tensor for name, tensor in peer.state_dict().items() if name in found}
    assert {"model.encoder.layers.0.fc1.weight", "model.decoder.layers.1.encoder_attn.k_proj.bias"} <= expected.keys()
    same = {name: torch.equal(found[name], tensor) for name, tensor in expected.items() if name != "final_logits_bias"}
    assert all(same.values()), same
    for name in ("source.spm", "target.spm", "sentencepiece.bpe.model"):
        assert not (folder / name).exists() or (tmp_path / "out" / name).read_bytes() == (folder / name).read_bytes()
    again = type(peer).from_pretrained(tmp_path / "out").eval()
    given = {"input_ids": torch.tensor([[5, 6, 7, 2]]), "decoder_input_ids": torch.tensor([[2, 9, 8]])}
    pieces = again.config.vocab_size - 1
    assert torch.allclose(again(**given).logits[..., :pieces], peer(**given).logits[..., :pieces], atol=1e-5)
    import_model(tmp_path / "out", tmp_path / "again")
    for name in ("model.safetensors", "languages.json"):
        there = folder / "ours" / name
        assert not there.exists() or (tmp_path / "again" / name).read_bytes() == there.read_bytes()


@pytest.mark.one_of(3)
def test_what_is_learned_from_pairs_has_their_loss(both, tmp_path) -> None:
    """By teacher forcing of the start, the language's token and the pieces; every piece and ``</s>`` is learned."""
    kind, peer, folder = both
    pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
    (tmp_path / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    begun = Pretrained.load(folder / "ours")
    values = merge(begun.values("translation"), {"training": {"label_smoothing": 0.0}})
    spoken = {"source_language": begun.recipe.text.source_language, "target_language": "de"}
    recipe = recipe_from(merge(values, {"text": {**values["text"], **spoken}}))
    files = InputFiles(pairs=[tmp_path / "pairs.tsv"], begun=begun)
    job = TranslationJob.of_files(files, lambda *given: recipe, lambda text: None, despite_check=True)
    prepared = job.prepare(tmp_path / "data", lambda *given: None)
    teaching = Teacher(job, prepared, torch.device("cpu"))(recipe, ProductPaths())
    teaching.model.eval()
    found = teaching.predict_validation()
    read, prefix = frame(kind, teaching.task)
    target, total, count = teaching.task.target_tokenizer, 0.0, 0
    for source, wanted in prepared.validation_pairs():
        ids, labels = read[TEXTS.index(source)], [*prefix, *target.ids_batch([wanted], True)[0].tolist()]
        with torch.no_grad():
            loss = peer(input_ids=torch.tensor([ids]), labels=torch.tensor([labels])).loss
        total, count = total + float(loss) * len(labels), count + len(labels)
    assert found == pytest.approx(total / count, rel=1e-5)
    with refused(UsageError, "text.bpe_dropout"):
        drops = recipe_from(merge(recipe.model_dump(), {"text": {"bpe_dropout": 0.1}}))
        TranslationJob.of_files(files, lambda *given: drops, lambda text: None, True).prepare(
            tmp_path / "more", lambda *given: None
        )


GROWN = {"en": "a morning of mornings", "de": "Morgen, Morgen und morgens"}


@pytest.mark.one_of(3)
def test_its_vocabulary_grows_by_pieces_of_other_texts(both, tmp_path: Path) -> None:
    """A rate that changes nothing leaves the old rows; what its layout has no place for goes out to CTranslate2."""
    kind, _, folder = both
    ours, spoken = regard.load(folder / "ours", "cpu"), folders.SPOKEN.get(kind, ())
    for code, text in GROWN.items():
        (tmp_path / f"a.{code}").write_text("".join(f"{text[: 12 + n % 15]} {n}\n" for n in range(60)))
    wishes = {"steps": 1, "despite_check": True, "settings": ["training.rate=1e-30", "data.validation=10"]}
    wishes |= {"output": tmp_path / "more", "start_from": folder / "ours", "device": "cpu", "threads": 1}
    wishes |= dict(zip(("source_language", "target_language"), spoken, strict=False))
    made = regard.train(tmp_path / "a.en", tmp_path / "a.de", extend_vocabulary=12, **wishes)
    assert all(0 < len(one.names[was.size :]) <= 24 for one, was in zip(sides(made), sides(ours), strict=True))
    rows = dict(made.model.state_dict())
    assert all(torch.equal(rows[name][: len(old) - 1], old[:-1]) for name, old in ours.model.state_dict().items())
    if spoken:
        with refused(RegardError, "text.extend_vocabulary", "--to ctranslate2"):
            export_model(tmp_path / "more", tmp_path / "out")
    export_model(tmp_path / "more", tmp_path / "out", "ctranslate2" if spoken else "huggingface")
    import_model(tmp_path / "out", tmp_path / "back")
    found, back = (regard.load(tmp_path / name, "cpu") for name in ("more", "back"))
    back = back.in_direction(found.direction) if spoken else back  # which CTranslate2's folders do not name,
    back.recipe = found.recipe  # nor how they search
    texts = ([[best.text for best in one] for one in task.nbest(TEXTS[:5], 2, max_extra=4)] for task in (found, back))
    assert next(texts) == next(texts)


def sides(translator):
    return translator.assets.source, translator.assets.target


def test_a_symbol_that_is_no_language_is_no_further_piece(tmp_path: Path) -> None:
    """It stands behind the languages, where a folder names one."""
    held = folders.piece_model("bpe")
    names = fairseq_names(folders.pieces_of(held), ["eng_Latn", "deu_Latn", "<custom>", "<mask>"])
    tokenizer = SentencePieceTokenizer(held, names, ["eng_Latn", "deu_Latn", "<mask>"])
    languages = LanguageTokens({code: names.index(code) for code in ("eng_Latn", "deu_Latn")}, begins=True)
    files = translator_contents(
        Vocabularies(tokenizer, tokenizer, True, languages=languages), recipe_from({}), own=False
    )
    assert b"<custom>" in files["special_tokens_map.json"]
