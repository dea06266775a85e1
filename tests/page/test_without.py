"""The view of ideas that were taken out shows the numbers of the file, of the one that is chosen."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.inspection.folders.walk import CORPUS
from regard.runs.demo import NAME
from regard.runs.demo.grammar.scores import Accuracy
from regard.runs.demo.translation import DemoScores
from regard.runs.demo.without import Comparison, Measured, write
from tests.page.conftest import addresses
from tests.page.models import made
from tests.page.view import Watch

pytestmark = pytest.mark.long(minutes=0.2)

LAYERS = ["encoder", "encoder.layers.0"]


def measured(exact: float, right: int, loss: float, norm: float) -> Measured:
    scores = DemoScores(exact, 100 * exact, "nrefs:1", Accuracy(right, 8))
    norms = [(50, [norm, 2 * norm]), (100, [norm / 4, norm / 8])]
    curve = [(50, 2 * loss), (100, loss)]
    return Measured(3, 100, 1234, curve, LAYERS, norms, None, scores, {"cross 1": (2.5, loss)}, ("Das Tier.",))


@pytest.fixture(scope="module")
def served_demo(_chromium: None, page_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("without") / "demo"
    shutil.copytree(made("translator", page_models), folder / "model")
    (folder / CORPUS).mkdir()
    models = {
        "whole": measured(0.96, 8, 0.1, 0.4),
        "scale": measured(0.5, 4, 0.3, 8.0),
        "mask": measured(0.0, 0, 0.01, 2.0),
    }
    write(folder / NAME, Comparison(("The animal.",), ("Das Tier.",), models))
    yield from addresses(tmp_path_factory, folder)


def test_each_idea_has_its_numbers(served_demo: str, view: Watch) -> None:
    shown = view(served_demo, "#view=without")
    scores = shown.get_by_role("region", name="Scores")
    scores.wait_for()
    ideas = shown.get_by_role("radiogroup", name="Without")
    assert ideas.get_by_role("radio").all_inner_texts() == ["√d_k", "The mask"]
    for idea, exact, pronouns, norm in (("scale", "50.0 %", "4 of 8", "16"), ("mask", "0.0 %", "0 of 8", "4")):
        text = scores.inner_text()
        assert [one for one in ("96.0 %", exact, pronouns, f"without {idea}") if one not in text] == []
        row = shown.get_by_role("region", name="Gradients by layer").get_by_role("row", name="encoder 1")
        assert row.locator("td.figure").all_inner_texts()[1].startswith(norm)
        ideas.get_by_role("radio", checked=True).press("ArrowRight")
    shown.get_by_role("slider", name="Step").press("End")
    assert "at step 100" in shown.get_by_role("region", name="Gradients by layer").inner_text().replace("\n", " ")
    assert shown.get_by_role("region", name="Entropy of attention").inner_text().count("2.5 →") == 2
