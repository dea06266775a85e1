"""Every cell of every tutorial runs, in order, as a notebook runs it; what a cell shows can be shown."""

from __future__ import annotations

import ast
import json
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
    """The cells of code."""
    return [one for one in json.loads(path.read_text(encoding="utf-8"))["cells"] if one["cell_type"] == "code"]


def run(source: str, names: dict[str, Any]) -> None:
    """Run a cell, and show what its last line gives."""
    *lines, last = ast.parse(source).body
    shown = [last] if isinstance(last, ast.Expr) else []
    rest = lines if shown else [*lines, last]
    exec(compile(ast.Module(rest, []), "cell", "exec"), names)
    for one in shown:
        value = eval(compile(ast.Expression(one.value), "cell", "eval"), names)
        show = getattr(value, "_repr_html_", getattr(value, "_repr_svg_", value.__repr__))
        assert isinstance(show(), str)


TRAINED = [pytest.mark.long(minutes=0.3)]
"""The mark of those that train a translator."""


@pytest.mark.parametrize("name", [pytest.param(one, marks=TRAINED if "PAIRS" in QUICK[one] else ()) for one in QUICK])
def test_a_tutorial_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(TUTORIALS / f"{name}.ipynb"):
        run("".join(cell["source"]), names)
        if "parameters" in cell["metadata"].get("tags", []):
            assert set(QUICK[name]) <= set(names)
            names |= QUICK[name]


def test_every_tutorial_is_run_and_keeps_no_output() -> None:
    """Numbers differ by machine, and pages in outputs are large: who runs a cell sees its own."""
    paths = list(TUTORIALS.glob("*.ipynb"))
    assert {path.stem for path in paths} == set(QUICK)
    assert all(not cell["outputs"] and cell["execution_count"] is None for path in paths for cell in cells(path))
