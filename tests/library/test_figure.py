"""A notebook's view of attention in a real browser: the page with scripts, its picture without."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import regard
from regard.library.figure import Figure, framed_page
from tests.page.view import BROWSERS, browsing, chromium
from tests.tasks.small_tasks import SOURCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    pytest.importorskip("playwright")
    if chromium() is None:
        pytest.skip(f"needs a browser: install one of {', '.join(BROWSERS)}, or name it: REGARD_CHROMIUM")
    with browsing() as found:
        yield found


def test_a_page_is_quoted_once() -> None:
    page = '<p title="a&amp;b">"x"</p><noscript>none</noscript>'
    found = framed_page(page, Figure("<svg></svg>"))
    assert "&quot;a&amp;amp;b&quot;" in found
    assert "none" not in found
    assert "SVG" in repr(Figure("<svg></svg>"))


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("scripts", [True, False])
def test_a_notebook_shows_the_page_or_its_picture(
    scripts: bool, browser: "Browser", model: Callable[[str], regard.Model], tmp_path: Path
) -> None:
    file = tmp_path / "notebook.html"
    view = model("translator").attention(SOURCE)._repr_html_()
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{view}", encoding="utf-8")
    with browser.new_context(java_script_enabled=scripts) as context:
        page, told = context.new_page(), list[str]()
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("console", lambda message: told.append(message.text))
        page.goto(file.as_uri())
        inside = page.frame_locator("iframe")
        if scripts:
            inside.get_by_role("button", name="layer 1 head 1:").click()
        else:
            assert inside.locator("noscript img").is_visible()
        assert told == []
