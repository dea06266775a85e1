"""``regard.explore``: a model on the page, served from Python to the browser of this machine."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Self, overload

from torch import nn

from regard.inspection import PAGE
from regard.inspection.folders.models import Models
from regard.inspection.questions import answers
from regard.library.arguments import checked
from regard.library.base import Model
from regard.library.own_page import own_page
from regard.serve.app import File, files
from regard.serve.server import Server, listen, page_url
from regard.system.errors import UsageError


class Page:
    """A page that is served until :meth:`close`, or the end of the program; also a context manager.

    Args:
        url: where it is.
    """

    def __init__(self, models: Models, content: Mapping[str, File], port: int | None) -> None:
        self._listener = listen(port)
        self.url = page_url(self._listener)
        self._server = Server(models, answers, content)
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve no more; again is no error."""
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Page at {self.url}{'' if self._thread.is_alive() else ', closed'}>"

    def _repr_html_(self) -> str:
        return f'<a href="{escape(self.url)}" target="_blank">{escape(self.url)}</a>'


@overload
def explore(model: Model, *, port: int | None = None, browser: bool = False) -> Page: ...
@overload
def explore(
    model: nn.Module,
    *,
    run: Callable[[], object],
    tokens: Sequence[str],
    port: int | None = None,
    browser: bool = False,
) -> Page: ...
@checked
def explore(
    model: Model | nn.Module,
    *,
    run: Callable[[], object] | None = None,
    tokens: str | Sequence[str] | None = None,
    port: int | None = None,
    browser: bool = False,
) -> Page:
    """Serve the page of a model from this program, to the browser of this machine; does not wait.

    Of a model that ``regard.load`` gives it is the whole page, of the model without ablations: it has switches of its
    own. Of a module of your own it is each head of each of its attention parts, named by the part's path, in one pass:
    as the layers of that page, or where parts differ in heads or in what they look at, as pictures.

    Args:
        model: of ``regard.load``, or a module made of the parts of ``regard.nn``.
        run: of an own module: runs it over one text.
        tokens: of an own module: the tokens of that text (of a string its letters), which are the rows and columns
            where their number fits.
        port: 0: any that is free; default: 8017, or the first free one after it.
        browser: open the page in a browser.

    Raises:
        UsageError: an own module comes without ``run`` or ``tokens``, a loaded model with them, the module has no
            attention, or the port cannot be had.
        RegardError: weights were never drawn, or are not finite; or the text has too many tokens for pictures.
    """
    own = {"run": run, "tokens": tokens}
    if isinstance(model, Model):
        if given := [name for name, value in own.items() if value is not None]:
            raise UsageError("is for a module of your own; the page of this model asks for a text itself", given[0])
        page = Page(model._explored, files(PAGE), port)
    else:
        if missing := [name for name, value in own.items() if value is None]:
            raise UsageError("a module of your own needs run= (one pass over a text) and tokens= (of it)", missing[0])
        assert run is not None
        assert tokens is not None
        page = Page(Models([]), own_page(model, run, tokens), port)
    if browser:
        webbrowser.open(page.url)
    return page
