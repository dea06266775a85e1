"""End to end: the command, the page, its requests and views; in light and dark, wide and narrow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

import regard
from tests.page.language import pairs
from tests.page.models import LESSONS, made
from tests.page.reading import ONE, TaskOf, Visit
from tests.page.view import Shown, Watch, serving
from tests.tasks.small_tasks import SOURCE, put, translator

if TYPE_CHECKING:
    pass

PATIENCE = 30_000
"""Milliseconds within which what is asked is there, the model's first loading included."""


def test_a_translation_is_shown(tmp_path: Path, view: Watch) -> None:
    """Of the sentence that the address asks for, as Python has it; by a model that has learned nothing."""
    folder = put(tmp_path / "translator", translator(4))
    said = regard.load(folder, device="cpu").translate(SOURCE, beam=1)
    assert said
    with serving(folder, log=tmp_path / "stderr") as address:
        shown = view(address, "#" + urlencode({"text": SOURCE}))
        shown.locator("main").filter(has_text=said).wait_for(timeout=PATIENCE)
        assert "translator" in shown.title()
        assert SOURCE in shown.textbox.input_value()
        shown.wait_for_load_state("networkidle", timeout=PATIENCE)  # the server's end would be an error of the page


@pytest.mark.long(minutes=1.5)
@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 400)], ids=["light", "dark-narrow"])
@pytest.mark.parametrize("number", range(len(LESSONS)), ids=list(LESSONS))
def test_every_view_of_every_model(served: str, view: Watch, number: int, dark: bool, width: int) -> None:
    """Each has something to show, without an error, and nothing is wider than the window."""
    shown = view(served, f"#model={number}", dark=dark, width=width)
    shown.tabs.first.wait_for(timeout=PATIENCE)
    assert list(LESSONS)[number] in shown.title()
    for name in shown.views():
        assert shown.alerts() == []
        assert shown.evaluate("document.scrollingElement.scrollWidth") <= width, f"{name} is too wide"


def at(shown: Shown, name: str) -> None:
    """Wait until this view is the one that is open."""
    tab = shown.get_by_role("navigation").get_by_role("button", name=name, exact=True)
    shown.soon(lambda: tab.get_attribute("aria-current"), lambda current: current == "page")


@pytest.mark.long(minutes=0.2)
def test_back_leads_to_the_view_before(visit_one: Visit, task: TaskOf) -> None:
    """As it was left, and to the text before; forth again to the next; what is done in a view makes no step."""
    one, other = (pair.source for pair in pairs("test")[:2])
    shown = visit_one("translator", view="heads", layer=None)
    steps = shown.evaluate("history.length")
    shown.get_by_role("button", name="layer 1 head 2").click()
    shown.turn_to("Equation")
    shown.textbox.fill(other)
    shown.locator("main").filter(has_text=task("translator").translate(other, beam=1)).wait_for()
    shown.turn_to("Words")
    assert shown.evaluate("history.length") == steps + 3
    shown.go_back()
    at(shown, "Equation")
    assert shown.textbox.input_value() == other
    shown.go_back()
    shown.soon(shown.textbox.input_value, lambda text: text == one)
    at(shown, "Equation")
    shown.go_back()
    at(shown, "Heads")
    assert shown.textbox.input_value() == one
    shown.locator(".output").filter(has_text=task("translator").translate(one, beam=1)).wait_for()
    shown.settled()
    pressed = shown.get_by_role("group", name="Heads").get_by_role("button", pressed=True)
    assert (pressed.get_attribute("aria-label") or "").startswith("layer 1 head 2")
    shown.go_forward()
    at(shown, "Equation")
    shown.go_forward()
    shown.soon(shown.textbox.input_value, lambda text: text == other)
    assert shown.evaluate("history.length") == steps + 3


@pytest.mark.long(minutes=0.1)
def test_the_name_leads_to_the_beginning(visit_one: Visit) -> None:
    """The first view of this model, nothing taken away, before the same text; it is the page's heading."""
    shown = visit_one("translator", view="words", off="cross.2.1", token=2)
    shown.get_by_role("heading", level=1, name="Regard").get_by_role("link").click()
    at(shown, "Heads")
    shown.settled()
    assert shown.textbox.input_value() == ONE.source
    assert not shown.get_by_text("Without: ").count()
    shown.go_back()
    at(shown, "Words")
    shown.get_by_text("Without: encoder–decoder head 2·1.").wait_for()


@pytest.mark.long(minutes=0.2)
def test_what_is_taken_away_is_said_in_every_view(visit_one: Visit) -> None:
    """Under the output, with a way back."""
    shown = visit_one("translator", off="cross.2.1", without="positions")
    said = shown.get_by_text("Without: encoder–decoder head 2·1, positions.")
    for name in ("Heads", "Equation", "Writing", "Positions", "Words", "Compare"):
        shown.turn_to(name)
        assert said.first.is_visible()
    shown.turn_to("Words")
    shown.get_by_role("button", name="all as it was").click()
    shown.soon(said.count, lambda count: count == 0)
    shown.soon(lambda: "off=" in shown.url or "without=" in shown.url, lambda there: not there)


@pytest.mark.long(minutes=0.1)
def test_a_long_text_is_not_in_the_address(served_translator: str, view: Watch) -> None:
    """That is said where the address is copied; the browser still keeps it for its own history."""
    shown = view(served_translator, permissions=["clipboard-write", "clipboard-read"])
    shown.settled()
    long = "Das " * 1500
    shown.textbox.fill(long)
    shown.soon(lambda: "text=" in shown.url, lambda there: not there)
    assert len(shown.url) < 300
    shown.get_by_role("button", name="Copy address").click()
    shown.get_by_text("The address is copied, without the text, which is too long for it.").wait_for()
    shown.reload()
    shown.soon(shown.textbox.input_value, lambda text: text == long)
    shown.textbox.fill("The fox sleeps.")
    shown.soon(lambda: "text=The+fox" in shown.url)
    shown.get_by_role("button", name="Copy address").click()
    shown.get_by_text("The address is copied.", exact=True).wait_for()
    view.forgive("400 (Bad Request)")


@pytest.mark.long(minutes=0.1)
def test_examples_are_whole_on_a_phone(served_translator: str, view: Watch) -> None:
    shown = view(served_translator, width=390)
    shown.settled()
    examples = shown.locator(".examples button:visible")
    assert examples.count() >= 2
    assert all(examples.evaluate_all("all => all.map(one => one.scrollWidth <= one.clientWidth)"))


@pytest.mark.long(minutes=0.1)
def test_images_that_do_not_fit_are_refused_in_a_sentence(view: Watch, page_models: Path, tmp_path: Path) -> None:
    """One can still draw."""
    (tmp_path / "images.csv").write_text("1,2,3\n4,5,6\n", encoding="utf-8")
    folder = made("digits", page_models)
    with serving(folder, "--images", tmp_path / "images.csv", log=tmp_path / "stderr") as address:
        shown = view(address)
        said = "The images cannot be shown: has the shape (2,); the model reads images of 8 x 8 x 1."
        shown.soon(shown.alerts, lambda found: found == [said])
        shown.get_by_label("Draw here").wait_for()
    view.forgive("400 (Bad Request)", "ERR_CONNECTION_REFUSED")
