"""Every cell of every tutorial runs, in order, as a notebook runs it; what a cell shows can be shown."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TUTORIALS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
QUICK: dict[str, dict[str, Any]] = {
    "attention-by-hand": {},
    "your-own-model": {"STEPS": 3},
    "your-own-translator": {"PAIRS": 400, "STEPS": 12},
    "what-a-head-is-for": {"PAIRS": 400, "STEPS": 12, "TEXTS": 10},
}
"""What the cell tagged ``parameters`` says here, where less will do."""


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def code(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The source of each cell of code, and its tags."""
    for cell in cells(path):
        if cell["cell_type"] == "code":
            yield "".join(cell["source"]), cell["metadata"].get("tags", [])


def run(source: str, names: dict[str, Any]) -> None:
    """Run a cell, and show what its last line gives."""
    *lines, last = ast.parse(source).body
    shown = [last] if isinstance(last, ast.Expr) else []
    rest = lines if shown else [*lines, last]
    exec(compile(ast.Module(rest, []), "cell", "exec"), names)
    for one in shown:
        value = eval(compile(ast.Expression(one.value), "cell", "eval"), names)
        picture = next(
            (getattr(value, f"_repr_{kind}_")() for kind in ("html", "svg") if hasattr(value, f"_repr_{kind}_")),
            repr(value),
        )
        assert isinstance(picture, str)


def check(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    names: dict[str, Any] = {"__name__": "__main__"}
    for source, tags in code(TUTORIALS / f"{name}.ipynb"):
        run(source, names)
        if "parameters" in tags:
            assert set(QUICK[name]) <= set(names)
            names |= QUICK[name]


def test_every_tutorial_is_run() -> None:
    assert {path.stem for path in TUTORIALS.glob("*.ipynb")} == set(QUICK)


@pytest.mark.parametrize("name", ["attention-by-hand", "your-own-model"])
def test_short_ones_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(name, tmp_path, monkeypatch)


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("name", ["your-own-translator", "what-a-head-is-for"])
def test_those_that_train_a_translator_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(name, tmp_path, monkeypatch)


@pytest.mark.parametrize("path", sorted(TUTORIALS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_output_is_kept(path: Path) -> None:
    """Numbers differ by machine, and pages in outputs are large: who runs a cell sees its own."""
    assert all(
        not cell["outputs"] and cell["execution_count"] is None for cell in cells(path) if cell["cell_type"] == "code"
    )
