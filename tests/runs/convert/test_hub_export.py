"""Models taken out say the same in ``transformers`` and, where it knows the family, in CTranslate2."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from regard.config import Decoding, Recipe, recipe_from
from regard.data.batches.patches import Scale
from regard.decoding.hypotheses import Symbols
from regard.decoding.search import search
from regard.models.build import outline, transformer
from regard.models.decoding.transformer import TransformerStepper
from regard.models.inputs import Patches
from regard.models.store import weights
from regard.nn.layout import Sequences
from regard.runs.conversion import export_model, import_model
from regard.runs.convert.hub_export import hub_files
from regard.runs.convert.hub_import import read_hub_model
from regard.runs.convert.layouts import exports
from regard.system.errors import RegardError, UsageError
from regard.tasks.classification.classifier import ClassAssets
from regard.tasks.classification.pairs import PairClassification
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from tests.models.small_models import assert_near
from tests.refusals import refused
from tests.runs.convert.random_recipes import T5 as T5_LIKE
from tests.runs.convert.small_exports import SIZES, task_of, written
from tests.runs.convert.small_folders import LABELS, PAIRS, TAGS, TEXTS, folder_of, untied_t5, write
from tests.runs.convert.small_peers import AUTO, BERTS, framed, packed, pixels, transformers, unpadded

POSITIONS = {"max_positions": 40}


def own_tokenizer(symbols: tuple[str, ...] = ()) -> Tokenizer:
    return learn(TEXTS * 3, 290, symbols=symbols)


def recipe(task: str, model: dict[str, Any], **sections: Any) -> Recipe:
    return recipe_from({"task": task, "model": {**SIZES, **model}, "data": {"max_tokens": 40}, **sections})


def model_of(recipe: Recipe, pieces: int, count: int = 0) -> nn.Module:
    """A model of ours, every weight random but the start symbol's row."""
    built = (
        transformer(recipe.model, pieces, pieces)  # type: ignore[arg-type]
        if recipe.model.family == "transformer"
        else outline(recipe.model, pieces, count, recipe.info.writes)
    )
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in built.parameters():
            if len(weight) == pieces + 1:
                weight = weight[:-1]
            weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
    return built.eval()


def made(
    folder: Path, task: str, values: dict[str, Any], labels: tuple[str, ...] = (), symbols: tuple[str, ...] = ()
) -> tuple[Tokenizer, Recipe, Any]:
    """A random model of ours, its tokenizer and recipe; it stands in ``folder`` in their layout."""
    tokenizer, described = own_tokenizer(symbols), recipe(task, values)
    model = model_of(described, tokenizer.size, len(labels))
    write(folder, hub_files(described, weights(model), tokenizer, labels))
    return tokenizer, described, model


def converted(folder: Path, place: Path) -> str:
    """A folder in their layout, converted for CTranslate2."""
    pytest.importorskip("ctranslate2").converters.TransformersConverter(str(folder)).convert(str(place))
    return str(place)


def read_by_theirs(folder: Path, texts: list[Tensor]) -> Any:
    """Their tokenizer's batch of the texts, which must be ours."""
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    batch = theirs(TEXTS, padding=True, return_tensors="pt")
    for ids, mask, text in zip(batch.input_ids, batch.attention_mask.bool(), texts, strict=True):
        assert ids[mask].tolist() == text.tolist()
    return {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}


def loaded(kind: str, folder: Path) -> Any:
    """A model of theirs, and not a weight missing or left over."""
    model, told = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    assert not told["mismatched_keys"]
    return model.eval()


