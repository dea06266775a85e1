"""The page keeps to one set of weights in every view until the reader reloads."""

from __future__ import annotations

from functools import partial
from operator import le
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from regard.inspection.folders.folder import Folder
from regard.models.ablation import Ablations, Head
from tests.page.reading import alerts, flipped, settled, soon
from tests.page.view import ENDED, Watch, serving
from tests.tasks.small_tasks import SOURCE, log, put, translator

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

NOTHING, OFF = Ablations(), Ablations((Head("cross", 1, 1),))
LATER = {"Words": {"near", "drift"}}
"""What is asked in a view when its reader has stayed for a moment."""
HEAD = {"view": "heads", "kind": "cross", "layer": 1, "head": 1}


def makes(task: Any, changes: Ablations = NOTHING) -> str:
    with changes.apply(task.recipe.model):
        return str(task.translate(SOURCE, beam=1))


def listened(shown: Page) -> list[tuple[str, str | None]]:
    """The questions that a page asks from now on, each with the name of the weights that it is about."""
    asked: list[tuple[str, str | None]] = []

    def heard(request: Request) -> None:
        if request.method == "POST":
            given = request.post_data_json
            asked.append(
                (request.url.rpartition("/")[2], given.get("weights") if not given.get("snapshot") else "kept")
            )

    shown.on("request", heard)
    return asked


def every_view(shown: Page, asked: list[tuple[str, str | None]]) -> None:
    """Look at all that there is, and then at the heads again; some questions are asked a moment later."""
    for tab in shown.get_by_role("navigation").get_by_role("button").all():
        tab.click()
        wanted = LATER.get(tab.inner_text(), set())
        soon(shown, lambda: {question for question, _ in asked}, partial(le, wanted))
        settled(shown)
        assert not alerts(shown)
    shown.get_by_role("navigation").get_by_role("button", name="Heads").click()
    settled(shown)


@pytest.mark.long(minutes=0.5)
def test_newer_weights_come_only_when_the_reader_looks_again(view: Watch, tmp_path: Path) -> None:
    """A head that is switched off is one of the weights that were looked at, though a training has written others."""
    first, newer = translator(4), translator(1)
    says = [makes(task, changes) for task in (first, newer) for changes in (NOTHING, OFF)]
    assert len(set(says)) == 4
    folder = put(tmp_path / "learning", first)
    log(folder, [{"kind": "start", "step": 0, "steps": 100}])
    with serving(folder, log=tmp_path / "stderr") as address:
        shown = view(
            address, "#" + urlencode({"text": SOURCE, "view": "heads", "kind": "cross", "layer": 1, "head": 1})
        )
        output, again = shown.locator(".output").first, shown.get_by_role("button", name="look again")
        soon(shown, output.inner_text, lambda text: text.startswith(says[0]))
        settled(shown)
        asked, name = listened(shown), Folder(folder).state(0)["weights"]
        put(folder, newer)
        again.wait_for()
        flipped(shown, "head 1·1")
        soon(shown, output.inner_text, lambda text: text.startswith(says[1]))
        every_view(shown, asked)
        assert {weights for _, weights in asked} == {name}
        assert {question for question, _ in asked} >= {"look", "write", "equation", "places", "tree"}
        again.click()
        soon(shown, output.inner_text, lambda text: text.startswith(says[3]))
        soon(shown, again.count, lambda count: count == 0)
        settled(shown)
        asked.clear()
        every_view(shown, asked)
        assert {weights for _, weights in asked} == {Folder(folder).state(0)["weights"]}
        flipped(shown, "head 1·1")
        soon(shown, output.inner_text, lambda text: text.startswith(says[2]))
    view.forgive(*ENDED)


@pytest.mark.long(minutes=0.4)
def test_weights_that_are_gone_are_told(view: Watch, tmp_path: Path) -> None:
    """Somebody else has looked at newer ones: nothing is shown of those in their place."""
    first, newer = translator(4), translator(1)
    folder = put(tmp_path / "learning", first)
    with serving(folder, log=tmp_path / "stderr") as address:
        place = "#" + urlencode({"text": SOURCE, **HEAD})
        shown = view(address, place)
        output, again = shown.locator(".output").first, shown.get_by_role("button", name="look again")
        soon(shown, output.inner_text, lambda text: text.startswith(makes(first)))
        settled(shown)
        put(folder, newer)
        other = view(address, place)
        soon(other, other.locator(".output").first.inner_text, lambda text: text.startswith(makes(newer)))
        flipped(shown, "head 1·1")
        soon(shown, output.inner_text, lambda text: text.startswith("Newer weights are there"))
        again.click()
        soon(shown, output.inner_text, lambda text: text.startswith(makes(newer, OFF)))
    view.forgive("409 (Conflict)", *ENDED)
