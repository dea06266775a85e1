"""What a model can be exported to is known from its recipe alone, and is what then happens."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.config import TASKS, Recipe, recipe_from
from regard.data.batches.patches import Scale
from regard.models import build, store
from regard.models.presets import PRESETS
from regard.runs.convert.hub_export import hub_files
from regard.runs.convert.layouts import FORMATS, NO_FORM, Exports, exports
from regard.system.errors import UsageError
from regard.tasks import model_class
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from tests.models.small_models import stir
from tests.refusals import refused
from tests.runs.convert.random_recipes import KINDS, SMALL, T5, drawn, fields_of
from tests.runs.convert.small_folders import LABELS, TEXTS, unigrams, write
from tests.runs.convert.small_peers import AUTO, transformers

SYMBOLS = {"translation": (), "language-model": (), "text-to-text": ("<extra_0>",)}
TOKENIZERS: dict[str, Tokenizer | None] = {
    task: learn(TEXTS * 3, 290, symbols=SYMBOLS.get(task, ("[CLS]",))) if task != "image-classification" else None
    for task in TASKS
}


def weights_of(recipe: Recipe) -> dict[str, Tensor]:
    """Of the model of a recipe, at random."""
    tokenizer = TOKENIZERS[recipe.task]
    pieces = tokenizer.size if tokenizer else 0
    model = model_class(recipe.task).build(recipe, (pieces, pieces if recipe.task == "translation" else len(LABELS)))
    stir(model)
    return store.weights(model)


def exported(recipe: Recipe) -> UsageError | dict[str, bytes]:
    """What comes of an export: files, or a refusal."""
    scale = Scale(9.0) if recipe.task == "image-classification" else None
    try:
        return hub_files(recipe, weights_of(recipe), TOKENIZERS[recipe.task], LABELS, scale)
    except UsageError as refused:
        return refused


def agree(recipe: Recipe) -> Exports:
    """What was said before is what happens, and every obstacle is named by its key, what it is and what would fit."""
    said, outcome = exports(recipe), exported(recipe)
    assert isinstance(outcome, UsageError) == bool(said.obstacles)
    assert said.line.startswith("this model cannot be exported") == bool(said.obstacles and not said.direct)
    assert "\n" not in said.line
    if isinstance(outcome, UsageError):
        assert outcome.where == said.obstacles[0].field
        for obstacle in said.obstacles:
            assert (f"{obstacle.field} = {obstacle.fits} instead of" if obstacle.fits else obstacle.why) in said.line
            assert obstacle.field in str(outcome)
        assert len({obstacle.field for obstacle in said.obstacles}) == len(said.obstacles)
    else:
        assert {"config.json", "model.safetensors"} <= outcome.keys()
    return said


def changed(recipe: Recipe, said: Exports) -> Recipe:
    """The recipe with every obstacle as it would fit."""
    values = recipe.model_dump(exclude_none=True, exclude_defaults=True)
    for obstacle in said.obstacles:
        section, _, name = obstacle.field.partition(".")
        value = re.split(", | or ", obstacle.fits)[0]
        word = {"true": True, "false": False}.get(value, value)
        values.setdefault(section, {})[name] = int(value) if value.isdecimal() else word
    if said.format is None:
        values["model"] = {"family": values["model"]["family"]}
    return recipe_from({"task": recipe.task, **values})


@pytest.mark.parametrize("numbers", [range(140), pytest.param(range(140, 4000), marks=pytest.mark.long(1))])
def test_what_is_said_of_random_recipes_is_what_happens(numbers: range) -> None:
    seen: dict[tuple[str, str], set[bool]] = {}
    for number in numbers:
        if (recipe := drawn(number)) is not None:
            said = agree(recipe)
            seen.setdefault((recipe.task, recipe.model.family), set()).add(bool(said.obstacles))
    assert seen.keys() == set(KINDS)
    assert sum(len(each) == 2 for each in seen.values()) >= 6


def test_with_all_that_would_have_to_change_a_model_can_be_exported() -> None:
    tried = 0
    for number in range(400):
        recipe = drawn(number)
        said = exports(recipe) if recipe else Exports(None, ())
        fits = " ".join(each.fits for each in said.obstacles)
        if recipe is None or not fits or "divisor" in fits:
            continue
        tried += 1
        assert exports(changed(recipe, said)).obstacles == (), recipe.model
    assert tried > 100


@pytest.mark.one_of(6)
@pytest.mark.parametrize("family", list(SMALL))
def test_every_value_of_every_field_is_said_as_it_is(family: str) -> None:
    task = next(task for task, other in KINDS if other == family)
    for name, values in fields_of(family).items():
        for value in values:
            model = {"family": family, **SMALL[family], name: value}
            if value == "batch" and name == "norm" and family == "transformer":
                model["decoder_norm"] = "batch"
            try:
                recipe = recipe_from({"task": task, "model": model})
            except UsageError:
                continue
            agree(recipe)


def smaller(name: str, value: Any) -> Any:
    """A value of a preset with an eighth of its sizes and one layer, which no format asks for."""
    return value // 8 if name in ("d_model", "d_ff", "d_k", "d_v") else 1 if name.endswith("layers") else value


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name", PRESETS)
def test_what_is_said_of_a_preset_is_what_happens(name: str) -> None:
    values = PRESETS[name].section.model_dump(exclude_none=True)
    small = {field: smaller(field, value) for field, value in values.items()}
    for task, family in KINDS:
        if family == PRESETS[name].family and not (task == "tagging" and small.get("pool") == "attention"):
            agree(recipe_from({"task": task, "model": small}))


def test_all_obstacles_of_the_nearest_format_are_said_in_one_line() -> None:
    model = {"norm": "batch", "decoder_norm": "batch", "tie": "two", "heads": 2, "d_k": 7, "activation": "gated_gelu"}
    recipe = recipe_from({"model": {**SMALL["transformer"], **model}, "text": {"joint": False}})
    assert exports(recipe).line == (
        "this model cannot be exported as it is: Marian needs text.joint = true instead of false, model.norm = layer "
        "instead of batch, model.tie = three instead of two, model.decoder_norm = layer instead of batch, "
        "model.activation = relu, gelu, gelu_tanh or swish instead of gated_gelu, model.d_k = 6 instead of 7"
    )


OUT, NO = "can be exported to: Hugging Face ", "cannot be exported as it is: "
ONE = "can be exported to: CTranslate2; "
LINES: list[tuple[str, dict[str, Any], str]] = [
    ("translation", {}, f"{OUT}(Marian), CTranslate2"),
    ("translation", {"norm_place": "pre"}, f"{OUT}(Pegasus), CTranslate2"),
    ("text-to-text", T5, f"{OUT}(T5), CTranslate2"),
    ("classification", {}, f"{OUT}(BERT), CTranslate2 (the encoder alone)"),
    ("sentence-pairs", {}, f"{OUT}(BERT), CTranslate2 (the encoder alone)"),
    ("language-model", {}, f"{OUT}(GPT-2), CTranslate2"),
    ("language-model", {"norm_epsilon": 1e-3}, f"{OUT}(GPT-2)"),
    ("image-classification", {}, f"{OUT}(ViT)"),
    ("sentence-pairs", {"segments": 0}, f"{NO}BERT needs model.segments = 2 instead of 0"),
    ("translation", {"norm": "rms"}, f"{NO}Marian needs model.norm = layer instead of rms"),
    ("translation", {"tie": "two"}, f"{ONE}Marian needs model.tie = three instead of two"),
    ("translation", {"positions": "relative"}, f"{ONE}Marian needs model.positions = sinusoidal instead of relative"),
    ("translation", {"d_k": 7}, f"{NO}Marian needs model.d_k = 4 instead of 7"),
    ("translation", {"decoder_cell": "ssru"}, f"cannot be exported: {NO_FORM['decoder_cell']}"),
    ("translation", {"without": "norm"}, f"cannot be exported: {NO_FORM['without']}"),
    ("translation", {**T5, "scale_output": False}, f"{NO}T5 needs model.scale_output = true instead of false"),
    ("masked-lm", {"embedding_norm": False}, f"{NO}BERT needs model.embedding_norm = true instead of false"),
    ("classification", {"pool": "mean"}, f"{NO}BERT needs model.pool = first instead of mean"),
    ("classification", {"pooler": False}, f"{NO}BERT needs model.pooler = true instead of false"),
    ("classification", {"norm_place": "pre"}, f"{NO}BERT needs model.norm_place = post instead of pre"),
    ("tagging", {"pool": "mean"}, f"{NO}BERT needs model.pool = first instead of mean"),
    ("language-model", {"positions": "sinusoidal"}, f"{NO}GPT-2 needs model.positions = learned instead of sinusoidal"),
    (
        "translation",
        {**T5, "tie": "none", "scale_output": False},
        f"{NO}T5 needs model.tie = three instead of none, model.scale_output = true instead of false",
    ),
    (
        "classification",
        {"family": "rnn-encoder"},
        f"{NO}Hugging Face's layout needs model.family = bert instead of rnn-encoder, with the settings of "
        "docs/convert.md",
    ),
    (
        "translation",
        {"heads": 5, "d_k": 2, "d_v": 2},
        f"{NO}Marian needs model.heads = a divisor of 12 instead of 5, model.d_k = "
        "model.d_model / model.heads instead of 2, model.d_v = model.d_model / model.heads instead of 2",
    ),
]


@pytest.mark.parametrize(("task", "model", "line"), LINES)
def test_the_line(task: str, model: dict[str, Any], line: str) -> None:
    family = model.get("family", TASKS[task].families[0])
    recipe = recipe_from({"task": task, "model": {**SMALL[family], **model}})
    assert exports(recipe).line == f"this model {line}"
    agree(recipe)


def test_a_refusal_names_the_other_way_out() -> None:
    model = {**SMALL["transformer"], "positions": "relative"}
    with refused(UsageError, "model.positions", "goes out as it is with --to ctranslate2"):
        exports(recipe_from({"task": "translation", "model": model})).refuse()


def test_what_only_an_encoder_of_ours_has_is_an_obstacle() -> None:
    tags = {"task": "tagging", "model": SMALL["bert"], "tagging": {"crf": True}}
    assert [each.field for each in agree(recipe_from(tags)).obstacles] == ["tagging.crf"]
    words = {"task": "masked-lm", "model": {**SMALL["bert"], "activation": "gated_gelu"}}
    assert [each.field for each in agree(recipe_from(words)).obstacles] == ["model.activation"]


def test_the_two_tables_of_a_model_that_is_not_tied_decide() -> None:
    recipe = recipe_from({"model": {**SMALL["transformer"], **T5, "tie": "none", "scale_output": False}})
    built = build.transformer(recipe.model, 290, 290)  # type: ignore[arg-type]
    weights = store.weights(built)
    assert exports(recipe, None, weights).obstacles[0].field == "model.tie"
    weights["decoder.input.tokens.weight"] = weights["encoder.input.tokens.weight"].clone()  # so is one that came in
    assert exports(recipe, None, weights).line.endswith("Hugging Face (T5), CTranslate2")
    assert "config.json" in hub_files(recipe, weights, TOKENIZERS["translation"])


def unnamed(size: int = 0) -> HuggingFaceTokenizer:
    """A tokenizer of others, for a table of more rows than it has names."""
    return HuggingFaceTokenizer(json.loads(unigrams().to_str()), {"eos": "</s>", "pad": "<pad>"}, size)


def test_a_start_symbol_and_pieces_without_a_name_are_nothing_for_ctranslate2() -> None:
    values = {"task": "text-to-text", "model": {**SMALL["transformer"], **T5}}
    assert exports(recipe_from(values), unnamed()).line.endswith("(T5), CTranslate2")  # it begins with the pad piece
    recipe = recipe_from({**values, "text_to_text": {"spans": True}})
    assert exports(recipe, unnamed()).line == "this model can be exported to: Hugging Face (T5)"
    table = torch.ones(9, 12)  # the start symbol's row is the pad piece's, as in a T5 that came in
    assert exports(recipe, unnamed(), {"encoder.input.tokens.weight": table}).line.endswith("(T5), CTranslate2")
    recipe = recipe_from({"task": "language-model", "model": SMALL["gpt"]})
    assert exports(recipe, unnamed()).line.endswith("(GPT-2), CTranslate2")
    assert exports(recipe, unnamed(200)).line.endswith("(GPT-2)")
    with refused(UsageError, "to ctranslate2", "200"):
        exports(recipe, unnamed(200)).refuse("ctranslate2")


@pytest.mark.long(2)
def test_what_can_be_exported_is_read_there(tmp_path: Path) -> None:
    converters = pytest.importorskip("ctranslate2").converters
    read: Counter[str] = Counter()
    for number in range(600):
        recipe = drawn(number)
        said = exports(recipe) if recipe else None
        if recipe is None or said.obstacles:
            continue
        folder = write(tmp_path / str(number), exported(recipe))  # type: ignore[arg-type]
        _, told = getattr(transformers, AUTO[recipe.task]).from_pretrained(folder, output_loading_info=True)
        assert not any("pooler" not in name for name in told["missing_keys"])  # which a bare encoder has there anyway
        assert not told["unexpected_keys"]
        assert not told["mismatched_keys"]
        if not said.further and read[said.format] < 8:
            converters.TransformersConverter(str(folder)).convert(str(folder / "fast"))
        read[said.format] += 1
    assert read.keys() == FORMATS.keys() - set("roberta camembert xlm-roberta mbart m2m_100".split())  # only come in