@pytest.mark.parametrize(("task", "labels"), [("masked-lm", ()), ("classification", LABELS), ("tagging", TAGS)])
def test_an_encoder_of_ours_is_a_bert(task: str, labels: tuple[str, ...], tmp_path: Path) -> None:
    tokenizer, described, model = made(tmp_path, task, {"layers": 2, **POSITIONS}, labels, ("[CLS]", "[MASK]"))
    texts = framed(tokenizer, TEXTS)
    peer = loaded(AUTO[task], tmp_path)
    expected = peer(**read_by_theirs(tmp_path, texts)).logits
    said = model(packed(texts))
    found = model.head.scores(said) if task == "masked-lm" else said
    assert_near(found, expected if task == "classification" else unpadded(expected, texts), 1e-4)
    if labels:
        assert tuple(peer.config.id2label[number] for number in range(len(labels))) == labels
    again = read_hub_model(tmp_path)
    assert again.recipe.model.model_dump(exclude={"pooler"}) == described.model.model_dump(exclude={"pooler"})
    assert all(torch.equal(tensor, again.weights[name]) for name, tensor in weights(model).items())


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", ["pairs", "pairs-several", "pairs-number"])
def test_two_texts_are_a_bert_with_a_second_segment(name: str, tmp_path: Path) -> None:
    ours, folder = task_of(name), written(name, tmp_path)
    peer, theirs = loaded(AUTO["classification"], folder), transformers.AutoTokenizer.from_pretrained(folder)
    batch = theirs([list(pair) for pair in PAIRS], padding=True, return_tensors="pt")
    assert batch.token_type_ids.sum(1).tolist() == [len(theirs(second).input_ids) - 1 for _, second in PAIRS]
    assert_near(torch.from_numpy(ours.scores(PAIRS)), peer(**batch).logits, 1e-5)
    for pair in PAIRS:
        expected = peer(**theirs(*pair, return_tensors="pt")).logits
        assert_near(torch.from_numpy(ours.scores([pair])), expected, 1e-5)
    assert peer.config.problem_type == {"pairs": "single", "pairs-several": "multi"}.get(
        name, "regression"
    ) + "_label_classification" * (name != "pairs-number")


def test_two_texts_with_a_tokenizer_of_others_get_its_symbols(tmp_path: Path) -> None:
    """Theirs is changed only where it puts two texts together in another way."""
    folder_of("BertForSequenceClassification", tmp_path / "bert")
    imported = import_model(tmp_path / "bert", tmp_path / "ours")
    described = recipe_from({**imported.recipe.model_dump(exclude_defaults=True), "task": "sentence-pairs"})
    document = json.loads(imported.assets.tokenizer.content)
    template = document["post_processor"]
    for pair in (template["pair"], [*template["single"], *template["single"]]):
        tokenizer = HuggingFaceTokenizer({**document, "post_processor": {**template, "pair": pair}})
        task = PairClassification(described, ClassAssets(tokenizer, LABELS), imported.model)
        folder = tmp_path / str(len(pair))
        write(folder, hub_files(described, weights(imported.model), tokenizer, LABELS))
        batch = transformers.AutoTokenizer.from_pretrained(folder)(
            [list(pair) for pair in PAIRS], padding=True, return_tensors="pt"
        )
        expected = loaded(AUTO["classification"], folder)(**batch).logits
        assert_near(torch.from_numpy(task.scores(PAIRS)), expected, 1e-5)
        again = import_model(folder, tmp_path / f"again{len(pair)}")
        assert isinstance(again, PairClassification)
        assert again.classify(PAIRS) == task.classify(PAIRS)


@pytest.mark.parametrize("label", ["a\tb", " a", "", "\u2028"])
def test_a_label_that_could_not_be_imported_is_not_exported(label: str, tmp_path: Path) -> None:
    with refused(RegardError, None, json.dumps(label)):
        made(tmp_path, "classification", {"layers": 1, **POSITIONS}, ("b", label), ("[CLS]", "[MASK]"))


def test_a_decoder_of_ours_is_a_gpt2(tmp_path: Path) -> None:
    tokenizer, _, model = made(tmp_path, "language-model", {"layers": 2, **POSITIONS})
    texts = [torch.tensor(tokenizer.encode(text).ids) for text in TEXTS]
    expected = loaded("AutoModelForCausalLM", tmp_path)(**read_by_theirs(tmp_path, texts)).logits
    assert_near(model.scores(model(packed(texts))), unpadded(expected, texts), 1e-4)


