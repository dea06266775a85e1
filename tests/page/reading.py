"""What is put before the models on the page, and what the page says of it, read as its reader does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tests.page.language import hidden, hidden_twice, pairs
from tests.page.models import LESSONS
from tests.page.numbers import clean
from tests.page.view import Shown, Watch

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from regard.inspection.forward.record import Token

TaskOf = Callable[[str], Any]
Visit = Callable[..., Shown]

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
ROWS = "table => [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.innerText.trim()))"


def address(name: str, /, **more: Any) -> str:
    """Behind the page's address: a model of ``LESSONS`` before its text, and what else is to be seen.

    The head is the first of the first layer, token by token, where none is named; with ``layer=None`` nobody chose one.
    """
    layer = {"layer": 1} if name != "digits" and more.get("view", "heads") == "heads" else {}
    given = {"model": list(LESSONS).index(name), "text": BEFORE.get(name, ""), **layer, **more}
    return "#" + urlencode({key: value for key, value in given.items() if value is not None and value != ""})


def opened(view: Watch, served: str, name: str, /, **more: Any) -> Shown:
    """A model of ``LESSONS`` on the page, its first pass seen."""
    shown = view(served, address(name, **more))
    shown.settled()
    return shown


def names_of(tokens: Iterable[Token]) -> list[str]:
    """Tokens as the page names them."""
    return [clean(token.text) for token in tokens]


def rows(table: Locator) -> list[list[str]]:
    """The texts of a table's cells."""
    return table.evaluate(ROWS)
