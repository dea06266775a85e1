"""The rows of our Table 3 can be trained, differ from the base in what they say, and are judged by the base's seeds."""

import sys
from pathlib import Path
from typing import Any

import pytest

from regard.config import recipe_from, recipe_values

RECIPES = Path(__file__).resolve().parents[2] / "recipes" / "multi30k"


@pytest.fixture
def asked(load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    def options(*words: str) -> Any:
        results = str(tmp_path / "table3.jsonl")
        monkeypatch.setattr(sys, "argv", ["table3.py", "--results", results, "--work", str(tmp_path), *words])
        return load("table3").options()

    return options


def test_every_row_changes_its_fields_and_nothing_else(load: Any, asked: Any) -> None:
    table3 = load("table3")
    base = table3.recipe_of(asked(), table3.CHOICES[0])
    assert base == recipe_from(recipe_values(RECIPES / "paper.toml"), "x")
    assert len({one.name for one in table3.CHOICES}) == len(table3.CHOICES)
    for choice in table3.CHOICES[1:]:
        recipe = table3.recipe_of(asked(), choice)
        changed = set()
        for section in ("text", "data", "model", "training", "decoding"):
            was, now = (getattr(one, section).model_dump() for one in (base, recipe))
            changed |= {f"{section}.{name}" for name in was | now if was.get(name) != now.get(name)}
        named = {setting.split("=")[0] for setting in choice.settings}
        assert changed <= named, choice.name
        assert changed


def test_the_papers_system_is_the_papers() -> None:
    recipe = recipe_from(recipe_values(RECIPES / "paper.toml"), "captions")
    paper = recipe_from(recipe_values(RECIPES.parent / "paper" / "base.toml"), "paper")
    for name in ("norm", "norm_place", "activation", "positions", "tie", "attention_dropout", "d_k"):
        assert getattr(recipe.model, name) == getattr(paper.model, name), name
    for name in ("schedule", "beta1", "beta2", "epsilon", "clip", "label_smoothing", "keep", "optimiser"):
        assert getattr(recipe.training, name) == getattr(paper.training, name), name


def test_rows_are_divided_and_listed_with_their_sizes(load: Any, asked: Any, capsys: Any) -> None:
    table3 = load("table3")
    every = table3.wanted(asked())
    assert [one.name for one, _ in every].count("base") == 3
    parts = [table3.wanted(asked("--part", f"{place}/2")) for place in (1, 2)]
    assert sorted(map(str, parts[0] + parts[1])) == sorted(map(str, every))
    asked("--dry-run", "--row", "base", "--row", "d-model-256", "--steps", "100")
    table3.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    sizes = [float(line.split(" M ")[0].split()[-1]) for line in lines[:-1]]
    assert sizes[0] == sizes[1] == sizes[2] < sizes[3] / 2