def test_an_image_model_of_ours_is_a_vit(tmp_path: Path) -> None:
    described = recipe("image-classification", {"layers": 2, "height": 8, "width": 12, "channels": 3, "patch": 4})
    model = model_of(described, 0, 5)
    scale = Scale(16.0, (0.4,), (0.2, 0.3, 0.5))
    write(tmp_path, hub_files(described, weights(model), None, LABELS, scale))
    values = torch.randint(0, 17, (2, 3, 8, 12), generator=torch.Generator().manual_seed(1))
    images = (values / 16 - 0.4) / torch.tensor([0.2, 0.3, 0.5])[:, None, None]
    patches = Patches(pixels(images, 4), Sequences.end_to_end([7, 7]))
    assert_near(model(patches), loaded("AutoModelForImageClassification", tmp_path)(images).logits, 1e-4)
    processor = transformers.ViTImageProcessorPil.from_pretrained(tmp_path)
    read = processor(list(values.to(torch.uint8).numpy()), return_tensors="pt", input_data_format="channels_first")
    assert_near(read.pixel_values, images, 1e-5)
    assert read_hub_model(tmp_path).scale == Scale(16.0, (0.4, 0.4, 0.4), (0.2, 0.3, 0.5))


def our_outputs(model: nn.Module, tokenizer: Tokenizer, texts: list[Tensor], beam: int) -> list[list[int]]:
    sources = [text.numpy().astype(np.int64) for text in texts]
    decoding = Decoding(beam=beam, length_penalty=0.0)
    symbols = Symbols(tokenizer.start, tokenizer.end, without=())
    found = search(TransformerStepper(model), sources, decoding, symbols, limits=[15] * len(sources))  # type: ignore[arg-type]
    return [list(hypotheses[0].tokens) for hypotheses in found]


def their_outputs(peer: Any, batch: Any, beam: int) -> list[list[int]]:
    told = {"num_beams": beam, "do_sample": False, "max_new_tokens": 15, "max_length": None, "length_penalty": 0.0}
    rows = peer.generate(**batch, **told, early_stopping=False).tolist()
    return [[id for id in row[1:] if id != peer.config.pad_token_id and id != 0] for row in rows]


TRANSLATORS = [
    ({"encoder_layers": 2, "decoder_layers": 3}, "MarianMTModel"),
    ({"encoder_layers": 1, "decoder_layers": 1, "activation": "gelu", "d_model": 15}, "MarianMTModel"),
    ({"encoder_layers": 2, "decoder_layers": 3, "norm_place": "pre"}, "PegasusForConditionalGeneration"),
    ({"encoder_layers": 2, "decoder_layers": 2, **T5_LIKE}, "T5ForConditionalGeneration"),
    ({"encoder_layers": 1, "decoder_layers": 1, **T5_LIKE, "activation": "gated_gelu"}, "T5ForConditionalGeneration"),
]


@pytest.mark.one_of(6)
@pytest.mark.parametrize(
    ("model", "kind"), [*TRANSLATORS, ({"encoder_layers": 1, "decoder_layers": 2, "decoder_heads": 2}, "MarianMTModel")]
)
def test_a_translator_of_ours_is_a_marian_a_pegasus_or_a_t5(model: dict[str, Any], kind: str, tmp_path: Path) -> None:
    tokenizer, _, ours = made(tmp_path, "translation", model)
    peer = loaded("AutoModelForSeq2SeqLM", tmp_path)
    assert type(peer).__name__ == kind
    texts = framed(tokenizer, TEXTS)
    batch = read_by_theirs(tmp_path, texts)
    started = [torch.cat([torch.tensor([tokenizer.start]), text[:-1]]) for text in texts]
    targets = nn.utils.rnn.pad_sequence(started, batch_first=True)
    expected = unpadded(peer(**batch, decoder_input_ids=targets).logits, texts)[:, : tokenizer.size]
    found = ours.scores(ours.decoder(packed(started), ours.encoder(packed(texts)), packed(texts)))  # type: ignore
    assert_near(found, expected, 1e-4)
    for beam in (1, 4):
        written = [[id for id in row if id != 0] for row in our_outputs(ours, tokenizer, texts, beam)]
        assert their_outputs(peer, batch, beam) == written


