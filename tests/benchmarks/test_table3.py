"""The rows of our Table 3 can be trained, differ from the base in what they say, and are judged by the base's seeds."""

import json
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
    assert base == recipe_from(recipe_values(RECIPES / "paper-en-de.toml"), "x")
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


@pytest.mark.parametrize("steps", [1000, 11000, 33000])
def test_other_steps_keep_the_highest_rate(load: Any, asked: Any, steps: int) -> None:
    table3 = load("table3")
    base = table3.recipe_of(asked(), table3.CHOICES[0]).training
    other = table3.recipe_of(asked("--steps", str(steps)), table3.CHOICES[0]).training
    assert (other.steps, other.warmup, other.save_every) == (steps, steps // 10, steps // 20)
    assert other.rate * other.warmup**-0.5 == pytest.approx(base.rate * base.warmup**-0.5, rel=1e-5)


def test_other_settings_need_other_results(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["table3.py", "--set", "training.product=exact"])
    with pytest.raises(SystemExit):
        load("table3").options()


def test_the_papers_system_is_the_papers() -> None:
    for direction in ("en-de", "de-en"):
        recipe = recipe_from(recipe_values(RECIPES / f"paper-{direction}.toml"), direction)
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


def test_a_dry_run_adds_up_what_has_no_result(load: Any, asked: Any, capsys: Any) -> None:
    table3 = load("table3")
    named = ("--dry-run", "--row", "base", "--seed", "1", "--seed", "2")
    totals = []
    for seeds in ((), (1,), (1, 2)):
        rows = [{"run": f"base en-de 11000 {seed}"} for seed in seeds]
        asked(*named).results.write_text(json.dumps({"rows": rows}) + "\n")
        table3.main()
        *lines, total = capsys.readouterr().out.splitlines()
        assert [line.endswith("has a result") for line in lines] == [seed in seeds for seed in (1, 2)]
        totals.append(float(total.split()[-5]))
    assert totals == [1.3, 0.6, 0.0]


def test_parts_and_settings_that_cannot_be_are_refused(load: Any, asked: Any) -> None:
    for part in ("0/2", "3/2", "1/0", "half"):
        with pytest.raises(SystemExit):
            asked("--part", part)
    standard = load("table3").HERE.parent / ".bench" / "table3"
    with pytest.raises(SystemExit):
        asked("--set", "model.heads=2", "--work", str(standard))
    assert asked("--set", "model.heads=2").set == ["model.heads=2"]


def test_a_row_with_a_result_is_not_repeated_and_the_test_set_needs_its_own(load: Any, asked: Any) -> None:
    table3 = load("table3")
    once, base = asked("--row", "base", "--steps", "7"), table3.CHOICES[0]
    assert table3.result(once, base, 1) is None
    row = {"run": "base en-de 7 1", "val beam 5 lc": 1.0}
    once.results.write_text(json.dumps({"rows": [row]}) + "\n")
    assert table3.result(once, base, 1) == row
    assert table3.result(once, base, 2) is None
    assert table3.result(asked("--row", "base", "--steps", "8"), base, 1) is None
    assert table3.result(asked("--row", "base", "--steps", "7", "--test"), base, 1) is None
    with pytest.raises(SystemExit):
        asked("--test")


def test_a_row_that_diverged_or_was_not_run_says_so(load: Any) -> None:
    row = {"direction": "en-de", "seed": 1, "settings": "", "parameters": 2_500_000, "threads": 1, "steps": 100}
    base = {"run": "base en-de 100 1", "row": "base", "val beam 5 lc": 39.0}
    base |= {"train minutes": 2.0, "validation loss": 1.5}
    failed = {"run": "pre-norm en-de 100 1", "row": "pre-norm", "failed": "diverged"}
    lines = load("choices").table([{"rows": [{**row, **one}]} for one in (base, failed)])
    assert "| F pre-norm |  |  |  | diverged |  |" in lines
    assert any("Not run yet:" in line for line in lines)
