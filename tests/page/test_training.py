"""The training that made a model, or is just making it: what the page tells is what stands in its log."""

from __future__ import annotations

import fcntl
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from page_models import LESSONS, made
from page_numbers import like, number
from page_reading import chosen, opened, settled, soon
from page_view import Watch, serving

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

TITLES = ("Loss", "Learning rate", "Speed", "Gradient")


def logged(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "training" / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["kind"] == kind]


def curves(shown: Page) -> Locator:
    return shown.get_by_role("slider", name="The step of the training that is told")


def heard(shown: Page) -> dict[str, str]:
    """What is told of the step that is pointed at: when, and each curve by its name."""
    said = curves(shown).get_attribute("aria-valuetext")
    assert said is not None
    when, rest = said.split(": ", 1)
    told = {
        title: one.removeprefix(f"{title} ") for one in rest.split("; ") for title in TITLES if one.startswith(title)
    }
    return {"when": when, **told}


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("name", ["translator", "words", "writer", "digits"])
def test_the_last_numbers(served: str, view: Watch, page_models: Path, name: str) -> None:
    """Of every curve, and those of a step in the middle that the keyboard leads to."""
    folder, steps = made(name, page_models), LESSONS[name].steps
    shown = opened(view, served, name, view="training", **({"image": 0} if name == "digits" else {}))
    updates, tests = logged(folder, "step"), logged(folder, "valid")
    shown.locator(".curves").wait_for()
    assert len(updates) == steps
    for back in (0, 7):
        for _ in range(back):
            curves(shown).press("ArrowLeft")
        one, said = updates[-1 - back], heard(shown)
        assert said["when"].startswith(f"step {steps - back}, after 0:")
        training, validation = (part.rsplit(" ", 1)[1] for part in said["Loss"].split(", "))
        assert training in like(number, one["loss"])
        nearest = min(tests, key=lambda test: abs(test["step"] - one["step"]))
        assert validation in like(number, nearest["loss"])
        assert float(said["Learning rate"]) == pytest.approx(one["rate"], rel=0.06)
        assert said["Speed"] == f"{one['tokens_per_second']:,.0f}"
        assert said["Gradient"] in like(number, one["norm"])


@pytest.mark.long(minutes=0.1)
def test_outputs_on_its_way(served: str, view: Watch, page_models: Path) -> None:
    """At each validation what the log has, with what is new and what is gone since the one before."""
    shown, samples = (
        opened(view, served, "translator", view="training"),
        logged(made("translator", page_models), "sample"),
    )
    section = shown.get_by_role("region", name="Sample outputs")
    *_, before, last = sorted({one["step"] for one in samples})
    for step in (last, before):
        soon(shown, section.get_by_role("status").inner_text, lambda text, step=step: text.startswith(f"step {step}"))
        wrote = section.locator(".wrote").evaluate_all(
            """all => all.map(one => {
                const copy = one.cloneNode(true)
                copy.querySelectorAll('del, .label').forEach(part => part.remove())
                return copy.textContent.trim()
            })"""
        )
        assert wrote == [one["hypothesis"] or "(nothing)" for one in samples if one["step"] == step]
        section.get_by_role("button", name="before").click()


@pytest.mark.long(minutes=0.2)
def test_a_log_that_grows(view: Watch, page_models: Path, tmp_path: Path) -> None:
    """New points come while the page is open; the run ends when nobody holds its lock any more."""
    folder = tmp_path / "growing"
    shutil.copytree(
        made("classifier", page_models), folder, ignore=shutil.ignore_patterns("checkpoints", "data", "snapshots")
    )
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
        soon(
            shown,
            progress.all_inner_texts,
            lambda said: any(one.startswith(f"training: step {steps} of 60") for one in said),
        )
        more = {**begun[-1], "kind": "step", "step": steps + 1, "loss": 123.0, "seconds": 61.0}
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(more) + "\n" + '{"kind": "step", "ste')
        soon(
            shown,
            lambda: heard(shown),
            lambda said: said["Loss"] == "123" and said["when"] == f"step {steps + 1}, after 1:01",
        )
        chosen(shown, "Over", "seconds")
        chosen(shown, "Scale of loss and gradient", "logarithmic")
        settled(shown)
        assert heard(shown)["Loss"] == "123"
        lock.close()
        soon(shown, progress.inner_text, lambda said: said == f"ended at step {steps + 1} of 60, after 1:01")
