"""Generation on the page, compared with Python: candidates, the search tree, and forced outputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

import regard
from regard.inspection.forward.outputs import Candidate, beam_search, prepare_search, scores
from regard.inspection.forward.passes import probabilities
from regard.inspection.forward.record import text_inputs
from tests.inspection.forward.small_scenes import top_candidates
from tests.page.language import pairs
from tests.page.numbers import clean, shows
from tests.page.reading import BEFORE, TaskOf, Visit, names_of, rows
from tests.page.view import Shown, Watch
from tests.tasks.small_tasks import SOURCE, TARGET

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = pytest.mark.long(minutes=0.2)

CANDIDATES = "list => [...list.children].map(one => [0, 2].map(at => one.children[at]?.textContent ?? ''))"
FORCED = {"translator": pairs("test")[5].target, "spans": "<extra_0> fence <extra_1> old"}
GOES_ON = 40
"""Tokens that the page lets a language model go on with."""


def check_candidates(steps: Locator, wanted: list[Candidate]) -> None:
    """The candidates of the step that is seen: the five most probable in their order, and the rest."""
    *seen, (last, rest) = steps.locator("ol").evaluate(CANDIDATES)
    for (piece, probability), one in zip(seen, wanted, strict=False):
        assert piece.removeprefix("·") == clean(one.piece)
        assert shows(probability, one.probability), (piece, one)
    assert last == "all others"
    if len(seen) == len(wanted):
        assert shows(rest, max(0.0, 1 - sum(one.probability for one in wanted)))


@pytest.mark.parametrize("name", ["translator", "recurrent", "tasks", "spans", "writer", "words"])
def test_candidates_of_every_step(visit: Visit, task: TaskOf, name: str) -> None:
    """From the first to the last, each what Python says, with the probabilities of what was taken."""
    shown, text = visit(name, view="writing"), BEFORE[name]
    target = beam_search(prepare_search(task(name), text, GOES_ON), 1)[0].tokens if name == "writer" else None
    every = top_candidates(text_inputs(task(name), text, target))
    steps = shown.get_by_role("region", name="Step by step")
    steps.get_by_text(f"of {len(every)}").wait_for()
    steps.get_by_role("slider").fill("0")
    for wanted in every:
        check_candidates(steps, wanted)
        if wanted is not every[-1]:
            steps.get_by_role("button", name="next").click()
    assert steps.get_by_role("button", name="next").is_disabled()
    if name == "writer" and every[-1][0].piece == "</s>":
        assert re.search("</s>.*taken", steps.locator("ol > :first-child").inner_text(), re.DOTALL)


@pytest.mark.parametrize("name", ["translator", "recurrent"])
def test_the_tree_is_the_search(visit: Visit, task: TaskOf, name: str) -> None:
    """Outputs, scores and candidates at its root; an output that is followed has the candidates of that output."""
    shown, text, beam = visit(name, view="writing"), BEFORE[name], 3
    search = shown.get_by_role("region", name="Search")
    search.get_by_role("combobox").select_option(str(beam))
    best = beam_search(prepare_search(task(name), text, 1), beam)
    every = task(name).nbest([text], n=beam, beam=beam)[0]
    seen = shown.soon(lambda: rows(search.get_by_role("table")), lambda seen: len(seen) == beam)
    for (_, written, log, length, score), one, inner in zip(seen, every, best, strict=True):
        assert written == one.text
        assert shows(score, one.score)
        assert shows(log, inner.log_probability)
        assert int(length) == len(one.tokens) + one.finished

    tree = search.get_by_role("img", name="The search as a tree")
    tree.press("Home")
    token, *_ = shown.soon(lambda: search.locator("dl dd").all_inner_texts())
    assert shows(token, top_candidates(text_inputs(task(name), text))[0][0].probability)
    tree.press("End")
    _, so_far, fate = search.locator("dl dd").all_inner_texts()
    assert shows(so_far, best[0].log_probability)
    assert fate == "finished: output 1"

    search.get_by_role("button", name=every[1].text).click()
    steps = shown.get_by_role("region", name="Step by step")
    steps.get_by_text(f"Stepping through output 2 of the search with a beam of {beam}.").wait_for()
    shown.settled()
    for wanted in top_candidates(text_inputs(task(name), text, every[1].tokens))[:3]:
        check_candidates(steps, wanted)
        steps.get_by_role("button", name="next").click()


@pytest.mark.parametrize("name", FORCED)
def test_an_output_that_is_forced(visit: Visit, task: TaskOf, name: str) -> None:
    """Each of its tokens has the probability that the model gives it; then the model writes its own again."""
    shown = visit(name)
    own, target = shown.locator(".written").inner_text(), FORCED[name]
    shown.get_by_role("button", name="make it write something else").click()
    shown.get_by_role("textbox", name="what the model is made to write").fill(target)
    seen = text_inputs(task(name), BEFORE[name], target)
    shares = probabilities(seen, scores(seen)) or []
    told = shown.soon(lambda: written(shown), lambda told: [piece for piece, _ in told] == names_of(seen.written))
    for (_, said), share in zip(told, shares, strict=True):
        assert shows(said, share)
    shown.get_by_role("button", name="its own again").click()
    shown.soon(shown.locator(".written").inner_text, lambda text: text == own)


def written(shown: Shown) -> list[list[str]]:
    """What is told of each token of the output: its name, and its probability."""
    titles: list[str] = shown.locator(".written").evaluate("line => [...line.children].map(one => one.title)")
    return [title.removeprefix("·").rsplit(": probability ", 1) for title in titles if title]


def test_into_the_language_that_is_chosen(served_odd: str, view: Watch, odd: dict[str, Path]) -> None:
    """It stands in the address, and what was forced before is not kept."""
    model = regard.load(odd["languages"], device="cpu")
    shown = view(served_odd, "#" + urlencode({"model": 3, "text": SOURCE, "target": TARGET}))
    shown.settled()
    into = shown.get_by_role("combobox", name="Translate into")
    assert into.locator("option").all_inner_texts() == ["→ de", "→ en", "→ fr"]
    assert not shown.get_by_role("combobox", name="Translate from").count()
    for code in ("fr", "en"):
        into.select_option(code)
        shown.settled()
        shown.wrote(model.translate(SOURCE, beam=1, to=code))
        shown.wait_for_url(re.compile(rf"between=\+{code}"))
    again = view(served_odd, "#" + shown.url.partition("#")[2])
    again.settled()
    again.wrote(model.translate(SOURCE, beam=1, to="en"))
    assert again.get_by_role("combobox", name="Translate into").input_value() == "en"
