"""``regard.explore``: a model on the page, served from Python to the browser of this machine."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Self, overload

import numpy as np
import torch
from torch import nn

from regard.explore import PAGE
from regard.explore.folders.models import Models
from regard.explore.payload import check_finite
from regard.explore.pictures import svg
from regard.explore.questions import answers
from regard.library import probe
from regard.library.base import Model
from regard.library.figure import Figure
from regard.models.captured_attention import evaluating
from regard.nn.init import refuse_undrawn
from regard.serve.app import INDEX, File, files
from regard.serve.server import Server, listen, page_url
from regard.system.errors import RegardError, UsageError

MOST = 64
"""Most tokens of a text whose heads are drawn."""
STYLE = "assets/own.css"
_CSS = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1f2328; background: #fff }
h1, h2, h3 { line-height: 1.25; margin: 1.5rem 0 .5rem } h1 { font-size: 1.6rem } h2 { font-size: 1.2rem }
h3 { font-size: 1rem } code { font-size: .95em; overflow-wrap: anywhere } .soft { color: #656d76 }
img { max-width: 100%; height: auto; display: block } summary { cursor: pointer; padding: .6rem 0 }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 } .soft { color: #9198a1 } }
"""


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
def explore(
    model: Model | nn.Module,
    *,
    run: Callable[[], object] | None = None,
    tokens: Sequence[str] | None = None,
    port: int | None = None,
    browser: bool = False,
) -> Page:
    """Serve the page of a model from this program, to the browser of this machine; does not wait.

    Of a model that ``regard.load`` gives it is the whole page, of the model without ablations: it has switches of its
    own. Of a module of your own it is each head of each of its attention parts, named by the part's path, in one pass.

    Args:
        model: of ``regard.load``, or a module made of the parts of ``regard.nn``.
        run: of an own module: runs it over one text.
        tokens: of an own module: the tokens of that text, which are the rows and columns where their number fits.
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
        content = {INDEX: File(INDEX, heads_page(model, run, tokens).encode()), STYLE: File(STYLE, _CSS.encode())}
        page = Page(Models([]), content, port)
    if browser:
        webbrowser.open(page.url)
    return page


def heads_page(model: nn.Module, run: Callable[[], object], tokens: Sequence[str]) -> str:
    """The HTML of every head of an own module in one pass over one text.

    Args:
        model, run, tokens: as of :func:`explore`.

    Raises:
        UsageError, RegardError: as of :func:`explore`.
    """
    if not any(name.endswith("weight") for name in probe.points(model)):
        raise UsageError("has no attention of regard.nn", "model")
    refuse_undrawn(model)
    with torch.inference_mode(), evaluating(model), probe.capture(model, "*weight") as found:
        run()
    if not found:
        raise UsageError("ran none of the model's attention", "run")
    sections = [_part(captured, tokens) for captured in found.values()]
    name = escape(type(model).__name__)
    said = f"{sum(weight.numel() for weight in model.parameters()):,} parameters; {len(tokens)} tokens, one pass."
    missing = "Translations, attributions and ablations are on the page of a model that Regard itself trained."
    return "\n".join([
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{name}: attention</title>',
        f'<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="{STYLE}"></head><body>',
        f'<h1>{name}</h1><p>{said} <span class="soft">{missing}</span></p>',
        *sections,
        "</body></html>\n",
    ])  # fmt: skip


def _part(captured: probe.Captured, tokens: Sequence[str]) -> str:
    """All heads of one attention part at a glance, then each alone."""
    part = captured.part or "attention"
    if len(captured.tensors) != 1:
        raise UsageError(f"gave {len(captured.tensors)} texts or passes to {part}; give one", "run")
    weight_HQK = np.asarray(captured.tensors[0].float().cpu(), np.float64)
    heads, queries, keys = weight_HQK.shape
    if max(queries, keys) > MOST:
        raise RegardError(f"{max(queries, keys)} tokens are too many for pictures; give at most {MOST}", "tokens")
    check_finite(weight_HQK)
    if len(tokens) not in (queries, keys):
        raise UsageError(f"are {len(tokens)}, but {part} has {queries} queries and {keys} keys", "tokens")
    rows, columns = (
        list(tokens) if len(tokens) == count else [str(place) for place in range(1, count + 1)]
        for count in (queries, keys)
    )
    names = [f"head {head}" for head in range(1, heads + 1)]
    found = [f"<h2><code>{escape(part)}</code></h2>", _image(svg.heads(weight_HQK, names, part), f"{part}: all heads")]
    for weight_QK, name in zip(weight_HQK, names, strict=True):
        alone = svg.heatmap(weight_QK, rows, columns, f"{part}, {name}")
        found.append(f"<details><summary>{name}</summary>{_image(alone, f'{part}, {name}')}</details>")
    return "\n".join(found)


def _image(drawn: str, name: str) -> str:
    return Figure(drawn).image.replace('alt="attention" width="100%"', f'alt="{escape(name)}"')
