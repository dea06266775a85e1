"""Attention as self-contained SVG, light and dark: heat maps, arcs among words, lines between two sentences."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from regard.text.counts import counted
from regard.text.terminal import crop, visible

Weights = NDArray[np.floating]

FONT = "ui-sans-serif, system-ui, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif"
STYLE = f"""
text {{ font-family: {FONT}; font-size: 13px; fill: #1f2328 }}
.title {{ font-size: 15px; font-weight: 600 }}
.soft {{ fill: #656d76; font-size: 11px }}
.page {{ fill: #ffffff }}
.frame {{ fill: none; stroke: #d0d7de }}
.ink {{ fill: #1a4fc4 }}
.word {{ font-size: 17px }}
.line {{ fill: none; stroke: #1a4fc4; stroke-linecap: round }}
.from {{ fill: #b3400a; font-weight: 600 }}
.spot {{ fill: #b3400a }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e6edf3 }}
.soft {{ fill: #9198a1 }}
.page {{ fill: #0d1117 }}
.frame {{ stroke: #3d444d }}
.ink {{ fill: #79b8ff }}
.line {{ stroke: #79b8ff }}
.from, .spot {{ fill: #ffa657 }}
}}"""
CELL = 24
"""Side of a weight's square, in pixels."""
MARGIN = 20
LABEL = 26
"""Most characters of a token."""
SIDE = 176.0
"""Pixels of a thumbnail's longer side."""
ACROSS = 4
"""Thumbnails per row."""
LINE = 60
"""Most characters of a line of a remark."""
SIZE = 17
"""Size of the words, pixels (as in the style)."""
GAP = 9
"""Pixels between words."""
CAPTION = 120
"""Most cells of a caption."""
LEAST = 0.02
"""Weights below get no arc."""
APART = 92
"""Pixels between the two rows of words."""

_NARROW, _BROAD = frozenset("iljtfrI.,:;'’!|()[] -/"), frozenset("mwMW@%—…")


def text_width(text: str, size: float = 13) -> float:
    """Approximate width of ``text`` in pixels, in a sans-serif font of ``size``."""
    return size * sum(map(_advance, text))


def _advance(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in _NARROW:
        return 0.36
    if character in _BROAD:
        return 0.92
    return 0.7 if character.isupper() else 0.58


def label(text: str) -> str:
    """A token with visible characters, truncated and escaped."""
    text = visible(text)
    return safe(text if len(text) <= LABEL else text[: LABEL - 1] + "…")


def safe(text: str) -> str:
    """``text`` escaped for XML, without characters that XML forbids."""
    return escape(re.sub("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text), {'"': "&quot;"})


def frame(x: float, y: float, width: float, height: float) -> str:
    """The frame of a picture."""
    return f'<rect class="frame" {box(x, y, width, height)}/>'


def box(x: float, y: float, width: float, height: float) -> str:
    """Where an element lies."""
    return f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'


def number(value: float) -> str:
    """A coordinate, formatted briefly."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def document(width: float, height: float, title: str, description: str, body: Iterable[str], remark: str = "") -> str:
    """A complete SVG document with a description for screen readers; light and dark, no scripts, self-contained.

    Args:
        width, height: of the picture; of a longer title or remark the width grows.
        title: what is seen, written above it; ``description``: the same for screen readers.
        body: its elements.
        remark: a caption below the picture, also for screen readers.
    """
    width = max(width, MARGIN * 2 + text_width(title, 15))
    if remark:
        lines = textwrap.wrap(visible(remark), LINE)
        body = [*body, *(small_text(MARGIN, height + 16 * line, text) for line, text in enumerate(lines))]
        width = max(width, MARGIN * 2 + max(text_width(line, 11) for line in lines))
        height, description = height + 16 * len(lines), f"{remark} {description}"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" height="{number(height)}" '
        f'viewBox="0 0 {number(width)} {number(height)}" role="img" aria-labelledby="title description">',
        f'<title id="title">{safe(title)}</title>',
        f'<desc id="description">{safe(description)}</desc>',
        f"<style>{STYLE}\n</style>",
        '<rect class="page" width="100%" height="100%" rx="6"/>',
        f'<text class="title" x="{MARGIN}" y="{MARGIN + 12}">{safe(title)}</text>',
        *body,
        "</svg>\n",
    ])  # fmt: skip


def heatmap(
    weight_QK: Weights,
    queries: Sequence[str],
    keys: Sequence[str],
    title: str = "Attention",
    note: str = "",
    remark: str = "",
) -> str:
    """One head: a square per query (row) and key (column), darker for larger weights, with the weight as tooltip.

    Args:
        weight_QK: the weights of one head.
        queries: row labels.
        keys: column labels.
        title: stands above the picture.
        note: a line below it; ``remark``: as in :func:`document`.
    """
    weight_QK = np.asarray(weight_QK, dtype=np.float64)
    top = float(weight_QK.max(initial=0.0)) or 1.0
    rows, columns = [label(q) for q in queries], [label(k) for k in keys]
    left = MARGIN + max((text_width(visible(q)[:LABEL]) for q in queries), default=0) + 8
    slanted = [text_width(visible(k)[:LABEL]) * 0.71 for k in keys]
    above = MARGIN + 28 + max(slanted, default=0) + 10
    wide, high = len(keys) * CELL, len(queries) * CELL
    reach = max((x * CELL + CELL / 2 + w for x, w in enumerate(slanted)), default=0)  # rotated labels reach right
    width = max(left + max(wide, reach) + MARGIN, left + 170 + MARGIN)
    body = []
    for x, name in enumerate(columns):
        place = f"{number(left + x * CELL + CELL / 2 + 4)} {number(above - 8)}"
        body.append(f'<text transform="translate({place}) rotate(-45)">{name}</text>')
    for y, name in enumerate(rows):
        place = f'x="{number(left - 8)}" y="{number(above + y * CELL + 16.5)}"'
        body.append(f'<text {place} text-anchor="end">{name}</text>')
    body += squares(weight_QK, left, above, CELL, rows, columns)
    body.append(frame(left, above, wide, high))
    body += scale(left, above + high + 18, top)
    if note:
        body.append(small_text(MARGIN, above + high + 54, note))
        width = max(width, MARGIN * 2 + text_width(note, 11))
    told = f"Heat map of {counted(len(queries), 'query', 'queries')} (rows) by {counted(len(keys), 'key')} (columns). "
    told += strongest(weight_QK, queries, keys)
    return document(width, above + high + (70 if note else 48), title, told, body, remark)


def squares(
    weight_QK: Weights, left: float, above: float, cell: float, rows: Sequence[str] = (), columns: Sequence[str] = ()
) -> list[str]:
    """A square per weight, full colour at the largest; labels add tooltips."""
    top = float(weight_QK.max(initial=0.0)) or 1.0
    lines = ['<g class="ink">']
    side = cell - 1 if cell >= 8 else cell
    for y, weight_K in enumerate(weight_QK):
        for x, weight in enumerate(weight_K):
            place = box(left + x * cell, above + y * cell, side, side)
            opacity = f'fill-opacity="{min(max(float(weight) / top, 0.0), 1.0):.3f}"'
            told = f"><title>{rows[y]} → {columns[x]}: {weight:.3f}</title></rect>" if rows and columns else "/>"
            lines.append(f"<rect {place} {opacity}{told}")
    return [*lines, "</g>"]


def scale(left: float, y: float, top: float) -> list[str]:
    """The colour scale."""
    steps = [
        f'<path class="ink" fill-opacity="{i / 19:.3f}" d="M{number(left + 12 + i * 6)} {number(y)}h6v10h-6z"/>'
        for i in range(20)
    ]
    zero, largest = small_text(left, y + 9, "0"), small_text(left + 140, y + 9, f"{top:.2f}")
    return [zero, '<g shape-rendering="crispEdges">', *steps, "</g>", largest]


def small_text(x: float, y: float, text: str, anchor: str = "start") -> str:
    """A small remark."""
    return f'<text class="soft" x="{number(x)}" y="{number(y)}" text-anchor="{anchor}">{safe(text)}</text>'


def strongest(weight_QK: Weights, queries: Sequence[str], keys: Sequence[str]) -> str:
    """The five strongest links, in words."""
    order = np.argsort(np.asarray(weight_QK), axis=None, kind="stable")[::-1][:5]
    pairs = [divmod(int(i), len(keys)) for i in order]
    said = [f"{visible(queries[q])} to {visible(keys[k])} {float(weight_QK[q][k]):.2f}" for q, k in pairs]
    return "Strongest: " + "; ".join(said) + "." if said else ""


def thumbnails(
    names: Sequence[str], draw: Callable[[int, float, float], Iterable[str]], wide: float, high: float, top: float
) -> tuple[list[str], float, float]:
    """Small pictures of equal size in rows, each with its name and a frame: the elements, and the size of all.

    Args:
        names: of the pictures.
        draw: the elements of a picture, by its index, left and upper edge.
        wide, high: of each; ``top``: upper edge of the first.
    """
    body = []
    for place, name in enumerate(names):
        left, above = MARGIN + place % ACROSS * (wide + 20), top + place // ACROSS * (high + 36)
        body += [small_text(left, above - 6, name), *draw(place, left, above), frame(left, above, wide, high)]
    rows = -(-len(names) // ACROSS)
    return body, MARGIN * 2 + min(len(names), ACROSS) * (wide + 20) - 20, top - 10 + rows * (high + 36)


def heads(weight_HQK: Weights, names: Sequence[str], title: str = "All heads", remark: str = "") -> str:
    """Thumbnails of many heads, each scaled to its own largest weight."""
    count_H, rows_Q, columns_K = weight_HQK.shape
    cell = max(min(SIDE / max(rows_Q, columns_K, 1), 12.0), 2.0)

    def draw(head: int, left: float, above: float) -> list[str]:
        return squares(np.asarray(weight_HQK[head], dtype=np.float64), left, above, cell)

    body, width, height = thumbnails(names, draw, columns_K * cell, rows_Q * cell, MARGIN + 50)
    return document(width, height, title, f"{counted(count_H, 'head')}, a small heat map each.", body, remark)


class WordRow:
    """Words in a row.

    Args:
        words: from left to right.
        line: the y coordinate of their baseline, in pixels.
    """

    def __init__(self, words: Sequence[str], line: float) -> None:
        self.words, self.line = words, line
        self.sizes = [text_width(visible(word), SIZE) for word in words]
        self.starts = list(accumulate(self.sizes, lambda start, size: start + size + GAP, initial=MARGIN + 4.0))
        """Of each word, and of the one that would follow."""
        self.middles = [start + size / 2 for start, size in zip(self.starts, self.sizes, strict=False)]
        self.width = self.starts[-1] + MARGIN

    def tints(self, weight_K: Weights) -> list[str]:
        """A box behind each word, darker for larger weights, with the weight as tooltip."""
        found = []
        for start, size, weight in zip(self.starts, self.sizes, map(float, weight_K), strict=False):
            place = box(start - 3, self.line - SIZE, size + 6, SIZE + 7)
            tint = f'rx="4" fill-opacity="{0.55 * min(weight, 1):.3f}"'
            found.append(f'<rect class="ink" {place} {tint}><title>{weight:.3f}</title></rect>')
        return found

    def texts(self, query: int = -1) -> list[str]:
        """The words; the one at ``query`` is emphasised."""
        found = []
        for place, (word, start, size) in enumerate(zip(self.words, self.starts, self.sizes, strict=False)):
            kind = "word from" if place == query else "word"
            spot = f'x="{number(start)}" y="{number(self.line)}"'
            exact = f'textLength="{number(size)}" lengthAdjust="spacingAndGlyphs"'  # same line end in any font
            found.append(f'<text class="{kind}" {spot} {exact}>{label(word)}</text>')
        return found

    def shares(self, weight_K: Weights, y: float) -> list[str]:
        """The three largest weights as percentages at height ``y``; none below 5 %."""
        strongest = sorted(range(len(self.words)), key=lambda k: -float(weight_K[k]))[:3]
        return [
            small_text(self.middles[k], y, f"{float(weight_K[k]):.0%}", "middle")
            for k in sorted(strongest)
            if float(weight_K[k]) >= 0.05
        ]


def stroke(weight: float) -> str:
    """The stroke style for a weight: thicker and darker for larger ones."""
    strength = min(weight, 1.0)
    return f'stroke-width="{1 + 7 * strength:.2f}" stroke-opacity="{0.2 + 0.75 * strength:.3f}"'


@dataclass(frozen=True)
class ArcDiagram:
    """One query and its attention: the words (keys), a weight for each, and the index of the query.

    ``queries`` are the words among which the query stands, where it is none of the keys.
    """

    words: Sequence[str]
    weight_K: Weights
    query: int
    caption: str = ""
    queries: Sequence[str] = ()


def arc_diagrams(glances: Sequence[ArcDiagram], title: str = "Attention", remark: str = "") -> str:
    """Arcs among words, or lines between two sentences, below each other as SVG, with a remark.

    Weights below :data:`LEAST` get no arc. Words carry their weight as a tint, the strongest three a percentage too.
    """
    body: list[str] = []
    y, widest = MARGIN + (34.0 if glances[0].queries else 26.0), 0.0
    for glance in glances:
        lines, wide, high = (_lines if glance.queries else _arcs)(glance, y)
        body, y, widest = body + lines, y + high, max(widest, wide)
    return document(widest, y + 4, title, " ".join(map(describe, glances)), body, remark)


def _arcs(glance: ArcDiagram, top: float) -> tuple[list[str], float, float]:
    below = top + (44 if glance.caption else 26)
    middles = WordRow(glance.words, 0).middles
    home = middles[glance.query]
    reach = max((abs(m - home) for m, w in zip(middles, glance.weight_K, strict=True) if w >= LEAST), default=0)
    row = WordRow(glance.words, below + min(reach * 0.42, 170))  # below the caption and the highest arc
    caption = crop(visible(glance.caption), CAPTION) if glance.caption else ""
    body = [small_text(MARGIN, top + 10, caption)] if caption else []
    body += row.tints(glance.weight_K)
    for place, (middle, weight) in enumerate(zip(middles, map(float, glance.weight_K), strict=True)):
        if weight >= LEAST and place != glance.query:  # half an ellipse over the words
            # a cubic Bézier peaks at three quarters of its handles' height
            rise = min(abs(middle - home) * 0.42, 170) * 4 / 3
            one, two, low = number(home), number(middle), row.line - SIZE - 2
            bend = f"M{one} {number(low)}C{one} {number(low - rise)} {two} {number(low - rise)} {two} {number(low)}"
            body.append(f'<path class="line" d="{bend}" {stroke(weight)}/>')
    body += row.texts(glance.query) + row.shares(glance.weight_K, row.line + 24)
    return body, max(row.width, 2 * MARGIN + text_width(caption, 11)), row.line - top + 42


def _lines(glance: ArcDiagram, top: float) -> tuple[list[str], float, float]:
    """Down to a quarter of the largest weight, where that is less: an even look at a long text has lines too."""
    least = min(LEAST, float(glance.weight_K.max(initial=0.0)) / 4)
    above, below = WordRow(glance.words, top + 34), WordRow(glance.queries, top + 34 + APART)
    start, low, high = number(below.middles[glance.query]), below.line - SIZE - 2, above.line + 9
    middle = number((low + high) / 2)
    body = above.tints(glance.weight_K)
    body += [
        f'<path class="line" d="M{start} {number(low)}C{start} {middle} {number(end)} {middle} {number(end)} '
        f'{number(high)}" {stroke(weight)}/>'
        for end, weight in zip(above.middles, map(float, glance.weight_K), strict=True)
        if weight >= least
    ]
    body += above.texts() + below.texts(glance.query) + above.shares(glance.weight_K, above.line - SIZE - 6)
    return body, max(above.width, below.width), below.line + 26 - top


def describe(glance: ArcDiagram) -> str:
    """An arc diagram in words."""
    order = sorted(range(len(glance.words)), key=lambda k: -float(glance.weight_K[k]))[:3]
    said = ", ".join(f"{visible(glance.words[k])} {float(glance.weight_K[k]):.0%}" for k in order)
    text = glance.caption if not glance.queries else " ".join(glance.queries) if len(glance.queries) > 1 else ""
    who = visible((glance.queries or glance.words)[glance.query])
    return f"{text}: {who} attends to {said}.".removeprefix(": ")
