"""The guided walk of a demonstration: its numbers are those of ``walk.json``, and each step can be tried."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from regard.cli.demo import study_values
from regard.config import checksum
from regard.explore.folders.walk import CORPUS, NAME
from regard.runs.demo.ablation_study import study_heads
from tests.page.language import pairs
from tests.page.models import made
from tests.page.numbers import percent
from tests.page.reading import settled
from tests.page.view import Watch, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

SENTENCES = 40
TITLES = ("mean", "Who looks", "German pronoun", "removal", "needed", "spare")


@pytest.fixture(scope="module")
def demo(page_models: Path, task: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a demonstration whose model is the little translator."""
    folder = tmp_path_factory.mktemp("walk") / "demo"
    shutil.copytree(made("translator", page_models), folder / "model")
    (folder / CORPUS).mkdir()
    deciding = [pair for pair in pairs("test") if pair.pronoun and pair.pronoun.decides][:SENTENCES]
    (folder / NAME).write_bytes(study_values(folder, study_heads(task("translator"), deciding)))
    return folder


@pytest.fixture(scope="module")
def served_demo(_chromium: None, demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(demo, log=tmp_path_factory.mktemp("served") / "stderr") as address:
        yield address


def walk_of(demo: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((demo / NAME).read_text(encoding="utf-8"))
    return found


def named(head: dict[str, Any]) -> str:
    use = {"cross": "encoder–decoder"}.get(head["kind"], head["kind"])
    return f"{use} head {head['layer']}·{head['head']}"


def opened(view: Watch, address: str, path: str = "", **options: Any) -> Page:
    shown = view(address, path, **options)
    shown.get_by_role("button", name="next").wait_for()
    shown.wait_for_load_state("networkidle")
    return shown


def said(shown: Page) -> str:
    return shown.locator(".walk section").inner_text().replace("\xa0", " ")


@pytest.mark.long(minutes=0.4)
def test_every_step_tells_the_numbers_of_the_file(demo: Path, served_demo: str, view: Watch) -> None:
    """It is the first view, opened by itself; the current step is marked and announced."""
    walk = walk_of(demo)
    study, of = walk["study"], f"of {SENTENCES}"
    shares = {named(one["head"]): one["shares"] for one in study["heads"]}
    encoder, cross = shares[named(walk["encoder"])], shares[named(walk["cross"])]
    expected = (
        (f"{study['right']} {of}", f"right in {study['commonest']}", walk["sentences"][0]["source"]),
        (named(walk["encoder"]), percent(encoder["antecedent"]), percent(encoder["rival"]), percent(encoder["chance"])),
        (named(walk["cross"]), percent(cross["antecedent"]), percent(cross["pronoun"])),
        tuple(named(one["head"]) for one in study["heads"]),
        (percent(walk["guess"]),),
        (f"{study['spare']} of {len(study['heads'])} heads", f"more than {percent(walk['half'])}"),
    )
    shown = opened(view, served_demo)
    assert shown.get_by_role("navigation", name="Views").get_by_role("button").first.inner_text() == "Walk"
    for number, (title, parts) in enumerate(zip(TITLES, expected, strict=True), 1):
        assert title in shown.get_by_role("heading", level=2).inner_text()
        assert f"Step {number} of 6" in shown.locator(".walk section [role=status]").inner_text()
        (current,) = shown.locator(".walk nav [aria-current=step]").all()
        assert current.inner_text().startswith(str(number))
        text = said(shown)
        assert all(part in text for part in parts), (parts, text)
        if number == 4:
            told = shown.locator(".bars li").all_inner_texts()
            for one, line in zip(study["heads"], told, strict=True):
                lost = study["right"] - one["right"]
                wanted = f"costs {lost}" if lost > 0 else "costs nothing" if not lost else f"{-lost} more right"
                assert wanted in line, (one, line)
        if number == 5 and study["smallest"] and study["smallest"]["heads"]:
            assert f"{study['smallest']['right']} {of} are right" in text
        if number < 6:
            shown.get_by_role("button", name="next").click()
    shown.get_by_role("button", name="go on in Heads").click()
    settled(shown)
    assert "view=heads" in shown.url


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(("step", "which"), [(2, "encoder"), (3, "cross")])
def test_a_step_opens_the_head_at_the_word(demo: Path, served_demo: str, view: Watch, step: int, which: str) -> None:
    """And Back leads to the step again."""
    walk = walk_of(demo)
    head = walk[which]
    shown = opened(view, served_demo, f"#view=walk&step={step}")
    shown.locator("figcaption").nth(1).wait_for()
    gazes = [text.replace("\xa0", " ") for text in shown.locator("figcaption").all_inner_texts()]
    shown.get_by_role("button", name=f"open {named(head)}").nth(1).click()
    settled(shown)
    shown.wait_for_url("**view=heads**")
    for part in (f"kind={head['kind']}", f"layer={head['layer']}", f"head={head['head']}", "words=1", "token="):
        assert part in shown.url
    assert shown.get_by_role("textbox").first.input_value() == walk["sentences"][1]["source"]
    word, _, first = gazes[1].partition(" looks at ")
    gaze = shown.locator(".gaze").inner_text()
    assert gaze.startswith(word.strip("“”"))
    assert first.split(" · ")[0] in gaze
    shown.go_back()
    shown.locator(".walk [role=status]").wait_for(state="attached")
    assert f"Step {step} of 6" in shown.locator(".walk section [role=status]").inner_text()


@pytest.mark.long(minutes=0.2)
def test_the_smallest_set_is_switched_off(demo: Path, served_demo: str, view: Watch) -> None:
    """Exactly these heads, and the walk says so while they are."""
    smallest = walk_of(demo)["study"]["smallest"]
    assert smallest
    assert smallest["heads"]
    shown = opened(view, served_demo, "#view=walk&step=5")
    shown.get_by_role("button", name="off in Heads").first.click()
    settled(shown)
    off = sorted(f"{one['kind']}.{one['layer']}.{one['head']}" for one in smallest["heads"])
    address = shown.evaluate("new URLSearchParams(location.hash.slice(1)).get('off')")
    assert sorted(address.split(" ")) == off
    assert "Without:" in shown.locator(".output").inner_text()
    shown.get_by_role("button", name="Walk", exact=True).click()
    assert "Step 5" in shown.locator(".walk section [role=status]").inner_text()
    assert "without" in shown.get_by_role("note").inner_text()
    shown.get_by_role("button", name="all as it was").click()
    assert shown.get_by_role("note").count() == 0


@pytest.mark.long(minutes=0.2)
def test_it_is_walked_by_keys_and_fits_a_phone(served_demo: str, view: Watch) -> None:
    shown = opened(view, served_demo, width=390, height=844, dark=True)
    shown.get_by_role("button", name="next").focus()
    for number in range(1, 6):
        assert f"Step {number} of 6" in shown.locator(".walk section [role=status]").inner_text()
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390
        assert shown.evaluate("document.activeElement.textContent") == "next"
        shown.keyboard.press("Enter")
    shown.get_by_role("button", name="back").focus()
    for _ in range(5):
        shown.keyboard.press("Enter")
    assert "Step 1 of 6" in shown.locator(".walk section [role=status]").inner_text()
    assert shown.evaluate("document.activeElement.textContent") == "next"


@pytest.mark.long(minutes=0.2)
def test_the_tour_waits_for_another_view(served_demo: str, view: Watch) -> None:
    shown = opened(view, served_demo, tour=True)
    assert shown.get_by_role("dialog").count() == 0
    shown.get_by_role("button", name="Heads", exact=True).click()
    shown.get_by_role("dialog", name="A short tour").wait_for()


@pytest.mark.long(minutes=0.4)
def test_other_weights_and_a_damaged_file_are_told(demo: Path, view: Watch, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    shutil.copytree(demo, folder)
    values = checksum.load_json((folder / NAME).read_bytes(), folder / NAME)
    (folder / NAME).write_bytes(checksum.dump_json({**values, "weights": "0" * 64}))
    with serving(folder / "model", log=tmp_path / "first") as address:
        shown = opened(view, address)
        assert "Rerun regard demo" in shown.get_by_role("note").inner_text()
        shown.close()
    raw = (folder / NAME).read_bytes()
    (folder / NAME).write_bytes(raw[: len(raw) // 2])
    with serving(folder / "model", log=tmp_path / "second") as address:
        shown = view(address)
        settled(shown)
        assert shown.get_by_role("button", name="Walk", exact=True).count() == 0
        shown.get_by_text("The guided walk cannot be shown: walk.json is damaged").wait_for()
        assert shown.get_by_role("heading", level=2).first.is_visible()
        shown.close()
    os.remove(folder / NAME)
