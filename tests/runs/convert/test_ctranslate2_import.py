"""CTranslate2 folders come in and go out: tokens and scores are those of CTranslate2, tensors stay as they are."""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.nn.positions import TimingSignal, sinusoids
from regard.runs.conversion import export_model, import_model
from regard.runs.convert.ctranslate2_file import model_file, read_model_file
from regard.system.errors import RegardError, UsageError
from regard.tasks.translation.translator import Translation
from tests.refusals import refused
from tests.runs.convert import ctranslate2_folders as folders

ROOM = 40
LEARNED = np.random.default_rng(7).normal(size=(64, folders.WIDTH)).astype(np.float32)
VARIANTS = {
    "plain": {},
    "post": {"pre_norm": False, "layernorm_embedding": True, "activation": "SWISH"},
    "separate": {"shared": False, "activation": "GELU", "scale": 1.0},
    "untied": {"tied": False, "activation": "GELUTanh", "scale": False, "heads": 4},
    "zero": {"zero": True, "pre_norm": False, "table": LEARNED},
    "m2m": {"table": TimingSignal(folders.WIDTH, 2, 64).table_SD.numpy(), "scale": folders.WIDTH**0.5},
    "opennmt": {"table": sinusoids(64, folders.WIDTH).numpy()},
    "relative": {"layers": (3, 2), "buckets": (8, 20)},
}
TYPES = ["float16", "bfloat16", "int16", "int8", "int8_float16"]


def unpenalised(folder: Path, *, engine: bool = True) -> Translation:
    """A translator whose scores are sums; with its engine, or without."""
    ours = regard.load(folder, "cpu").with_settings(["decoding.length_penalty=0.0"])
    if not engine:
        ours.engine = None
    return ours


def assert_same(ours: Translation, theirs: list[tuple[list[str], float]], texts: list[str], beam: int) -> None:
    """Equal tokens and scores, but at the limit, where ends are told in another way."""
    alike = 0
    for one, (tokens, score) in zip(ours.nbest(texts, beam=beam, max_extra=ROOM), theirs, strict=True):
        if ours.symbols.prefix and not one[0].tokens:
            continue  # an empty translation after a prefix they leave out of all rows of a beam but the first
        ended = one[0].finished and len(tokens) < ROOM - len(ours.symbols.prefix)
        if ended:
            assert one[0].score == pytest.approx(score, abs=2e-4)
        if ended or beam == 1:
            assert one[0].text.split()[: None if ended else len(tokens)] == tokens
        alike += ended or beam == 1
    assert alike > 0.3 * len(texts)


@pytest.mark.one_of(6, minutes=0.02)
@pytest.mark.parametrize("kind", VARIANTS)
def test_tokens_and_scores_are_theirs_in_and_out(kind: str, tmp_path: Path) -> None:
    folders.write(tmp_path / "theirs", **VARIANTS[kind])
    told: list[str] = []
    import_model(tmp_path / "theirs", tmp_path / "ours", tell=told.append)
    assert "between blanks" in told[0]
    texts = folders.sentences()
    read = [[*text.split(), *["</s>"] * (kind == "zero")] for text in texts]
    for beam in (1, 4):
        theirs = folders.translated(tmp_path / "theirs", read, beam)
        for engine in (True, False):
            assert_same(unpenalised(tmp_path / "ours", engine=engine), theirs, texts, beam)
    assert export_model(tmp_path / "ours", tmp_path / "back", "ctranslate2") == []
    assert_same_tensors(tmp_path / "theirs", tmp_path / "back")
    again = folders.translated(tmp_path / "back", [text.split() for text in texts], 4)
    assert [tokens for tokens, _ in again] == [tokens for tokens, _ in theirs]
    import_model(tmp_path / "back", tmp_path / "again")
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (
        tmp_path / "ours" / "model.safetensors"
    ).read_bytes()


