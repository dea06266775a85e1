"""What is put before the models on the page, and what the page says of it, read as its reader does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from tests.page.language import hidden, hidden_twice, pairs
from tests.page.models import LESSONS
from tests.page.view import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

T = TypeVar("T")
TaskOf = Callable[[str], Any]
Visit = Callable[..., "Page"]

ONE = pairs("test")[0]
BEFORE = {
    **dict.fromkeys(("translator", "recurrent", "classifier", "reader", "tagger"), ONE.source),
    "tasks": f"German: {ONE.source}",
    "words": hidden(ONE),
    "spans": hidden_twice(ONE),
    "writer": " ".join(ONE.source.split()[:4]),
}
"""A text for each model that reads one."""
GONE = "The server does not answer. Is “regard explore” still running?"
FRAME = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
ROWS = "table => [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.innerText.trim()))"


def address(name: str, /, **more: Any) -> str:
    """Behind the page's address: a model of ``LESSONS`` before its text, and what else is to be seen.

    The head is the first of the first layer, token by token, where none is named; with ``layer=None`` nobody chose one.
    """
    layer = {"layer": 1} if name != "digits" and more.get("view", "heads") == "heads" else {}
    given = {"model": list(LESSONS).index(name), "text": BEFORE.get(name, ""), **layer, **more}
    return "#" + urlencode({key: value for key, value in given.items() if value is not None and value != ""})


def opened(view: Watch, served: str, name: str, /, **more: Any) -> Page:
    """A model of ``LESSONS`` on the page, its first pass seen."""
    shown = view(served, address(name, **more))
    settled(shown)
    return shown


def settled(shown: Page) -> None:
    """Wait until the model has answered, and all is drawn."""
    shown.locator(".pane[aria-busy=false]").first.wait_for()
    shown.wait_for_load_state("networkidle")
    shown.evaluate(FRAME)


def soon(shown: Page, read: Callable[[], T], right: Callable[[T], bool], seconds: float = 30.0) -> T:
    """What is read, as soon as it is right.

    Raises:
        AssertionError: it never was.
    """
    for _ in range(int(seconds / 0.05)):
        if right(found := read()):
            return found
        shown.wait_for_timeout(50)
    raise AssertionError(f"still {found!r}")


def holds(shown: Page, check: Callable[[], None], seconds: float = 30.0) -> None:
    """That a check holds, as soon as the page has drawn what it is of.

    Raises:
        AssertionError: of the check, if it never did.
    """
    for _ in range(int(seconds / 0.05)):
        try:
            return check()
        except AssertionError:
            shown.wait_for_timeout(50)
    return check()


def textbox(shown: Page) -> Locator:
    """Where the text stands that the model reads."""
    return shown.get_by_role("textbox").first


def alerts(shown: Page) -> list[str]:
    """What the page warns of."""
    return shown.get_by_role("alert").all_inner_texts()


def gaze(shown: Page | Locator) -> str:
    """The sentence on what the token that is pointed at looks at."""
    return shown.locator(".gaze").inner_text()


def rows(table: Locator) -> list[list[str]]:
    """The texts of a table's cells."""
    found: list[list[str]] = table.evaluate(ROWS)
    return found


def chosen(shown: Page, group: str, choice: str) -> None:
    """Choose one of a row of choices, if it is there to be chosen."""
    shown.get_by_role("radiogroup", name=group, exact=True).get_by_role("radio", name=choice, exact=True).click()


def flipped(shown: Page, name: str) -> None:
    """Put a switch to its other side."""
    shown.get_by_role("switch", name=name).first.click()


def against(shown: Page, other: str = "anything else") -> None:
    """Set the output that is explained against another one, where there are others."""
    choices = shown.get_by_role("combobox", name="rather than")
    if choices.count():
        choices.select_option(label=other)


def wrote(shown: Page, text: str) -> None:
    """Wait until the page shows this as the output."""
    soon(shown, shown.locator(".output").first.inner_text, lambda said: said.startswith(text))
