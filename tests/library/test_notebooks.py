"""Every notebook of the docs runs, cell by cell, and what it keeps is what a run shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.scripts import load_script

DOCS = Path(__file__).resolve().parents[2] / "docs"
COURSE = sorted((DOCS / "course").glob("*.ipynb"))
QUICK: dict[str, dict[str, Any]] = {
    "your-own-model": {"STEPS": 3},
    "your-own-translator": {"PAIRS": 400, "STEPS": 12},
    "what-a-head-is-for": {"PAIRS": 400, "STEPS": 12, "TEXTS": 10},
}
"""What the cell tagged ``parameters`` says here, where less will do; of the tutorials, which train for minutes."""
TRAINED = [pytest.mark.long(minutes=0.5)]
"""The mark of those that train."""
SLOW = ("your-own-translator", "what-a-head-is-for", "2-bert-gpt-t5", "3-images")


@pytest.fixture(scope="module")
def notebooks() -> ModuleType:
    return load_script("scripts/notebooks.py")


def cells(path: Path) -> list[dict[str, Any]]:
    """The cells of code."""
    return [one for one in json.loads(path.read_text(encoding="utf-8"))["cells"] if one["cell_type"] == "code"]


def marked(names: list[str]) -> list[Any]:
    return [pytest.param(name, marks=TRAINED if name in SLOW else ()) for name in names]


@pytest.mark.parametrize("name", marked(list(QUICK)))
def test_a_tutorial_runs(notebooks: ModuleType, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert list(notebooks.run(cells(DOCS / "tutorials" / f"{name}.ipynb"), QUICK[name]))


@pytest.mark.parametrize("name", marked([path.stem for path in COURSE]))
def test_the_course_shows_what_it_keeps(
    notebooks: ModuleType, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts, numbers, labels of pictures; what comes from a training (tagged ``trained``) differs by processor."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = cells(DOCS / "course" / f"{name}.ipynb")
    for cell, shown in zip(code, notebooks.run(code), strict=True):
        kept, now = notebooks.texts(cell["outputs"]), notebooks.texts(shown)
        assert len(kept) == len(now), cell["source"]
        if "trained" not in cell["metadata"].get("tags", []):
            assert not [both for both in zip(kept, now, strict=True) if notebooks.differ(*both)], cell["source"]


@pytest.mark.parametrize(
    ("kept", "now", "differs"),
    [
        ("loss 0.073 nats", "loss 0.074 nats", False),
        ("loss 0.073 nats", "loss 0.076 nats", True),
        ("loss 0.073 nats", "lost 0.073 nats", True),
        ("1,712,384 weights", "1,712,390 weights", False),
        ("[ 0. 1.]", "[-0. 1.]", False),
    ],
)
def test_what_differs(notebooks: ModuleType, kept: str, now: str, differs: bool) -> None:
    assert notebooks.differ(kept, now) == differs


def test_notebooks_keep_their_outputs_and_are_all_run() -> None:
    tutorials = sorted((DOCS / "tutorials").glob("*.ipynb"))
    assert {path.stem for path in tutorials} == set(QUICK)
    for path in (*tutorials, *COURSE):
        assert [one["execution_count"] for one in cells(path)] == list(range(1, 1 + len(cells(path)))), path.name


@pytest.mark.parametrize("path", [*COURSE, DOCS / "course" / "index.md"], ids=lambda path: path.stem)
def test_links_of_the_course(path: Path) -> None:
    """To files that exist and name what they are linked for, and to views of the page."""
    text = path.read_text(encoding="utf-8")
    known = (DOCS.parent / "web" / "src" / "lib" / "views.ts").read_text(encoding="utf-8")
    for name, file in re.findall(r"\[`([\w.]+)`\]\(([\w./-]+)", text):
        assert re.search(rf"(class|def) {name}\b", (path.parent / file).read_text(encoding="utf-8")), name
    assert all(f"['{view}'," in known for view in re.findall(r"#view=(\w+)", text))
