"""Recipes: what is written is what is read, and a wrong key is answered with the nearest one."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from regard.cli import EXAMPLES, NO_NEGATIVES, app
from regard.config import (
    FAMILIES,
    TASKS,
    Decoding,
    Recipe,
    TransformerSection,
    did_you_mean,
    dump_toml,
    known_keys,
    nearest,
    override,
    recipe_from,
    recipe_toml,
    recipe_values,
)
from regard.config.reading import _OURS
from regard.models.presets import PRESETS
from regard.nn.positions import Relative
from regard.system.errors import UsageError
from tests.refusals import refused


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"data": {"weights": [0.5, 2]}, "training": {"rate": 1e-9, "minutes": 0.1}, "model": {"d_k": 7}},
        {"text": {"joint": False}, "model": {"tie": "two"}, "training": {"schedule": "noam", "patience": 3}},
    ],
)
def test_a_commented_recipe_is_the_same_recipe(values: dict[str, Any]) -> None:
    recipe = recipe_from(values)
    text = recipe_toml(recipe)
    whole = tomllib.loads(dump_toml(recipe.model_dump()))
    assert recipe_from(tomllib.loads(text)) == recipe_from(whole) == recipe
    own = {name: value for name, value in whole.items() if name in recipe.sections or not isinstance(value, dict)}
    assert tomllib.loads(text) == own


def test_every_field_is_explained_beside_its_choices() -> None:
    recipes = [Recipe(task=info.name, model=FAMILIES[family]()) for info in TASKS.values() for family in info.families]
    lines = [line for recipe in recipes for line in recipe_toml(recipe).splitlines()]
    for name in known_keys():
        inner = name.rpartition(".")[2]
        (line, *_) = [line for line in lines if line.startswith((f"{inner} = ", f"# {inner} is not set: "))]
        assert len(line.partition("# ")[2].partition(": ")[2].split() or line.partition("# ")[2].split()) > 1, line
    assert 'norm_place = "post"  # post | pre; post: the paper; pre: trains without long warm-up' in lines
    assert "# Training: steps, optimiser, schedule, checkpoints [Vaswani17 §5]." in lines


@pytest.mark.parametrize("text", ["", 'a "b" \\ c', "tab\t bell\x07", "\U000e0001 tag", "ß🙂"])
def test_any_text_survives_its_toml(text: str) -> None:
    assert tomllib.loads(dump_toml({"text": {"source_language": text}})) == {"text": {"source_language": text}}


@pytest.mark.parametrize(("wrong", "near"), [("model.d_modell", "model.d_model"), ("d_model", "model.d_model")])
def test_an_unknown_key_is_answered_with_the_nearest(wrong: str, near: str) -> None:
    with refused(UsageError, "settings", f"{wrong!r}", f"{near!r}"):
        override({}, [f"{wrong}=1"])


def test_every_key_can_be_set_to_its_default() -> None:
    whole = Recipe().model_dump()
    values = {name: value for name, value in whole.items() if not isinstance(value, dict)}
    for part in whole.keys() - values.keys():
        values |= {f"{part}.{name}": value for name, value in whole[part].items()}
    others = {f"model.{name}" for section in FAMILIES.values() for name in section.model_fields}
    others -= {f"model.{name}" for name in TransformerSection.model_fields}
    assert sorted(values) == sorted(set(known_keys()) - others)
    plain = dump_toml({name.replace(".", "/"): value for name, value in values.items()}).replace("/", ".")
    settings = [line.replace(" = ", "=", 1) for line in plain.splitlines() if line]
    assert recipe_from(override({}, settings)) == Recipe()
    assert override({}, ["task=" + "[" * 100_000])["task"][0] == "[", "nonsense is text"


def test_what_is_no_plain_file_is_no_recipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"#" * ((1 << 20) + 1))
    for path, *holds in ((Path("/dev/zero"),), (tmp_path / "pipe",), (tmp_path,), (tmp_path / "large", "1 MB")):
        with refused(UsageError, path, *holds):
            recipe_values(path)


ENDLESS = ("a." * 500_000 + "a = 1", "[" + "a." * 500_000 + "a]", "x = " + "[" * 9999, "x = " + "[" * 100_000)
NO_TOML = ("x = 0x" + "f" * 5000, "x = 9" + "9" * 99, "x = 2024-02-30", "[model", "\x00")


@pytest.mark.parametrize("content", ENDLESS + NO_TOML)
def test_what_takes_for_ever_no_number_holds_or_is_no_toml_is_no_recipe(tmp_path: Path, content: str) -> None:
    (tmp_path / "recipe.toml").write_text(content)
    with refused(UsageError, "recipe.toml"):
        recipe_values(tmp_path / "recipe.toml")


@pytest.mark.parametrize(
    "values", [{"training": {"steps": -(10**5000)}}, {"format": 10**5000}, {"model": {"family": 10**5000}}]
)
def test_a_number_that_cannot_be_written_is_one_sentence(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        recipe_from(values)
    assert len(str(caught.value)) < 200


OF_FAMILY = {"bert": "tagging", "gpt": "language-model", "transformer": "translation"}


def relative(family: str, buckets: int, distance: int) -> dict[str, Any]:
    sizes = {"family": family, "positions": "relative", "relative_buckets": buckets, "relative_distance": distance}
    return {"task": OF_FAMILY[family], "model": sizes}


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"model": {"heads": 3}}, "model: d_model 512 heads 3 d_k d_v"),
        ({"modle": {"heads": 3}}, "'modle' 'model'"),
        ({"task": "x" * 1000}, f"task: {'x' * 79} translation"),
        ({"decoding": {"length_penalty": 1e300}}, "decoding.length_penalty"),
        ({"decoding": {"max_extra": 10**12}}, "decoding.max_extra"),
        ({"data": {"look_ahead": 10**21}}, "data.look_ahead"),
        ({"text": {"source_language": "e\x1b[31mn"}}, "text.source_language"),
        ({"model": 3}, "model [model]"),
        ({"training": {"accumulate": 10**6}}, "training.accumulate"),
        ({"training": {"weight_decay": 0.1}}, 'training.weight_decay training.optimiser "adamw"'),
        ({"training": {"steps": True}}, "training: steps"),
        (relative("bert", 3, 128), "model: relative_buckets 3 4"),
        (relative("transformer", 2, 128), "relative_buckets 2 4"),
        (relative("bert", 512, 128), "relative_distance 128 512 relative_buckets"),
        (relative("gpt", 32, 16), "relative_distance 16 32 relative_buckets"),
        (relative("transformer", 32, 16), "relative_distance 16"),
        (relative("bert", 32, 4), "relative_distance 4 8"),
    ],
)
def test_a_refusal_is_short(values: dict[str, object], names: str) -> None:
    with refused(UsageError, "recipe", *names.split()):
        recipe_from(values)


@pytest.mark.parametrize(
    ("family", "buckets", "distance"),
    [("bert", 4, 2), ("bert", 5, 2), ("bert", 32, 9), ("gpt", 2, 2), ("gpt", 32, 17), ("transformer", 4, 3)],
)
def test_all_distances_find_their_bucket_at_the_border_of_what_is_accepted(family: str, buckets: int, distance) -> None:
    section: Any = recipe_from(relative(family, buckets, distance)).model
    ahead_LM = torch.arange(-300, 301)[None]
    for direction in section.directions:
        found_M = Relative(1, buckets, distance, direction == 2)._bucket(ahead_LM)[0]
        assert found_M.min() == 0
        assert found_M.max() < buckets
        back_M = found_M[:301].flip(0)  # from the query itself
        assert (back_M.diff() >= 0).all()
        assert (back_M[distance:] == buckets // direction - 1).all()


def test_what_another_choice_makes_meaningless_is_no_concern() -> None:
    recipe_from({"model": {"relative_buckets": 3, "relative_distance": 2}})
    recipe_from({"task": "sentence-pairs", "model": {"segments": 0}})


def options(command: str) -> list[str]:
    found = app[command].assemble_argument_collection(default_parameter=NO_NEGATIVES)
    return [name for argument in found for name in argument.names]


NAMES = [*EXAMPLES]
MEANT = {
    "options": (
        options("train"),
        "--sorce --source, --minuts --minutes, --max-steps --steps, --out --output, --src --source, "
        "--train-file --train, --no-resume --resume, --gpu --device, --dev --valid",
        "--lr --batch --data --name --zzz --verbose --dropout --test",
    ),
    "commands": (
        NAMES,
        "trian train, eval evaluate, tran train, translator translate, embed encode",
        "run ls host list",
    ),
    "tasks": (
        TASKS,
        "lm language-model, langauge language-model, ner tagging, mlm masked-lm, t5 text-to-text, "
        "image image-classification, translate translation, Classification classification",
        "cat",
    ),
    "presets": (PRESETS, "bert bert-tiny, t5 t5-tiny, tinny tiny, medium gpt2-medium", "transformer"),
    "keys": (
        known_keys(),
        "d_model model.d_model, model.dmodel model.d_model, modle.heads model.heads, training.lr training.rate, "
        "learning_rate training.rate, batch_size training.tokens, training.warmup_steps training.warmup, "
        "model.vocab_size text.vocabulary, data.max_length data.max_tokens, decoding.length decoding.length_penalty, "
        "masking.rate masking.share",
        "model.foo training.foo masking.p x.y classification.labels",
    ),
}
"""What is known; words, each with the one it means; and words that mean none of them."""


@pytest.mark.parametrize("kind", MEANT)
def test_the_word_that_was_meant(kind: str) -> None:
    known, meant, strange = MEANT[kind]
    expected = dict(pair.split() for pair in meant.split(", ")) | dict.fromkeys(strange.split())
    assert {word: did_you_mean(word, known) for word in expected} == expected
    assert nearest("trian", NAMES) == " Did you mean 'train'?"
    assert nearest("xyzzy", NAMES) == nearest("x", []) == ""


def test_what_is_called_otherwise_elsewhere_is_something_of_ours() -> None:
    every = {name for command in app if not command.startswith("-") for name in options(command)}
    plain = {name.strip("-").replace("-", "_") for name in every}
    known = {*plain, *NAMES, *TASKS, *(key.rpartition(".")[2] for key in known_keys()), "help"}
    assert set(_OURS) <= known
    for ours, words in _OURS.items():
        assert ours not in words.split()


def test_the_decoder_may_have_heads_of_its_own() -> None:
    model = recipe_from({"model": {"d_model": 12, "heads": 3, "decoder_heads": 2}}).model
    assert isinstance(model, TransformerSection)
    assert model.attention == {"encoder": (6, 3), "decoder": (6, 2), "cross": (6, 2)}
    assert (model.divisor_of("encoder"), model.divisor_of("cross")) == (4**0.5, 6**0.5)
    assert (model.decoder.heads, model.decoder.key_size) == (2, 6)
    assert "decoder_heads" in model.deciding()
    assert "decoder_heads" not in TransformerSection().deciding()
    for wrong in ({"decoder_heads": 5}, {"decoder_heads": 4, "positions": "rotary", "heads": 2}):
        with refused(UsageError, None, "decoder"):
            recipe_from({"model": {"d_model": 12, "heads": 3, **wrong}})


@pytest.mark.parametrize(
    ("positions", "own"), [("sinusoidal", "sinusoidal"), ("learned", "learned"), ("rotary", "none"), ("alibi", "none")]
)
def test_a_recurrent_decoder_has_no_positions_that_act_in_attention(positions: str, own: str) -> None:
    model = recipe_from({"model": {"decoder_cell": "ssru", "positions": positions}}).model
    assert isinstance(model, TransformerSection)
    assert (model.positions, model.decoder.positions) == (positions, own)
    assert "decoder_cell" in model.deciding()
    assert "decoder_cell" not in TransformerSection().deciding()


@pytest.mark.parametrize(
    ("section", "field", "does", "nothing"),
    [
        ("text", "bpe_dropout", "translation text-to-text classification tagging", "sentence-pairs"),
        ("data", "word_dropout", "classification sentence-pairs", "translation text-to-text tagging"),
    ],
)
def test_dropout_of_the_input_is_refused_where_it_would_do_nothing(
    section: str, field: str, does: str, nothing: str
) -> None:
    for task in does.split():
        recipe_from({"task": task, section: {field: 0.1}})
    for task in f"{nothing} language-model masked-lm image-classification encoding".split():
        with refused(UsageError, None, f'{section}.{field} is not for task = "{task}"'):
            recipe_from({"task": task, section: {field: 0.1}})


def test_a_least_length_above_the_most_is_refused() -> None:
    with pytest.raises(ValidationError, match="min_length 4 is above max_length 3"):
        Decoding(min_length=4, max_length=3)
    assert Decoding(min_length=3, max_length=3).min_length == 3