@pytest.mark.one_of(6)
@pytest.mark.parametrize(("model", "kind"), TRANSLATORS)
def test_ctranslate2_writes_what_our_translator_writes(model: dict[str, Any], kind: str, tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    tokenizer, _, ours = made(tmp_path / "theirs", "translation", model)
    fast = ctranslate2.Translator(converted(tmp_path / "theirs", tmp_path / "fast"), device="cpu", intra_threads=1)
    texts = framed(tokenizer, TEXTS)
    sources = [[tokenizer.names[id] for id in text.tolist()] for text in texts]
    for beam in (1, 4):
        told = {"suppress_sequences": [["<pad>"]]} if kind.startswith("T5") else {}
        results = fast.translate_batch(sources, beam_size=beam, max_decoding_length=15, length_penalty=0.0, **told)
        expected = our_outputs(ours, tokenizer, texts, beam)
        assert [each.hypotheses[0] for each in results] == [[tokenizer.names[id] for id in row] for row in expected]


@pytest.mark.parametrize(("epsilon", "same"), [(1e-6, True), (1e-5, True), (1e-3, False)])
def test_ctranslate2_has_an_epsilon_of_its_own(epsilon: float, same: bool, tmp_path: Path) -> None:
    """What the norms of a GPT-2 add before the root is not told it: where that shows, there is no export."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    values = {"layers": 2, **POSITIONS, "norm_epsilon": epsilon}
    tokenizer, described, model = made(tmp_path / "theirs", "language-model", values)
    text = framed(tokenizer, TEXTS)[0]
    fast = ctranslate2.Generator(converted(tmp_path / "theirs", tmp_path / "fast"), intra_threads=1)
    said = fast.forward_batch([text.tolist()])
    found, ours = torch.tensor(np.array(said)[0][:, : tokenizer.size]), model.scores(model(packed([text])))
    assert bool((found - ours).abs().max() < 1e-4 * ours.abs().max()) == same
    assert (exports(described).further == ()) == same
    if not same:
        with refused(UsageError, "model.norm_epsilon", "0.001", "1e-05"):
            exports(described).refuse("ctranslate2")


OTHERS = ("BertModel", "GPT2LMHeadModel", "T5ForConditionalGeneration", "ViTForImageClassification")


@pytest.mark.one_of(6)
@pytest.mark.parametrize("kind", [*(f"BertFor{head}" for head in BERTS), *OTHERS, "untied"])
def test_out_is_in_backwards(kind: str, tmp_path: Path) -> None:
    theirs = None
    if kind == "untied":
        untied_t5(tmp_path / "theirs")
        kind = "T5ForConditionalGeneration"
    else:
        _, theirs = folder_of(kind, tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "back")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert type(loaded(kind, tmp_path / "back")).__name__ == kind
    if theirs is not None:
        again = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
        assert again(TEXTS)["input_ids"] == theirs(TEXTS)["input_ids"]
        assert again.unk_token == theirs.unk_token


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    described = recipe("language-model", {"layers": 1, **POSITIONS})
    model = model_of(described, own_tokenizer().size)
    held = weights(model)
    lacking = {name: tensor for name, tensor in held.items() if name != "decoder.final.bias"}
    with refused(RegardError, "model.safetensors", "'decoder.final.bias'"):
        hub_files(described, lacking, own_tokenizer())
    with refused(RegardError, "model.safetensors", "'more'"):
        hub_files(described, {**held, "more": torch.ones(1)}, own_tokenizer())
