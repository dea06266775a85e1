"""A translator of several directions: its corpora's languages, the label of the target, validation, use, going on."""

import json
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import numpy as np
import pytest

import regard
from regard.cli import main
from regard.config import Text
from regard.data.corpora.pairs import open_corpora
from regard.data.prepare.folder import PreparedPairs
from regard.inspection.folders.models import Models
from regard.inspection.questions.answers import answer, state
from regard.runs import train as training
from regard.runs.conversion import export_model
from regard.runs.pack import pack
from regard.system.errors import RegardError, UsageError
from regard.tasks.metrics.bleu import score
from regard.tasks.model_folder import load_recipe_and_assets
from regard.tasks.model_path import weights_sha256
from regard.tasks.translation.languages import find_directions
from regard.text.language_tokens import FRAME, LANGUAGES, LanguageTokens
from regard.text.tokenizers.vocabulary import NGRAMS, SHORTLIST, Vocabularies
from regard.training.checkpoints import output_folder
from tests.inspection.payloads import unpack
from tests.refusals import refused
from tests.training.toy import Counting

WORDS = {
    "en": "the dog cat runs sees house green old man tree",
    "de": "der hund katze läuft sieht haus grün alt mann baum",
    "fr": "le chien chat court voit maison vert vieux homme arbre",
}
TAUGHT = [("en", "de"), ("de", "en"), ("en", "fr")]
SETTINGS = (
    "text.vocabulary=330 training.tokens=300 training.validation_sentences=4 data.validation=12 decoding.max_extra=5"
).split()
SMALL = "model.d_model=16 model.d_ff=32 model.heads=2 model.encoder_layers=1 model.decoder_layers=1".split()
SMALL += ["model.positions=sinusoidal"]  # Pegasus has no others


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of the same sentences in three languages, word by word."""
    folder, draw = tmp_path_factory.mktemp("texts"), np.random.default_rng(1)
    chosen = [draw.integers(0, 10, draw.integers(3, 9)) for _ in range(80)]
    for code, words in WORDS.items():
        lines = [" ".join(words.split()[place] for place in some) + f" {n}\n" for n, some in enumerate(chosen)]
        (folder / f"a.{code}").write_text("".join(lines), encoding="utf-8")
    return folder


def teach(texts: Path, output: Path, pairs: list[tuple[str, str]], settings: Any = (), **wishes: Any) -> Any:
    files = {"source": [texts / f"a.{one}" for one, _ in pairs], "target": [texts / f"a.{two}" for _, two in pairs]}
    usual = {"steps": 2, "device": "cpu", "threads": 1, "despite_check": True, "reporter": Counting()}
    preset = {} if "start_from" in wishes else {"preset": "tiny"}
    sizes = SMALL if preset else []
    return training.train(
        **{**files, "output": output, "settings": [*SETTINGS[1:], *sizes, *settings], **usual, **preset, **wishes}
    )


@pytest.fixture(scope="module")
def folder(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of three directions."""
    output = tmp_path_factory.mktemp("many") / "model"
    teach(texts, output, TAUGHT, SETTINGS[:1])
    return output


def test_every_source_begins_with_the_label_of_its_target(folder: Path) -> None:
    prepared, model = PreparedPairs(folder / "training" / "data"), regard.load(folder)
    tokens = model.assets.languages
    assert tokens == LanguageTokens({"de": 2, "en": 3, "fr": 4}, False, tuple(TAUGHT))
    assert [model.assets.source.piece(id) for id in (2, 3, 4)] == [">>de<<", ">>en<<", ">>fr<<"]
    ids_T, lengths_B = prepared.source.gather(0, np.arange(prepared.pairs))
    first = ids_T[np.cumsum(lengths_B) - lengths_B].tolist()
    targets = [target for (_, target), size in zip(TAUGHT, prepared.sizes, strict=True) for _ in range(size)]
    assert first == [tokens.ids[target] for target in targets]
    assert {2, 3, 4}.isdisjoint(prepared.target.gather(0, np.arange(prepared.pairs))[0].tolist())


def test_the_same_command_finds_its_run_again(folder: Path, texts: Path) -> None:
    """Whatever a translator's folder holds belongs to it."""
    before = (folder / "manifest.json").read_bytes()
    teach(texts, folder, TAUGHT, SETTINGS[:1])
    assert (folder / "manifest.json").read_bytes() == before
    every = {*Vocabularies.load(folder).contents, FRAME, SHORTLIST}
    assert {LANGUAGES, NGRAMS} <= every
    assert all(map(output_folder.is_ours, every))


