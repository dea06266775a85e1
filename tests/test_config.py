"""Recipes: what is written is what is read, and a wrong key is answered with the nearest one."""

import tomllib
from pathlib import Path

import pytest

from regard.config import Recipe, dump_toml, known_keys, override, recipe_from, recipe_values
from regard.errors import UsageError


def test_a_recipe_survives_its_toml() -> None:
    recipe = recipe_from({"data": {"weights": [0.5, 2]}, "training": {"rate": 1e-9}, "model": {"d_k": 7}})
    assert recipe_from(tomllib.loads(dump_toml(recipe.model_dump()))) == recipe


@pytest.mark.parametrize("text", ["", 'a "b" \\ c', "tab\t bell\x07", "\U000e0001 tag", "ß🙂"])
def test_any_text_survives_its_toml(text: str) -> None:
    assert tomllib.loads(dump_toml({"text": {"source_language": text}})) == {"text": {"source_language": text}}


@pytest.mark.parametrize(("wrong", "near"), [("model.d_modell", "model.d_model"), ("d_model", "model.d_model")])
def test_an_unknown_key_is_answered_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"Did you mean '{near}'"):
        override({}, [f"{wrong}=1"])


def test_every_key_can_be_set_to_its_default() -> None:
    values = {name: getattr(Recipe(), name) for name in ("format", "task", "seed")}
    values |= {f"{part}.{name}": value for part in ("text", "data", "model", "training", "decoding")
               for name, value in getattr(Recipe(), part).model_dump().items()}  # fmt: skip
    assert sorted(values) == sorted(known_keys())
    plain = dump_toml({name.replace(".", "/"): value for name, value in values.items()}).replace("/", ".")
    settings = [line.replace(" = ", "=", 1) for line in plain.splitlines() if line]
    assert recipe_from(override({}, settings)) == Recipe()


def test_what_has_no_end_is_no_recipe() -> None:
    with pytest.raises(UsageError, match="larger than 1 MB"):
        recipe_values(Path("/dev/zero"))


@pytest.mark.parametrize("content", ["x = " + "[" * 100_000, "x = 2024-02-30", "[model", "\x00"])
def test_what_is_no_toml_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "recipe.toml").write_text(content)
    with pytest.raises(UsageError, match="cannot be read as TOML"):
        recipe_values(tmp_path / "recipe.toml")


def test_nonsense_of_a_setting_is_text() -> None:
    assert override({}, ["task=" + "[" * 100_000])["task"][0] == "["


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model": {"heads": 3}}, "model: d_model 512 is not divisible by heads 3; set d_k and d_v$"),
        ({"modle": {"heads": 3}}, "Did you mean 'model'"),
        ({"task": "x" * 1000}, r"got 'x{79}\)$"),
        ({"decoding": {"length_penalty": 1e300}}, "decoding.length_penalty"),
        ({"decoding": {"max_extra": 10**12}}, "decoding.max_extra"),
        ({"data": {"look_ahead": 10**21}}, "data.look_ahead"),
        ({"text": {"source_language": "e\x1b[31mn"}}, "text.source_language"),
        ({"training": {"steps": True}}, "training: steps is no question of true or false$"),
    ],
)
def test_a_refusal_is_short(values: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        recipe_from(values)
