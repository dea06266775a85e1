"""One word of a translation, or a whole text, and what it attends to: the sentence above, lines down to what looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from regard.explore.arcs import Glance, told
from regard.explore.row import SIZE, Row, stroke
from regard.explore.svg import MARGIN, document, number, safe, text_width

APART = 92
"""Pixels between the two lines of words."""


@dataclass(frozen=True)
class Crossing:
    """The words of both sides, which of the translation's is the query, and its weight on each of the sentence's."""

    queries: Sequence[str]
    query: int
    keys: Sequence[str]
    weight_K: NDArray[Any]


def bridges(crossings: Sequence[Crossing], title: str = "Attention", least: float = 0.02, remark: str = "") -> str:
    """The crossings below each other as SVG, a remark below them; weights under ``least`` get no line.

    Nor do those under a quarter of the largest, where that is less: an even look at a long text has lines too.
    """
    body = [f'<text class="title" x="{MARGIN}" y="{MARGIN + 12}">{safe(title)}</text>']
    y, widest = MARGIN + 34.0, MARGIN * 2 + text_width(title, 15)
    for crossing in crossings:
        few = min(least, float(crossing.weight_K.max(initial=0.0)) / 4)
        above, below = Row(crossing.keys, y + 34), Row(crossing.queries, y + 34 + APART)
        body += above.tints(crossing.weight_K) + _lines(crossing, above, below, few)
        body += above.texts() + below.texts(crossing.query)
        body += above.shares(crossing.weight_K, above.line - SIZE - 6, few)
        y, widest = below.line + 26, max(widest, above.width, below.width)
    return document(widest, y + 4, title, " ".join(map(_told, crossings)), body, remark)


def _lines(crossing: Crossing, above: Row, below: Row, least: float) -> list[str]:
    start, low, high = number(below.middles[crossing.query]), below.line - SIZE - 2, above.line + 9
    middle = number((low + high) / 2)
    return [
        f'<path class="line" d="M{start} {number(low)}C{start} {middle} {number(end)} {middle} {number(end)} '
        f'{number(high)}" {stroke(weight)}/>'
        for end, weight in zip(above.middles, map(float, crossing.weight_K), strict=True)
        if weight >= least
    ]


def _told(crossing: Crossing) -> str:
    """A crossing in words."""
    looked = told(Glance(crossing.keys, crossing.weight_K, -1))
    who = crossing.queries[crossing.query]
    return f"{' '.join(crossing.queries)}: {who} {looked}" if len(crossing.queries) > 1 else f"{who} {looked}"