@pytest.mark.parametrize("settings", [["data.temperature=5", "data.weights=[2,1,1]"]])
def test_temperature_and_weights_are_not_both(texts: Path, tmp_path: Path, settings: list[str]) -> None:
    with refused(UsageError, "data.temperature"):
        teach(texts, tmp_path / "model", TAUGHT, [*SETTINGS[:1], *settings])
    with refused(UsageError, "data.temperature"):
        teach(texts, tmp_path / "model", TAUGHT[:1], [*SETTINGS[:1], *settings[:1]])


def test_a_part_of_every_corpus_is_held_out_and_of_no_language_learned_from(folder: Path, texts: Path) -> None:
    prepared = PreparedPairs(folder / "training" / "data")
    assert prepared.held_directions == [pair for pair in TAUGHT for _ in range(4)]
    held = [pair.source.split()[-1] for pair in prepared.validation_pairs()]
    source, target = prepared.source, prepared.vocabularies.source
    for number in range(prepared.pairs):
        text = target.decode(source.gather(0, np.array([number]))[0].tolist())
        assert text.split()[-1] not in held


def test_each_direction_is_scored_in_log_and_card(folder: Path) -> None:
    card = (folder / "card.md").read_text(encoding="utf-8")
    assert "It learned en → de, de → en, en → fr." in card
    assert "Directions: en → de (" in card
    for pair in TAUGHT:
        assert f"* {' → '.join(pair)}: BLEU" in card


def test_the_source_is_guessed_where_nobody_names_it(folder: Path) -> None:
    model = regard.load(folder)
    assert model.direction == ("und", "de")
    assert [model.guess_language(WORDS[code]).language for code in WORDS] == [*WORDS]
    told = model.between("fr", "en")
    assert told.guess_language("der Hund") is None
    assert (told.direction, told.is_zero_shot) == (("fr", "en"), True)
    assert (told.before, model.before, model.between(to="fr").before) == ((3,), (2,), (4,))
    assert not model.between("de", "en").is_zero_shot
    with refused(UsageError, "to", "'cs'", "de, en, fr"):
        model.between(to="cs")