def assert_same_tensors(theirs: Path, back: Path) -> None:
    """Every tensor as it was, and no other; but for tables of sinusoids, which are computed."""
    before, after = (read_model_file(folder / "model.bin") for folder in (theirs, back))
    for name in before:
        place = name.replace("encoder/embeddings/", "encoder/embeddings_0/")
        if place.endswith("encodings") and before[name].shape != after[place].shape:
            rows = min(len(before[name]), len(after[place]))
            assert torch.allclose(before[name][:rows], after[place][:rows], atol=2e-5)
        elif before.shape(name) and not name.endswith("_scale"):
            assert torch.equal(before.numbers(name), after[place]), name
    assert {name for name in after if after.shape(name)} <= {
        name.replace("encoder/embeddings/", "encoder/embeddings_0/") for name in before
    }


@pytest.mark.one_of(3)
@pytest.mark.parametrize("quantization", TYPES)
def test_every_type_of_numbers_is_read(quantization: str, tmp_path: Path) -> None:
    folders.write(tmp_path / "theirs", quantization=quantization)
    import_model(tmp_path / "theirs", tmp_path / "ours")
    texts = folders.sentences()
    theirs = folders.translated(tmp_path / "theirs", [text.split() for text in texts], 4)
    assert_same(unpenalised(tmp_path / "ours"), theirs, texts, 4)
    said = (tmp_path / "ours" / "card.md").read_text()
    assert ("made float32" in said) == quantization.startswith("int")


