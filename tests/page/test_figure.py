"""Figure 1 on the page: the loaded model's own boxes, the numbers inside them, and a vector on its way."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from regard.inspection.folders.models import Models
from regard.inspection.questions.answers import answer
from tests.inspection.payloads import Answer, unpack
from tests.page.models import made
from tests.page.numbers import shows
from tests.page.reading import BEFORE, TaskOf, Visit, rows
from tests.page.view import Shown

pytestmark = pytest.mark.long(minutes=0.2)
FOUND = {
    "translator": ("encoder, layer 1, Multi-head attention", "decoder, layer 1, Multi-head cross-attention"),
    "recurrent": ("encoder, layer 1, GRU, both ways", "decoder, Attention"),
    "writer": ("layer 1, Masked multi-head attention", "Linear, softmax"),
    "classifier": ("layer 1, Feed-forward", "Pooling, linear, softmax"),
    "spans": ("encoder, Relative positions", "encoder, layer 1, RMS norm"),
}
"""Some boxes that a model must have, as they are called."""


def asked(folder: Path, name: str, question: str, **given: Any) -> Answer:
    """The server's own answer, of the same text."""
    return unpack(answer(Models([made(name, folder)]), question, {"model": 0, "text": BEFORE[name], **given}))


def boxes(shown: Shown) -> list[str]:
    """What the boxes are called, from the bottom up, with their parameters."""
    return [one.get_attribute("aria-label") or "" for one in shown.locator("figure svg [role=button]").all()]


@pytest.mark.parametrize("name", FOUND)
def test_the_boxes_of_a_model(visit: Visit, task: TaskOf, page_models: Path, name: str) -> None:
    """One layer of each stack, each box with its parameters; the arrows with tokens × numbers."""
    shown = visit(name, view="figure")
    shown.locator("figure svg").wait_for()
    labels = boxes(shown)
    for wanted in FOUND[name]:
        assert any(label.startswith(wanted) for label in labels), labels
    told = sorted(int(one.replace(",", "")) for label in labels for one in re.findall(r": ([\d,]+) param", label))
    values, _ = asked(page_models, name, "figure")
    wanted = [box[3] for box in values["boxes"] if box[1] <= 1 and box[3] and not box[4]]
    assert told == sorted(wanted)
    model = task(name).recipe.model
    sizes = shown.locator("figure svg text.size").all_text_contents()
    assert any(re.fullmatch(rf"\d+ × {model.d_model}", size) for size in sizes)


def test_what_a_box_does_to_a_token(visit: Visit, page_models: Path) -> None:
    """Opened by keyboard, in the address, and the units of the answer at the same token."""
    shown = visit("classifier", view="figure")
    box = shown.locator("figure svg [role=button]").filter(has_text="Feed-forward")
    box.press("Enter")
    inside = shown.get_by_role("region", name="What the box does")
    inside.get_by_role("heading", name="Feed-forward").wait_for()
    shown.soon(lambda: "box=encoder.1.feedforward" in shown.url)
    shown.get_by_role("radiogroup", name="Token that is read").get_by_role("radio").nth(2).click()
    given = {"stack": "encoder", "layer": 1, "part": "feedforward", "token": 2}
    values, arrays = asked(page_models, "classifier", "box", **given)
    units = [str(unit + 1) for unit in values["units"]]
    table = shown.soon(lambda: rows(inside.get_by_role("table")), lambda found: [row[0] for row in found] == units)
    for unit, (_, fires, _, length) in zip(values["units"], table, strict=True):
        assert shows(fires, arrays["fired"][unit])
        assert shows(length, arrays["length"][unit])
    assert f"{values['firing']} of them" in inside.inner_text()


def test_mean_and_deviation_of_a_norm(visit: Visit, page_models: Path) -> None:
    shown = visit("translator", view="figure", box="decoder.2.cross_norm")
    inside = shown.get_by_role("region", name="What the box does")
    said = shown.soon(inside.inner_text, lambda text: "deviation" in text and "Mean" in text)
    found = re.search(r"Mean (\S+), deviation (\S+):", said)
    assert found
    token = int(shown.evaluate(CHOSEN))
    given = {"stack": "decoder", "layer": 2, "part": "cross_norm", "token": token}
    _, arrays = asked(page_models, "translator", "box", **given)
    assert shows(found[1], arrays["mean"][0])
    assert shows(found[2], arrays["deviation"][0])


CHOSEN = """() => [...document.querySelectorAll('[aria-label="Token that is written"] [role=radio]')]
    .findIndex(one => one.ariaChecked === 'true')"""


def test_a_vector_travels(visit: Visit) -> None:
    """Step by step, through all layers, until the model says what comes next."""
    shown = visit("writer", view="figure")
    shown.get_by_role("button", name=re.compile("^let .* travel$")).click()
    status = shown.locator("figure [role=status]")
    shown.soon(status.inner_text, lambda text: "what comes next" in text)
    shown.get_by_role("button", name="one box back").click()
    shown.soon(status.inner_text, lambda text: "layer 2" in text)
    assert shown.get_by_role("radiogroup", name="decoder layer").get_by_role("radio", name="2").is_checked()


def test_the_prediction_after_each_layer(visit: Visit, page_models: Path) -> None:
    shown = visit("writer", view="figure", box=".0.output")
    lens = shown.get_by_role("region", name="Predictions by layer and token")
    lens.wait_for()
    values, _ = asked(page_models, "writer", "layers", stack="decoder")
    assert len(rows(lens.get_by_role("table"))) == len(values["lens"])