def test_evaluate_says_what_training_never_had(
    folder: Path, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(source: str, *more: str) -> dict[str, Any]:
        files = ["--source", str(texts / f"a.{source}"), "--reference", str(texts / "a.fr"), "--beam", "1"]
        assert main(["evaluate", str(folder), *files, "--json", "--threads", "1", *more]) == 0
        return json.loads(capsys.readouterr().out)

    assert (found("de")["direction"], found("de")["zero_shot"]) == ("de → fr", True)
    assert not found("en")["zero_shot"]
    assert found("en", "--from", "fr", "--to", "de")["direction"] == "fr → de"
    plain = tmp_path / "plain.txt"
    plain.write_text((texts / "a.en").read_text(encoding="utf-8"), encoding="utf-8")
    given = ["evaluate", str(folder), "--source", str(plain), "--reference", str(texts / "a.fr"), "--beam", "1"]
    assert main(given) == 2
    assert "evaluate with --from CODE --to CODE" in capsys.readouterr().err
    assert main([*given, "--from", "en", "--threads", "1"]) == 0
    assert capsys.readouterr().out.startswith("en → fr\n")


def test_translate_says_what_it_takes_a_text_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(folder), "der hund sieht", "--to", "fr", "--beam", "1", "--threads", "1"]
    assert main(["translate", *given]) == 0
    assert "line 1: taken for de (" in capsys.readouterr().err
    assert main(["translate", *given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source_language"] == "de"
    assert main(["translate", *given, "--from", "de"]) == 0
    assert "de → fr was not among the directions" in capsys.readouterr().err


def test_info_names_directions_and_the_base_of_an_adapter(
    folder: Path, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teach(texts, tmp_path / "adapter", TAUGHT[:1], ["adapt.rank=2"], start_from=folder)
    assert main(["info", str(tmp_path / "adapter")]) == 0
    said, digest = capsys.readouterr().out, weights_sha256(folder)
    assert "It learned en → de, de → en, en → fr." in said
    assert f"adapter of rank 2 of {folder}, whose weights have the sha256 {digest[:16]}." in said
    assert main(["info", str(tmp_path / "adapter"), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["languages"], values["directions"]) == (["en", "de", "fr"], [list(pair) for pair in TAUGHT])
    assert values["adapter"] == {"base": str(folder), "sha256": digest, "rank": 2}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("tokens", {"de": "2"}, "tokens"),
        ("tokens", {"en": 3, "fr": 4}, "directions"),
        ("begins", 1, "begins"),
        ("directions", [["en", "it"]], "directions"),
        ("directions", [], "tokens"),
    ],
)
def test_a_damaged_file_of_languages_is_named_with_its_field(
    folder: Path, tmp_path: Path, field: str, value: Any, words: str
) -> None:
    copytree(folder, tmp_path / "model", ignore=ignore_patterns("training", "manifest.json"))
    path = tmp_path / "model" / LANGUAGES
    values = json.loads(path.read_text(encoding="utf-8")) | {field: value}
    values |= {} if value else {"tokens": {"en": 3}}
    path.write_text(json.dumps(values), encoding="utf-8")
    with refused(RegardError, path, words):
        load_recipe_and_assets(tmp_path / "model")


def test_the_page_and_pictures_are_of_the_languages_that_are_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models, text = Models([folder]), "der hund sieht"
    assert state(models)["models"][0]["languages"] == [[], ["de", "en", "fr"]]  # type: ignore[index]

    def look(**asked: Any) -> tuple[str, str]:
        values, _ = unpack(answer(models, "look", {"text": text, **asked}))
        return values["source"][0]["text"], values["output"]["text"]

    model = regard.load(folder)
    for code in ("fr", "en", "de"):
        wanted = f">>{code}<<", model.translate(text, beam=1, to=code)
        assert look(between=[None, code]) == wanted
        record = model.between("de", code).attention(text)
        assert record.keys.tokens[0] == wanted[0]
        assert main(["attend", str(folder), text, "--to", code, "--json", "--kind", "cross"]) == 0
        assert json.loads(capsys.readouterr().out)["keys"][0] == wanted[0]
    assert look() == look(between=[None, "de"])
    with refused(UsageError, "to", "'cs'"):
        look(between=[None, "cs"])


def test_precisions_are_measured_on_its_usual_language(folder: Path, texts: Path) -> None:
    told: list[str] = []
    made, _ = pack(folder, told=told.append)
    assert made.sentences == 4
    assert any("4 sentences" in line for line in told)
    files = texts / "a.de", texts / "a.fr"
    model, sources = regard.load(folder).between("de", "fr"), files[0].read_text(encoding="utf-8").splitlines()
    wanted = score(model.translate(sources), files[1].read_text(encoding="utf-8").splitlines(), "fr", samples=0)
    assert pack(folder, *files)[0].measured["fp32"].score == pytest.approx(wanted.bleu)
    plain = texts / "plain"
    plain.write_text("a\n", encoding="utf-8")
    with refused(UsageError, None, "do not end in theirs"):
        pack(folder, plain, plain)


def test_it_goes_out_and_comes_back_with_its_labels(folder: Path, tmp_path: Path) -> None:
    (left,) = export_model(folder, tmp_path / "theirs", "huggingface")
    assert (
        left == "its caller puts the token of a language, the target's before a text; they are >>de<<, >>en<<, >>fr<<"
    )
    assert main(["import", str(tmp_path / "theirs"), str(tmp_path / "back")]) == 0
    model = regard.load(folder)
    back = regard.load(tmp_path / "back").with_settings(SETTINGS[-1:])  # a setting of ours that does not go out
    assert (back.assets.languages.ids, back.assets.languages.begins) == (model.assets.languages.ids, False)
    texts = ["der hund sieht", "the old man"]
    assert back.translate(texts, to="fr") == model.translate(texts, to="fr")


def test_it_goes_on_with_its_languages(folder: Path, texts: Path, tmp_path: Path) -> None:
    made = teach(texts, tmp_path / "model", [("de", "fr"), ("fr", "de")], start_from=folder)
    assert made.assets.languages.directions == (*TAUGHT, ("de", "fr"), ("fr", "de"))
    assert made.assets.ngrams == regard.load(folder).assets.ngrams
    assert not made.between("de", "fr").is_zero_shot


def test_of_one_pair_it_learns_and_keeps_all_others(folder: Path, texts: Path, tmp_path: Path) -> None:
    made, base = teach(texts, tmp_path / "model", [("de", "en")], start_from=folder), regard.load(folder)
    assert (made.assets.languages, made.direction) == (base.assets.languages, ("und", "de"))
    assert made.guess_language(WORDS["fr"]).language == "fr"
    prepared = PreparedPairs(tmp_path / "model" / "training" / "data")
    first = prepared.source.gather(0, np.arange(1))[0][0]
    assert (first, set(prepared.held_directions)) == (made.assets.languages.ids["en"], {("de", "en")})
    assert pack(tmp_path / "model")[0].sentences == len(prepared.held_directions)
    card = (tmp_path / "model" / "card.md").read_text(encoding="utf-8")
    assert [line.partition("BLEU")[0] for line in card.splitlines() if "* de → en: BLEU" in line] == ["* de → en: "] * 2
    assert "| de → en: words of the source | sentences |" in card
    for code, name in (("en", "x.src"), ("fr", "x.ref")):
        (tmp_path / name).write_text((texts / f"a.{code}").read_text(encoding="utf-8"), encoding="utf-8")
    files = {"source": [tmp_path / "x.src"], "target": [tmp_path / "x.ref"], "start_from": folder}
    where = f"{tmp_path / 'x.src'} and {tmp_path / 'x.ref'}"
    with refused(UsageError, where, "source_language"):
        teach(texts, tmp_path / "other", [], **files)
    made = teach(texts, tmp_path / "other", [], **files, source_language="en", target_language="fr")
    assert (made.direction, set(PreparedPairs(tmp_path / "other/training/data").held_directions)) == (
        ("und", "de"),
        {("en", "fr")},
    )


@pytest.mark.long(minutes=0.03)
def test_the_label_stays_where_pieces_are_drawn(texts: Path, tmp_path: Path) -> None:
    made = teach(texts, tmp_path / "model", TAUGHT, [SETTINGS[0], "text.bpe_dropout=0.5"])
    prepared, tokens = PreparedPairs(tmp_path / "model" / "training" / "data"), made.assets.languages
    targets = [
        tokens.ids[target] for (_, target), size in zip(TAUGHT, prepared.sizes, strict=True) for _ in range(size)
    ]
    every, sources = np.arange(prepared.pairs), list[list[int]]()
    for epoch in (0, 1):
        ids_T, lengths_B = prepared.source.gather(epoch, every)
        sources.append(ids_T.tolist())
        assert ids_T[np.cumsum(lengths_B) - lengths_B].tolist() == targets
        assert (np.isin(ids_T, [*tokens.ids.values()])).sum() == prepared.pairs
        assert {2, 3, 4}.isdisjoint(prepared.target.gather(epoch, every)[0].tolist())
    assert sources[0] != sources[1]


@pytest.mark.long(minutes=0.03)
def test_large_directions_may_be_drawn_less_often(texts: Path, tmp_path: Path) -> None:
    teach(texts, tmp_path / "model", TAUGHT, [SETTINGS[0], "data.temperature=5"])


@pytest.mark.long(minutes=0.04)
def test_several_files_validate(texts: Path, tmp_path: Path) -> None:
    held = [("en", "fr"), ("de", "fr")]
    valid = {"valid_source": [texts / f"a.{one}" for one, _ in held], "valid_target": [texts / "a.fr"] * 2}
    teach(texts, tmp_path / "model", TAUGHT, SETTINGS[:1], **valid)
    assert set(PreparedPairs(tmp_path / "model" / "training" / "data").held_directions) == set(held)
    valid["valid_target"] = [texts / "a.fr", texts / "a.cs"]
    (texts / "a.cs").write_text((texts / "a.de").read_text(encoding="utf-8"), encoding="utf-8")
    with refused(UsageError, "valid_target", "'cs'", "de, en, fr"):
        teach(texts, tmp_path / "other", TAUGHT, SETTINGS[:1], **valid)


def test_corpora_of_the_same_languages_have_no_direction_of_their_own(texts: Path, tmp_path: Path) -> None:
    def found(source: list[str], target: list[str], usual: tuple[str, str], *pairs: Path) -> Any:
        paths = [
            [texts / name if name.startswith("a") else tmp_path / name for name in some] for some in (source, target)
        ]
        text = dict(zip(("source_language", "target_language"), usual, strict=True))
        columns = "en,fr" if pairs else None
        return find_directions(open_corpora(*paths, pairs, columns), [], Text.model_validate(text), None)

    for name, text in (("b.txt", "a\n"), ("m.jsonl", '{"en": "a", "fr": "b"}\n')):
        (tmp_path / name).write_text(text)
    assert found(["a.en", "a.en"], ["a.de", "b.txt"], ("en", "de")) == ((), ("en", "de"))
    assert found(["a.en"], ["a.de"], ("und", "fr")) == ((), ("en", "fr"))
    both = ["a.en", "a.de"], ["a.de", "b.txt"]
    assert found(*both, ("en", "fr")) == ((("en", "de"), ("de", "fr")), ("und", "de"))
    with refused(UsageError, "b.txt", "columns", "source_language"):
        found(*both, ("en", "und"))
    table = found(["a.en"], ["a.de"], ("en", "de"), tmp_path / "m.jsonl")
    assert table == ((("en", "de"), ("en", "fr")), ("en", "de"))