@pytest.mark.one_of(6)
@pytest.mark.parametrize("kind", folders.HUB)
def test_what_their_converter_makes_of_hugging_faces_models(kind: str, tmp_path: Path) -> None:
    folders.write_from_hub(kind, tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    ours, texts = unpenalised(tmp_path / "ours"), folders.sentences()
    names = ours.source_tokenizer.names
    read = [[*(names[id] for id in ours.before), *text.split(), "</s>"] for text in texts]
    prefix = [names[id] for id in ours.symbols.prefix]
    for beam in (1, 4):
        assert_same(ours, folders.translated(tmp_path / "theirs", read, beam, prefix), texts, beam)
    assert bool(prefix) == (kind in ("M2M100", "MBart"))
    assert len(export_model(tmp_path / "ours", tmp_path / "back", "ctranslate2")) == bool(prefix)
    assert_same_tensors(tmp_path / "theirs", tmp_path / "back")


@pytest.mark.one_of(6, minutes=0.02)
@pytest.mark.parametrize("kind", ["marian", "separate", "m2m", "nllb", "mbart"])
def test_what_came_in_from_the_hub_goes_out_to_them(kind: str, tmp_path: Path) -> None:
    hub = pytest.importorskip("tests.runs.convert.translator_folders")
    (tmp_path / "hub").mkdir()
    hub.write(kind, tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "fast", "ctranslate2")
    ours, texts = unpenalised(tmp_path / "ours"), hub.sentences(40, seed=9)
    source, target = (one.names for one in (ours.source_tokenizer, ours.target_tokenizer))
    ids = [[*ours.before, *ours.source_tokenizer.encode(text).ids] for text in texts]
    prefix = [target[id] for id in ours.symbols.prefix]
    theirs = folders.translated(tmp_path / "fast", [[source[id] for id in row] for row in ids], 1, prefix)
    never, alike = {target[id] for id in ours.symbols.without} | {"<unk>"}, 0
    for one, (tokens, _) in zip(ours.nbest(texts, beam=1, max_extra=ROOM), theirs, strict=True):
        first = next((place for place, token in enumerate(tokens) if token in never), len(tokens))
        assert [target[id] for id in one[0].tokens[:first]] == tokens[:first]  # until they write a symbol
        alike += first > 3
    assert alike > 2


def test_a_trained_start_symbol_goes_out_in_the_table_that_is_read(tmp_path: Path) -> None:
    folders.write(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    from safetensors.torch import load_file

    from regard.models import store
    from regard.training.checkpoints import manifest
    from regard.training.checkpoints.files import Files

    weights = load_file(tmp_path / "ours" / "model.safetensors")
    weights["encoder.input.tokens.weight"][1] += 0.5  # the token's row, no longer the start symbol's
    manifest.replace(tmp_path / "ours", {"model.safetensors": [store.to_bytes(weights)]}, Files())
    export_model(tmp_path / "ours", tmp_path / "back", "ctranslate2")
    texts = folders.sentences()
    theirs = folders.translated(tmp_path / "back", [text.split() for text in texts], 4)
    assert_same(unpenalised(tmp_path / "ours"), theirs, texts, 4)


def renamed(folder: Path, old: bytes, new: bytes) -> None:
    content = (folder / "model.bin").read_bytes()
    assert old in content
    assert len(old) == len(new)
    (folder / "model.bin").write_bytes(content.replace(old, new))


def test_what_there_is_nothing_for_is_refused_by_name(tmp_path: Path) -> None:
    folders.write(tmp_path / "theirs")
    for old, new, named in (
        (b"TransformerSpec", b"WhisperSpecific", "WhisperSpecific"),
        (b"encoder/layer_0/ffn/linear_0/weight", b"encoder/layer_0/ffn/rotary_base/wei", "rotary positions"),
        (b"decoder/layer_norm/beta", b"decoder/layer_norm/zeta", "decoder/layer_norm/beta"),
    ):
        shutil.copytree(tmp_path / "theirs", tmp_path / "odd")
        renamed(tmp_path / "odd", old, new)
        with refused(RegardError, "odd/model.bin", named):
            import_model(tmp_path / "odd", tmp_path / "ours")
        shutil.rmtree(tmp_path / "odd")
    with refused(UsageError, "task", "translation"):
        import_model(tmp_path / "theirs", tmp_path / "ours", "classification")


@pytest.mark.parametrize("shape", [(), (8,)])
def test_a_bias_that_is_no_table_is_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    folders.write(tmp_path / "theirs", buckets=(8, 20))
    held = read_model_file(tmp_path / "theirs" / "model.bin")
    names = [name for name in held if name.endswith("relative_attention_bias")]
    variables = {name: held[name] for name in held} | dict.fromkeys(names, torch.ones(shape))
    (tmp_path / "theirs" / "model.bin").write_bytes(b"".join(model_file("TransformerSpec", 7, variables, {})))
    with refused(RegardError, "theirs/model.bin", "no table"):
        import_model(tmp_path / "theirs", tmp_path / "ours")


@pytest.mark.parametrize(
    "spec",
    [
        {"with_relative_position": True},
        {"relative_attention_bias": True, "rms_norm": True},
        {"ffn_glu": True},
        {"rms_norm": True},
        {"activation": "GELUSigmoid"},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_their_other_layers_are_refused(
    spec: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders.TransformerSpec, "validate", lambda model: fill(model))
    folders.write(tmp_path / "theirs", **spec)
    with refused(RegardError, "theirs/model.bin"):
        import_model(tmp_path / "theirs", tmp_path / "ours")


def fill(model: object) -> None:
    """Give whatever lacks a value a number, and let their own check go on."""
    from ctranslate2.specs import model_spec

    def one(spec: object, name: str, value: object) -> None:
        if value is None:
            setattr(spec, name.rsplit("/", 1)[-1], np.ones((3, 4), np.float32))

    model_spec.visit_spec(model, one)
    model_spec.LayerSpec.validate(model)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", ["aren-transliteration", "aren-transliteration-i8"])
def test_a_real_one_of_version_two(name: str, tmp_path: Path, data_folder: Path) -> None:
    DATA = data_folder / "ct2-aren"
    import_model(DATA / name, tmp_path / "ours")
    letters = (DATA / name / "source_vocabulary.txt").read_text().split("\n")[3:-1]
    draws = random.Random(1)
    texts = [" ".join(draws.choices(letters, k=draws.randint(1, 12))) for _ in range(200)]
    read = [text.split() for text in texts]
    for beam in (1, 4):
        theirs = folders.translated(DATA / name, read, beam)
        assert_same(unpenalised(tmp_path / "ours"), theirs, texts, beam)
        assert_same(unpenalised(tmp_path / "ours", engine=False), theirs[:20], texts[:20], beam)
    assert unpenalised(tmp_path / "ours").translate("آ ت ز م و ن") == "a t z m o n"
    export_model(tmp_path / "ours", tmp_path / "back", "ctranslate2")
    assert_same_tensors(DATA / name, tmp_path / "back")
    back = folders.translated(tmp_path / "back", read, 4)
    assert [tokens for tokens, _ in back] == [tokens for tokens, _ in theirs]
