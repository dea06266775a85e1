"""The training view shows what a log holds, and the page keeps to one set of weights until the reader reloads."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from operator import le
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from regard.inspection.folders.folder import Folder
from regard.models.ablation import Ablations, Head
from tests.page.models import LESSONS, logged, made
from tests.page.numbers import shows
from tests.page.reading import GONE, Visit
from tests.page.view import ENDED, Shown, Watch, serving
from tests.tasks.small_tasks import SOURCE, keep, log, put, translator

if TYPE_CHECKING:
    from playwright.sync_api import Request

pytestmark = pytest.mark.long(minutes=0.2)

AWAY = "The server does not answer at the moment; the page goes on when it is there again."
OTHER = "The street was too tired."
CURVES = "The step of the training that is told"
TITLES = ("Loss", "Learning rate", "Speed", "Gradient")


def heard(shown: Shown) -> dict[str, str]:
    """What is told of the step that is pointed at: when, and each curve by its name."""
    said = shown.get_by_role("slider", name=CURVES).get_attribute("aria-valuetext")
    assert said is not None
    when, rest = said.split(": ", 1)
    told = [(title, one) for one in rest.split("; ") for title in TITLES if one.startswith(title)]
    return {"when": when, **{title: one.removeprefix(f"{title} ") for title, one in told}}


@pytest.mark.parametrize("name", ["translator", "words", "writer", "digits"])
def test_the_last_numbers(visit: Visit, page_models: Path, name: str) -> None:
    """Of every curve, and those of a step in the middle that the keyboard leads to."""
    folder, steps = made(name, page_models), LESSONS[name].steps
    shown = visit(name, view="training", **({"image": 0} if name == "digits" else {}))
    updates, tests = logged(folder, "step"), logged(folder, "valid")
    shown.locator(".curves").wait_for()
    assert len(updates) == steps
    for back in (0, 7):
        for _ in range(back):
            shown.get_by_role("slider", name=CURVES).press("ArrowLeft")
        one, said = updates[-1 - back], heard(shown)
        assert said["when"].startswith(f"step {steps - back}, after 0:")
        nearest = min(tests, key=lambda test: abs(test["step"] - one["step"]))
        wanted = (one["loss"], nearest["loss"], one["rate"], one["tokens_per_second"], one["norm"])
        told = [part.rsplit(" ", 1)[-1] for title in TITLES for part in said[title].split(", ")]
        assert all(map(shows, told, wanted)), (told, wanted)


@pytest.mark.long(minutes=0.1)
def test_outputs_on_its_way(visit: Visit, page_models: Path) -> None:
    """At each validation what the log has, with what is new and what is gone since the one before."""
    shown, samples = (visit("translator", view="training"), logged(made("translator", page_models), "sample"))
    section = shown.get_by_role("region", name="Sample outputs")
    *_, before, last = sorted({one["step"] for one in samples})
    for step in (last, before):
        shown.soon(section.get_by_role("status").inner_text, lambda text, step=step: text.startswith(f"step {step}"))
        wrote = section.locator(".wrote").evaluate_all(
            """all => all.map(one => {
                const copy = one.cloneNode(true)
                copy.querySelectorAll('del, .label').forEach(part => part.remove())
                return copy.textContent.trim()
            })"""
        )
        assert wrote == [one["hypothesis"] or "(nothing)" for one in samples if one["step"] == step]
        section.get_by_role("button", name="before").click()


def test_a_log_that_grows(view: Watch, page_models: Path, tmp_path: Path) -> None:
    """New points come while the page is open; the run ends when nobody holds its lock any more."""
    folder = tmp_path / "growing"
    left = shutil.ignore_patterns("checkpoints", "data", "snapshots")
    shutil.copytree(made("classifier", page_models), folder, ignore=left)
    log = folder / "training" / "metrics.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    begun = [json.loads(line) for line in lines[:41]]
    begun[0]["steps"] = 60
    log.write_text("".join(json.dumps(one) + "\n" for one in begun), encoding="utf-8")
    with (folder / "training" / "lock").open("w") as lock, serving(folder, log=tmp_path / "stderr") as address:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shown = view(address, "#view=training")
        progress = shown.get_by_role("region", name="Curves").get_by_role("status")
        steps = sum(one["kind"] == "step" for one in begun)
        begins = f"training: step {steps} of 60"
        shown.soon(progress.all_inner_texts, lambda said: any(one.startswith(begins) for one in said))
        more = {**begun[-1], "kind": "step", "step": steps + 1, "loss": 123.0, "seconds": 61.0}
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(more) + "\n" + '{"kind": "step", "ste')
        when = f"step {steps + 1}, after 1:01"
        shown.soon(lambda: heard(shown), lambda said: (said["Loss"], said["when"]) == ("123", when))
        shown.choose("Over", "seconds")
        shown.choose("Scale of loss and gradient", "logarithmic")
        shown.settled()
        assert heard(shown)["Loss"] == "123"
        lock.close()
        shown.soon(progress.inner_text, lambda said: said == f"ended at step {steps + 1} of 60, after 1:01")


@contextmanager
def begun(folder: Path) -> Iterator[None]:
    """A training is at work in a folder: it has written a line, and holds its lock."""
    log(folder, [{"kind": "start", "step": 0, "steps": 100}])
    with (folder / "training" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.long(minutes=0.4)
def test_a_page_comes_alive_while_a_training_goes_on(view: Watch, tmp_path: Path) -> None:
    """Recipe, kept weights, the first tested, newer ones: as each is there; nothing that the reader did is lost."""
    folder = tmp_path / "learning"
    kept, first, newer = (translator(seed) for seed in (2, 4, 5))
    says = {name: task.translate(OTHER, beam=1) for name, task in (("kept", kept), ("first", first), ("newer", newer))}
    assert len(set(says.values())) == 3
    with ExitStack() as training:
        training.enter_context(begun(folder))
        (folder / "training" / "metrics.jsonl").unlink()
        with serving(folder, log=tmp_path / "stderr") as address:
            shown = view(address, "#" + urlencode({"text": SOURCE, "view": "heads", "layer": 1, "head": 2}))
            weights = shown.get_by_role("combobox", name="Weights of")
            shown.wrote("Training has just begun and prepares its data")
            shown.textbox.fill(OTHER)
            assert not shown.get_by_text("has no attention").count()

            put(folder, first, weights=False)
            log(folder, [{"kind": "start", "step": 0, "steps": 100}])
            shown.wrote("Training has not validated yet")
            shown.get_by_text("This view comes alive as soon as there are weights").wait_for()
            assert not shown.alerts()
            assert not weights.count()

            keep(folder, kept, 20)
            weights.wait_for()
            assert weights.locator("option").all_inner_texts() == ["not there yet", "step 20"]
            weights.select_option("step 20")
            shown.wrote(says["kept"])
            weights.select_option("not there yet")
            shown.wrote("Training has not validated yet")

            put(folder, first)
            shown.wrote(says["first"])
            assert weights.locator("option").all_inner_texts() == ["best so far", "step 20"]
            shown.settled()
            pressed = shown.get_by_role("group", name="Heads").get_by_role("button", pressed=True)
            assert (pressed.get_attribute("aria-label") or "").startswith("layer 1 head 2")
            tokens = shown.locator(".columns ol").first.get_by_role("button")
            word = tokens.nth(2).inner_text()
            tokens.nth(2).click()

            put(folder, newer)
            again = shown.get_by_role("button", name="look again")
            again.wait_for()
            shown.wrote(says["first"])
            again.click()
            shown.wrote(says["newer"])
            shown.soon(again.count, lambda count: count == 0)
            shown.settled()
            kept = [one.inner_text() for one in tokens.all() if one.get_attribute("aria-pressed") == "true"]
            assert kept == ([word] if word in tokens.all_inner_texts() else [])  # a word that is gone is not kept
            assert shown.textbox.input_value() == OTHER
            assert shown.get_by_role("button", name="Heads").get_attribute("aria-current") == "page"

            training.close()
            shown.soon(weights.locator("option").all_inner_texts, lambda names: names == ["finished", "step 20"])
            asked: list[str] = []
            shown.on("request", lambda request: asked.append(request.url))
            shown.wait_for_timeout(2500)
            assert asked == []  # nothing to wait for


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("runs", [True, False], ids=["running", "finished"])
def test_the_server_is_there_again(view: Watch, tmp_path: Path, runs: bool) -> None:
    """The page says that it is away, once, and goes on when it is back."""
    folder = put(tmp_path / "learning", translator(8))
    said = translator(8).translate([SOURCE, OTHER], beam=1)
    with begun(folder) if runs else nullcontext():
        with serving(folder, log=tmp_path / "stderr") as address:
            shown = view(address, "#" + urlencode({"text": SOURCE}))
            shown.wrote(said[0])
            shown.settled()
        if runs:
            shown.get_by_text(AWAY).wait_for()
            assert not shown.alerts()
            shown.wrote(said[0])
        shown.textbox.fill(OTHER)
        shown.soon(shown.alerts, lambda found: found == [GONE])
        assert not shown.get_by_text(AWAY).count()
        port = int(address.rstrip("/").rpartition(":")[2])
        with serving(folder, log=tmp_path / "stderr", port=port):
            shown.wrote(said[1])
            shown.soon(shown.alerts, lambda found: not found)
            shown.settled()
            assert not shown.get_by_text(AWAY).count()
    view.forgive(*ENDED)


def test_a_finished_model_is_replaced_and_taken_away(view: Watch, tmp_path: Path) -> None:
    """The page asks slowly then, and at once when somebody turns to it: it tells the newer, and what is not there."""
    folder, gone = tmp_path / "finished", tmp_path / "elsewhere"
    first, newer = translator(4), translator(5)
    put(folder, first)
    with serving(folder, log=tmp_path / "stderr") as address:
        shown = view(address, "#" + urlencode({"text": SOURCE, "view": "heads"}))
        says = [task.translate(SOURCE, beam=1) for task in (first, newer)]
        assert says[0] != says[1]
        shown.wrote(says[0])
        put(folder, newer)
        turned(shown)
        shown.get_by_role("button", name="look again").click()
        shown.wrote(says[1])
        folder.rename(gone)
        turned(shown)
        shown.wrote("This folder is not there any more.")
        assert not shown.get_by_text("comes alive").count()
        shown.get_by_text("There is nothing to see here now: this folder is not there any more").wait_for()
        gone.rename(folder)
        shown.wrote(says[1])
        shown.get_by_role("group", name="Heads").wait_for()
    view.forgive(*ENDED)


def turned(shown: Shown) -> None:
    """The reader turns to the page again."""
    shown.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


NOTHING, OFF = Ablations(), Ablations((Head("cross", 1, 1),))
LATER = {"Words": {"near", "drift"}}
"""What is asked in a view when its reader has stayed for a moment."""
HEAD = {"view": "heads", "kind": "cross", "layer": 1, "head": 1}


def makes(task: Any, changes: Ablations = NOTHING) -> str:
    with changes.apply(task.recipe.model):
        return str(task.translate(SOURCE, beam=1))


def listened(shown: Shown) -> list[tuple[str, str | None]]:
    """The questions that a page asks from now on, each with the name of the weights that it is about."""
    asked: list[tuple[str, str | None]] = []

    def heard(request: Request) -> None:
        if request.method == "POST":
            given = request.post_data_json
            weights = "kept" if given.get("snapshot") else given.get("weights")
            asked.append((request.url.rpartition("/")[2], weights))

    shown.on("request", heard)
    return asked


def every_view(shown: Shown, asked: list[tuple[str, str | None]]) -> None:
    """Look at all that there is, and then at the heads again; some questions are asked a moment later."""
    for name in shown.views():
        wanted = LATER.get(name, set())
        shown.soon(lambda: {question for question, _ in asked}, partial(le, wanted))
        shown.settled()
        assert not shown.alerts()
    shown.turn_to("Heads")
    shown.settled()


@pytest.mark.long(minutes=0.5)
def test_newer_weights_come_only_when_the_reader_looks_again(view: Watch, tmp_path: Path) -> None:
    """A head that is switched off is one of the weights that were looked at, though a training has written others."""
    first, newer = translator(4), translator(1)
    says = [makes(task, changes) for task in (first, newer) for changes in (NOTHING, OFF)]
    assert len(set(says)) == 4
    folder = put(tmp_path / "learning", first)
    log(folder, [{"kind": "start", "step": 0, "steps": 100}])
    with serving(folder, log=tmp_path / "stderr") as address:
        shown = view(address, "#" + urlencode({"text": SOURCE, **HEAD}))
        again = shown.get_by_role("button", name="look again")
        shown.wrote(says[0])
        shown.settled()
        asked, name = listened(shown), Folder(folder).state(0)["weights"]
        put(folder, newer)
        again.wait_for()
        shown.flip("head 1·1")
        shown.wrote(says[1])
        every_view(shown, asked)
        assert {weights for _, weights in asked} == {name}
        assert {question for question, _ in asked} >= {"look", "write", "equation", "places", "tree"}
        again.click()
        shown.wrote(says[3])
        shown.soon(again.count, lambda count: count == 0)
        shown.settled()
        asked.clear()
        every_view(shown, asked)
        assert {weights for _, weights in asked} == {Folder(folder).state(0)["weights"]}
        shown.flip("head 1·1")
        shown.wrote(says[2])
    view.forgive(*ENDED)


@pytest.mark.long(minutes=0.4)
def test_weights_that_are_gone_are_told(view: Watch, tmp_path: Path) -> None:
    """Somebody else has looked at newer ones: nothing is shown of those in their place."""
    first, newer = translator(4), translator(1)
    folder = put(tmp_path / "learning", first)
    with serving(folder, log=tmp_path / "stderr") as address:
        place = "#" + urlencode({"text": SOURCE, **HEAD})
        shown = view(address, place)
        again = shown.get_by_role("button", name="look again")
        shown.wrote(makes(first))
        shown.settled()
        put(folder, newer)
        other = view(address, place)
        other.wrote(makes(newer))
        shown.flip("head 1·1")
        shown.wrote("Newer weights are there")
        again.click()
        shown.wrote(makes(newer, OFF))
    view.forgive("409 (Conflict)", *ENDED)
