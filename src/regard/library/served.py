"""``regard.explore``: a model on the page, served from Python to the browser of this machine.

Of a module of your own the page is every head of its attention parts in one pass, named by the part's path.
"""

from __future__ import annotations

import re
import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Self, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regard.inspection import PAGE
from regard.inspection.folders.facts import NOTHING
from regard.inspection.folders.models import Models
from regard.inspection.forward.passes import ForwardPass
from regard.inspection.forward.record import AttentionRecord, Kind, Token
from regard.inspection.forward.text_windows import WindowedRequest
from regard.inspection.pictures import svg
from regard.inspection.questions.export import render_page
from regard.inspection.requests import Request, check_finite
from regard.library import probe
from regard.library.attention import Figure
from regard.library.base import Model
from regard.library.serve.app import Site
from regard.library.serve.files import INDEX, File, files
from regard.library.serve.server import Server, listen, page_url
from regard.models.captured_attention import evaluating
from regard.models.presets import count_parameters
from regard.nn.init import refuse_undrawn
from regard.system.errors import RegardError, UsageError
from regard.training.reporters import format_parameters

MOST = 64
"""Most tokens of a text whose heads are drawn."""
STYLE = "assets/own.css"
_CSS = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1f2328; background: #fff }
h1, h2 { line-height: 1.25; margin: 1.5rem 0 .5rem } h1 { font-size: 1.6rem } h2 { font-size: 1.2rem }
code { font-size: .95em; overflow-wrap: anywhere } .soft { color: #656d76 }
img { max-width: 100%; height: auto; display: block } summary { cursor: pointer; padding: .6rem 0 }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 } .soft { color: #9198a1 } }
"""
_POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
_SPACE = ("▁", "Ġ", " ")
"""What a token begins with where a space stands before it."""
Weights = Mapping[str, NDArray[np.float32]]
"""``weight_HQK`` of each attention part, by its path in the model."""


class Page:
    """A page that is served until :meth:`close`, or the end of the program; also a context manager.

    Args:
        url: where it is.
    """

    def __init__(self, site: Site, port: int | None) -> None:
        self._listener = listen(port)
        self.url = page_url(self._listener)
        self._server = Server(site)
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
        site = Site(model._explored, files(PAGE))
    else:
        if not isinstance(model, nn.Module):
            raise UsageError(
                f"expected a model or a torch module, not {type(model).__name__}; see regard.load", "model"
            )
        if missing := [name for name, value in own.items() if value is None]:
            raise UsageError("a module of your own needs run= (one pass over a text) and tokens= (of it)", missing[0])
        assert run is not None
        assert tokens is not None
        site = Site(Models([]), own_page(model, run, tokens))
    page = Page(site, port)
    if browser:
        webbrowser.open(page.url)
    return page


def own_page(model: nn.Module, run: Callable[[], object], tokens: Sequence[str]) -> dict[str, File]:
    """The files of the page, by name.

    Where all parts have as many heads and look at the same tokens, they are the layers of Regard's own page; else every
    head is a picture.

    Args:
        model: a module made of the parts of ``regard.nn``.
        run: runs it over one text.
        tokens: of that text.

    Raises:
        UsageError: the module has no attention, none ran, or a pass does not fit the tokens.
        RegardError: weights were never drawn, or are not finite; or there are too many tokens for pictures.
    """
    weights = _capture_weights(model, run, tokens)
    shapes = {weight_HQK.shape for weight_HQK in weights.values()}
    if len(shapes) > 1 or next(iter(shapes))[1:] != (len(tokens), len(tokens)):
        return {INDEX: File(INDEX, _pictures(model, weights, tokens).encode()), STYLE: File(STYLE, _CSS.encode())}
    page = _layers(model, weights, tokens)
    policy = _POLICY.search(page)
    assert policy is not None  # the page is built with it
    return {INDEX: File(INDEX, page.encode(), {"Content-Security-Policy": policy[1]})}


def _capture_weights(model: nn.Module, run: Callable[[], object], tokens: Sequence[str]) -> Weights:
    if not any(name.endswith("weight") for name in probe.points(model)):
        raise UsageError("has no attention of regard.nn", "model")
    refuse_undrawn(model)
    with torch.inference_mode(), evaluating(model), probe.capture(model, "*weight") as found:
        run()
    if not found:
        raise UsageError("ran none of the model's attention", "run")
    weights = {}
    for captured in found.values():
        part = captured.part or "attention"
        if len(captured.tensors) != 1:
            raise UsageError(f"gave {len(captured.tensors)} texts or passes to {part}; give one", "run")
        weights[part] = weight_HQK = captured.tensors[0].float().cpu().numpy()
        _, queries, keys = weight_HQK.shape
        if max(queries, keys) > MOST:
            raise RegardError(f"{max(queries, keys)} tokens are too many for pictures; give at most {MOST}", "tokens")
        check_finite(weight_HQK)
        if len(tokens) not in (queries, keys):
            raise UsageError(f"are {len(tokens)}, but {part} has {queries} queries and {keys} keys", "tokens")
    return weights


def _layers(model: nn.Module, weights: Weights, tokens: Sequence[str]) -> str:
    """The page of one pass, the parts as its layers."""
    weight_LHQQ = [*weights.values()]
    causal = not any(np.triu(weight_QQ, 1).any() for weight_HQQ in weight_LHQQ for weight_QQ in weight_HQQ)
    kind: Kind = "decoder" if causal else "encoder"
    text, placed = _place(tokens)
    count = count_parameters(model)
    known = {
        **NOTHING,
        "number": 0,
        "name": type(model).__name__,
        "title": f"a module of your own, {format_parameters(count)}",
        "family": "gpt" if causal else "bert",
        "kinds": {kind: [len(weights), len(weight_LHQQ[0])]},
        "parts": {kind: [*weights]},
        "masked": [kind] if causal else [],
        "max_tokens": len(tokens),
        "parameters": count,
        "course": False,
        "running": False,
        "ready": True,
    }
    record = AttentionRecord(text, text, placed, placed, placed, {kind: weight_LHQQ})
    asked = WindowedRequest(Request(text=text))
    return render_page(ForwardPass(record, {"kind": "nothing"}), known, asked, {"kind": kind})


def _place(tokens: Sequence[str]) -> tuple[str, tuple[Token, ...]]:
    """The text of tokens, and where each stands: with spaces between them, where they do not say it themselves."""
    told = any(token.startswith(_SPACE) for token in tokens)
    text, placed = "", []
    for token in tokens:
        begins = text and (token.startswith(_SPACE) if told else True)
        word = token.removeprefix("▁").removeprefix("Ġ").removeprefix(" ") if told else token
        text += " " if begins else ""
        placed.append(Token(token, len(text), len(text) + len(word)))
        text += word
    return text, tuple(placed)


def _pictures(model: nn.Module, weights: Weights, tokens: Sequence[str]) -> str:
    """Every head as a picture."""
    name, parameters = escape(type(model).__name__), format_parameters(count_parameters(model))
    return "\n".join([
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{name}: attention</title>',
        f'<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="{STYLE}"></head><body>',
        f'<h1>{name}</h1><p class="soft">{parameters}; {len(tokens)} tokens, one pass. Rows look, columns are '
        "looked at.</p>",
        *(_part(part, weight_HQK, tokens) for part, weight_HQK in weights.items()),
        "</body></html>\n",
    ])  # fmt: skip


def _part(part: str, weight_HQK: NDArray[np.float32], tokens: Sequence[str]) -> str:
    """All heads of one attention part at a glance, then each alone."""
    heads, *sides = weight_HQK.shape
    rows, columns = (
        list(tokens) if len(tokens) == count else [str(place) for place in range(1, count + 1)] for count in sides
    )

    def image(drawn: str, name: str) -> str:
        return Figure(drawn).image.replace('alt="attention" width="100%"', f'alt="{escape(name)}"')

    names = [f"head {head}" for head in range(1, heads + 1)]
    wide_HQK = weight_HQK.astype(np.float64)
    found = [f"<h2><code>{escape(part)}</code></h2>", image(svg.heads(wide_HQK, names, ""), f"{part}: all heads")]
    for weight_QK, name in zip(wide_HQK, names, strict=True):
        alone = svg.heatmap(weight_QK, rows, columns, f"{part}, {name}")
        found.append(f"<details><summary>{name}</summary>{image(alone, f'{part}, {name}')}</details>")
    return "\n".join(found)
