"""Attention of one forward pass as labelled arrays, as the page shows it, and its pictures and pages in notebooks."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.inspection.folders.models import Models
from regard.inspection.forward.passes import forward_pass
from regard.inspection.forward.record import (
    AttentionRecord,
    Kind,
    Token,
    Words,
    by_word,
    entropy,
    is_self_attention,
    rollout,
)
from regard.inspection.forward.text_windows import fit_request
from regard.inspection.pictures.view import View
from regard.inspection.questions.export import SQUARES, describe_changes, export_file
from regard.inspection.requests import Request
from regard.system.errors import RegardError, UsageError
from regard.text.counts import counted

HEIGHT = 720
"""Height of a page in a notebook, in pixels."""
_NO_SCRIPT = re.compile(r"<noscript>.*?</noscript>", re.DOTALL)


@dataclass(frozen=True, repr=False)
class Figure:
    """A picture.

    Args:
        svg: its source.
    """

    svg: str

    def __repr__(self) -> str:
        return f"<Figure: SVG of {len(self.svg):,} characters; save(path) writes it>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Path | str) -> Path:
        """Write it to a file that ends in ``.svg``.

        Raises:
            UsageError: the name ends otherwise.
            RegardError: the file cannot be written.
        """
        path = Path(path)
        if path.suffix != ".svg":
            raise UsageError("a picture is saved as .svg", str(path))
        try:
            path.write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise RegardError(f"cannot be written: {error.strerror or error}", str(path)) from None
        return path

    @property
    def image(self) -> str:
        """It as an HTML image, which needs no other file."""
        content = b64encode(self.svg.encode()).decode("ascii")
        return f'<img alt="attention" width="100%" src="data:image/svg+xml;base64,{content}">'


def framed_page(page: str, still: Figure) -> str:
    """A page in a frame; the picture shows instead where frames are taken out, or scripts are off.

    Args:
        page: a whole HTML document that needs no other file.
        still: what it shows without its scripts.
    """
    alone = _NO_SCRIPT.sub(lambda _: f"<noscript>{still.image}</noscript>", page, count=1)
    style = "position:absolute;inset:0;width:100%;height:100%;border:0;background:#fff"
    frame = f'<iframe title="attention" style="{style}" srcdoc="{escape(alone)}"></iframe>'
    return f'<div style="position:relative;min-height:{HEIGHT}px;overflow:hidden">{still.image}{frame}</div>'


@dataclass(frozen=True, eq=False)
class TokenLabels:
    """The tokens along one axis of an array.

    Args:
        tokens: as the page shows them.
        offsets: ``(tokens, 2)``: the characters of ``text`` that each covers, from and to; none for a special symbol.
        words: each word with the indices of its tokens; a special symbol is a word of its own.
        text: as the tokenizer has it; of an image nothing.
    """

    tokens: tuple[str, ...]
    offsets: NDArray[np.int64]
    words: tuple[tuple[str, tuple[int, ...]], ...]
    text: str

    @classmethod
    def of(cls, tokens: Sequence[Token], words: Words, text: str) -> TokenLabels:
        """The labels of tokens of a pass."""
        return cls(
            tuple(token.text for token in tokens),
            np.array([(token.start, token.end) for token in tokens], np.int64).reshape(-1, 2),
            tuple((word, tuple(places)) for word, places in words),
            text,
        )

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class _Seen:
    """A pass, and how it was asked for."""

    models: Models
    asked: Request
    record: AttentionRecord


@dataclass(frozen=True, eq=False, repr=False)
class Attention:
    """The attention weights of one forward pass, of one kind of attention.

    Args:
        kind: ``encoder`` or ``decoder`` (self-attention), ``cross`` (from what is written to what is read), or ``pool``
            (one learned query).
        weights: ``[layer, head, query, key]``; a row over the keys sums to one.
        queries: the tokens that attend, the rows; of ``cross`` what is written at each place.
        keys: the tokens attended to, the columns.
        kinds: of attention that this pass has; :meth:`of` gives another.
        source, target: the texts read and written, as the tokenizers have them.
    """

    kind: Kind
    weights: NDArray[np.float32]
    queries: TokenLabels
    keys: TokenLabels
    kinds: tuple[Kind, ...]
    source: str
    target: str
    _seen: _Seen = field(repr=False)

    def __repr__(self) -> str:
        text = self.source if len(self.source) <= 40 else self.source[:39] + "…"
        names = (("layer",), ("head",), ("query", "queries"), ("key",))
        sizes = ", ".join(counted(size, *name) for size, name in zip(self.weights.shape, names, strict=True))
        return f"<Attention {self.kind}: {sizes}{f'; {text!r}' if text else ''}>"

    def of(self, kind: Kind) -> Attention:
        """Another kind of attention of the same pass.

        Raises:
            UsageError: the model has no such kind.
        """
        return _attention(self._seen, kind)

    def by_word(self) -> NDArray[np.float64]:
        """``weights`` by word: summed over a key word's tokens, averaged over a query word's."""
        queries, keys = ([list(places) for _, places in side.words] for side in (self.queries, self.keys))
        return np.array([[by_word(one.astype(np.float64), queries, keys) for one in layer] for layer in self.weights])

    def rollout(self, layer: int | None = None) -> NDArray[np.float64]:
        """Attention rollout ``[query, key]``: how much of each token reaches each place of a layer [Abnar20 §3].

        Args:
            layer: counted from 1; default: the last.

        Raises:
            UsageError: it is no self-attention, or there is no such layer.
        """
        if not is_self_attention(self.kind):
            raise UsageError("only within one text can attention be followed from layer to layer", "kind")
        self._check(layer, None)
        return np.asarray(rollout(list(self.weights[:layer])), np.float64)

    def entropy(self) -> NDArray[np.float64]:
        """``[layer, head, query]``: the entropy of each row, in bits; 0 looks at one token [Clark19 §3.3]."""
        return np.asarray(entropy(self.weights.astype(np.float64)), np.float64)

    def plot(
        self, layer: int | None = None, head: int | None = None, *, words: bool = False, token: str | None = None
    ) -> Figure:
        """The picture that ``regard attend --svg`` and the page write.

        Args:
            layer: counted from 1; default: all, or with ``head`` or ``token`` the last.
            head: counted from 1; default: all, each small.
            words: words instead of tokens; ``token``: where this word looks (its last occurrence). Not for images.

        Raises:
            UsageError: there is no such layer, head or word.
            RegardError: a single head has too many weights for a picture.
        """
        self._check(layer, head)
        seen = self._seen
        if layer is None and (head is not None or token is not None):
            layer = len(self.weights)
        if seen.asked.image is not None:
            if words or token is not None:
                raise UsageError("patches of an image have no words", "words" if words else "token")
            return Figure(export_file(seen.models, seen.asked, "svg", self.kind, layer, head)[0].decode())
        cut = fit_request(seen.models, seen.asked)
        remark = " ".join(filter(None, (cut.label, describe_changes(cut.asked))))
        view = View(seen.record, self.kind, layer, head, words or token is not None)
        return Figure(view.svg(token, remark, SQUARES))

    def page(self) -> str:
        """The page with this pass alone, as ``regard attend --html`` writes it: one HTML file without network.

        Raises:
            RegardError: the pass has more weights than a file should hold.
        """
        return export_file(self._seen.models, self._seen.asked, "html", self.kind)[0].decode()

    def _repr_html_(self) -> str:
        """The page in a frame; a still picture where scripts are off, or where the pass is too large for a page."""
        try:
            still = self.plot()
            try:
                return framed_page(self.page(), still)
            except RegardError:
                return still.image
        except RegardError as error:
            return f"<p>{escape(repr(self))}: {escape(str(error))}</p>"

    def _check(self, layer: int | None, head: int | None) -> None:
        layers, heads = self.weights.shape[:2]
        for name, number, most in (("layer", layer, layers), ("head", head, heads)):
            if number is not None and number not in range(1, most + 1):
                raise UsageError(f"there is no {name} {number}; they count from 1 to {most}", name)


def attention_of(models: Models, asked: Request, kind: Kind | None) -> Attention:
    """The attention of a request; of a text that is longer than the model reads that of a part, with a warning.

    Raises:
        UsageError: the model has no such kind of attention.
        RegardError: it has none, or the text is empty.
    """
    record = forward_pass(models, asked).record
    if not record.kinds:
        raise RegardError("this model has no attention to look at", "model")
    first: Kind = "cross" if "cross" in record.kinds else record.kinds[0]
    return _attention(_Seen(models, asked, record), first if kind is None else kind)


def _attention(seen: _Seen, kind: Kind) -> Attention:
    record = seen.record
    if kind not in record.kinds:
        raise UsageError(f"{kind!r} is not there; this model has {' and '.join(record.kinds)} attention", "kind")
    queries, keys = record.words(kind)
    query_text, key_text = record.texts(kind)
    return Attention(
        kind,
        np.stack(record.weights[kind]),
        TokenLabels.of(record.queries(kind), queries, query_text),
        TokenLabels.of(record.keys(kind), keys, key_text),
        tuple(record.kinds),
        record.source_text,
        record.target_text,
        seen,
    )
