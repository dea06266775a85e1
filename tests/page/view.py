"""The page as its reader has it: served by the command itself, opened in a real browser, and watched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, Route

T = TypeVar("T")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
"""No name is looked up, so that nothing is asked of other machines, by the browser itself neither."""
FRAME = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
TOURED = "try { localStorage.setItem('regard.tour', 'seen') } catch {}"
ENDED = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "503 (Service Unavailable)")
"""What a browser says of a server that ends before the page."""


def chromium() -> str | None:
    """Where Chromium is: ``REGARD_CHROMIUM``, or what the system has."""
    named = os.environ.get("REGARD_CHROMIUM")
    return named or next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser without a window, its own profile forgotten at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=[ALONE])
        yield browser
        browser.close()


@contextmanager
def serving(*arguments: object, log: Path, port: int = 0) -> Iterator[str]:
    """``regard explore`` in a process of its own; the address of its page.

    Args:
        arguments: of the command: models and options.
        log: a file for what the command says on stderr.
        port: where the page is; 0: any that is free.

    Raises:
        AssertionError: it did not start; or it met an error that nobody had foreseen.
    """
    command = [sys.executable, "-m", "regard.cli", "explore", *map(str, arguments), "--port", str(port), "--no-browser"]
    with log.open("w") as said, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("The page is at http://127.0.0.1:"), line + log.read_text(encoding="utf-8")
            yield line.split()[4]
        finally:
            process.terminate()
            process.wait(30)
    assert "Traceback" not in log.read_text(encoding="utf-8"), log.read_text(encoding="utf-8")


class Shown:
    """A page that is open: what its reader does, and reads. All else is playwright's ``Page``."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)

    def drawn(self) -> None:
        """Wait until what was done is drawn."""
        self.page.evaluate(FRAME)

    def settled(self) -> None:
        """Wait until the model has answered, and all is drawn."""
        self.page.locator("nav[aria-label=Views]").wait_for(state="attached")
        self.page.locator(".pane[aria-busy=true]").first.wait_for(state="detached")
        self.page.wait_for_load_state("networkidle")
        self.drawn()

    def soon(self, read: Callable[[], T], right: Callable[[T], Any] = bool, seconds: float = 30.0) -> T:
        """What is read, as soon as it is right.

        Raises:
            AssertionError: it never was.
        """
        for _ in range(int(seconds / 0.05)):
            if right(found := read()):
                return found
            self.page.wait_for_timeout(50)
        raise AssertionError(f"still {found!r}")

    def holds(self, check: Callable[[], None], seconds: float = 30.0) -> None:
        """That a check holds, as soon as the page has drawn what it is of.

        Raises:
            AssertionError: of the check, if it never did.
        """
        for _ in range(int(seconds / 0.05)):
            try:
                return check()
            except AssertionError:
                self.page.wait_for_timeout(50)
        return check()

    def wrote(self, text: str) -> None:
        """Wait until the page shows this as the output."""
        self.soon(self.page.locator(".output").first.inner_text, lambda said: said.startswith(text))

    @property
    def textbox(self) -> Locator:
        """Where the text stands that the model reads."""
        return self.page.get_by_role("textbox").first

    @property
    def tabs(self) -> Locator:
        """The names of the views."""
        return self.page.get_by_role("navigation").get_by_role("button")

    def turn_to(self, view: str) -> None:
        """Open a view."""
        self.tabs.filter(has_text=re.compile(f"^{view}$")).click()

    def views(self) -> Iterator[str]:
        """Open each view in turn: its name, as soon as all is drawn."""
        for tab in self.tabs.all():
            tab.click()
            self.settled()
            yield tab.inner_text()

    def alerts(self) -> list[str]:
        """What the page warns of."""
        return self.page.get_by_role("alert").all_inner_texts()

    def problems(self) -> list[str]:
        """All that is said to be wrong."""
        return self.page.locator(".problem").all_inner_texts()

    def point(self, place: int, part: Locator | None = None) -> None:
        """Point at one of the tokens that look."""
        (part or self.page).locator(".columns ol").first.get_by_role("button").nth(place).hover()
        self.drawn()

    def gaze(self, part: Locator | None = None) -> str:
        """The sentence on what the token that is pointed at looks at."""
        return (part or self.page).locator(".gaze").inner_text()

    def choose(self, group: str, choice: str) -> None:
        """Choose one of a row of choices, if it is there to be chosen."""
        choices = self.page.get_by_role("radiogroup", name=group, exact=True)
        choices.get_by_role("radio", name=choice, exact=True).click()

    def flip(self, name: str) -> None:
        """Put a switch to its other side."""
        self.page.get_by_role("switch", name=name).first.click()


class Watch:
    """Opens pages, and notes what must not happen on them: errors, and requests to anybody else.

    Args:
        browser: that shows them.
    """

    def __init__(self, browser: Browser) -> None:
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        self._meant: tuple[str, ...] = ()
        self._browser = browser
        self._contexts: list[BrowserContext] = []

    def __call__(
        self,
        address: str,
        path: str = "",
        *,
        dark: bool = False,
        width: int = 1280,
        height: int = 800,
        tour: bool = False,
        answers: Callable[[Route], None] | None = None,
        **options: Any,
    ) -> Shown:
        """A page in a context of its own, loaded.

        Args:
            address: all that may be asked for lies there.
            path: behind the address, a fragment for instance.
            dark: the reader's system prefers dark colours.
            width, height: of the window, in pixels.
            tour: its reader has not seen the tour yet.
            answers: what answers in the place of a server; default: there is one.
            options: others of the context, ``reduced_motion`` for instance.
        """
        size: Any = {"width": width, "height": height}
        scheme: Any = "dark" if dark else "light"
        context = self._browser.new_context(viewport=size, color_scheme=scheme, **options)
        self._contexts.append(context)
        if answers:
            context.route("**/*", answers)
        if not tour:
            context.add_init_script(TOURED)

        def requested(request: Request) -> None:
            if not request.url.startswith((address, "data:", f"blob:{address}")):
                self.elsewhere.append(request.url)

        context.on("request", requested)
        context.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        context.on("weberror", lambda found: self.errors.append(str(found.error)))
        page = context.new_page()
        page.goto(address + path)
        return Shown(page)

    def forgive(self, *meant: str) -> None:
        """Forget errors that were meant to be: a browser notes each answer that refuses something, or does not come.

        Args:
            meant: parts of what is noted, or will be.
        """
        self._meant += meant

    def _heard(self) -> None:
        """What was said before has arrived by an answer."""
        for context in self._contexts:
            for page in context.pages:
                page.evaluate("document.title")

    def close(self) -> None:
        """Close the pages.

        Raises:
            AssertionError: something was noted.
        """
        self._heard()
        for context in self._contexts:
            context.close()
        errors = [error for error in self.errors if not any(part in error for part in self._meant)]
        assert not errors, "the page met errors: " + "\n".join(errors)
        assert not self.elsewhere, "the page asked others: " + "\n".join(self.elsewhere)
