"""Arc diagrams as SVG: where one query attends among words, and alignment lines between two sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from regard.inspection.pictures.svg import MARGIN, Weights, document, label, number, small_text, text_width
from regard.inspection.pictures.terminal_heatmap import ColourScheme, paint
from regard.text.terminal import crop, fit, visible, width

SIZE = 17
"""Size of the words, pixels (as in the style)."""
GAP = 9
"""Pixels between words."""
CAPTION = 120
"""Most cells of a caption."""
APART = 92
"""Pixels between the two rows of words."""


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
            box = f'x="{number(start - 3)}" y="{number(self.line - SIZE)}" width="{number(size + 6)}"'
            tint = f'height="{SIZE + 7}" rx="4" fill-opacity="{0.55 * min(weight, 1):.3f}"'
            found.append(f'<rect class="ink" {box} {tint}><title>{weight:.3f}</title></rect>')
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

    def shares(self, weight_K: Weights, y: float, least: float) -> list[str]:
        """The three largest weights as percentages at height ``y``; none below ``least`` or 5 %."""
        strongest = sorted(range(len(self.words)), key=lambda k: -float(weight_K[k]))[:3]
        return [
            small_text(self.middles[k], y, f"{float(weight_K[k]):.0%}", "middle")
            for k in sorted(strongest)
            if float(weight_K[k]) >= max(least, 0.05)
        ]


def stroke(weight: float) -> str:
    """The stroke style for a weight: thicker and darker for larger ones."""
    strength = min(weight, 1.0)
    return f'stroke-width="{1 + 7 * strength:.2f}" stroke-opacity="{0.2 + 0.75 * strength:.3f}"'


@dataclass(frozen=True)
class ArcDiagram:
    """One query and its attention: the words (keys), a weight for each, and the index of the query."""

    words: Sequence[str]
    weight_K: Weights
    query: int
    caption: str = ""


def arc_diagrams(glances: Sequence[ArcDiagram], title: str = "Attention", least: float = 0.02, remark: str = "") -> str:
    """Arc diagrams below each other as SVG, with a remark; weights below ``least`` get no arc.

    Words carry their weight as a tint, the strongest three also as a percentage.
    """
    body: list[str] = []
    y, widest = MARGIN + 26.0, 0.0
    for glance in glances:
        lines, wide, high = _diagram(glance, y, least)
        body, y, widest = body + lines, y + high, max(widest, wide)
    return document(widest, y + 4, title, " ".join(map(describe, glances)), body, remark)


def _diagram(glance: ArcDiagram, top: float, least: float) -> tuple[list[str], float, float]:
    below = top + (44 if glance.caption else 26)
    middles = WordRow(glance.words, 0).middles
    home = middles[glance.query]
    reach = max((abs(m - home) for m, w in zip(middles, glance.weight_K, strict=True) if w >= least), default=0)
    row = WordRow(glance.words, below + min(reach * 0.42, 170))  # below the caption and the highest arc
    caption = crop(visible(glance.caption), CAPTION) if glance.caption else ""
    body = [small_text(MARGIN, top + 10, caption)] if caption else []
    body += row.tints(glance.weight_K)
    for place, (middle, weight) in enumerate(zip(middles, map(float, glance.weight_K), strict=True)):
        if weight >= least and place != glance.query:  # half an ellipse over the words
            # a cubic Bézier peaks at three quarters of its handles' height
            rise = min(abs(middle - home) * 0.42, 170) * 4 / 3
            one, two, low = number(home), number(middle), row.line - SIZE - 2
            bend = f"M{one} {number(low)}C{one} {number(low - rise)} {two} {number(low - rise)} {two} {number(low)}"
            body.append(f'<path class="line" d="{bend}" {stroke(weight)}/>')
    body += row.texts(glance.query) + row.shares(glance.weight_K, row.line + 24, least)
    return body, max(row.width, 2 * MARGIN + text_width(caption, 11)), row.line - top + 42


def describe(glance: ArcDiagram) -> str:
    """An arc diagram in words."""
    order = sorted(range(len(glance.words)), key=lambda k: -float(glance.weight_K[k]))[:3]
    said = ", ".join(f"{visible(glance.words[k])} {float(glance.weight_K[k]):.0%}" for k in order)
    who = "" if glance.query < 0 else f"{visible(glance.words[glance.query])} "
    return f"{glance.caption}: {who}attends to {said}.".removeprefix(": ")


def bars(glance: ArcDiagram, look: ColourScheme) -> str:
    """An arc diagram for the terminal: one word per line, with a bar for its weight."""
    names = [visible(word) for word in glance.words]
    label_cells = min(max(map(width, names)), 20)
    room = max(look.columns - label_cells - 10, 10)
    top = float(np.max(glance.weight_K)) or 1.0
    lines = [crop(visible(glance.caption), look.columns, look.mark)] if glance.caption else []
    for k, (name, weight) in enumerate(zip(names, map(float, glance.weight_K), strict=True)):
        mark = ">" if k == glance.query else " "
        length = round(weight / top * room)
        bar = paint(weight / top, "", length, look) if look.colours in ("true", "256") else (look.shades[-1] * length)
        lines.append(f"{mark} {fit(name, label_cells, '>', look.mark)} {weight:5.1%} {bar}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class AlignmentLines:
    """The words of both sides, the index of the query in the target, and its weight on each source word."""

    queries: Sequence[str]
    query: int
    keys: Sequence[str]
    weight_K: Weights


def alignment_lines(
    crossings: Sequence[AlignmentLines], title: str = "Attention", least: float = 0.02, remark: str = ""
) -> str:
    """Alignment lines of several sentences below each other as SVG; weights below ``least`` get no line.

    Nor do those under a quarter of the largest, where that is less: an even look at a long text has lines too.
    """
    body: list[str] = []
    y, widest = MARGIN + 34.0, 0.0
    for crossing in crossings:
        few = min(least, float(crossing.weight_K.max(initial=0.0)) / 4)
        above, below = WordRow(crossing.keys, y + 34), WordRow(crossing.queries, y + 34 + APART)
        body += above.tints(crossing.weight_K) + _lines(crossing, above, below, few)
        body += above.texts() + below.texts(crossing.query)
        body += above.shares(crossing.weight_K, above.line - SIZE - 6, few)
        y, widest = below.line + 26, max(widest, above.width, below.width)
    return document(widest, y + 4, title, " ".join(map(_describe_alignment, crossings)), body, remark)


def _lines(crossing: AlignmentLines, above: WordRow, below: WordRow, least: float) -> list[str]:
    start, low, high = number(below.middles[crossing.query]), below.line - SIZE - 2, above.line + 9
    middle = number((low + high) / 2)
    return [
        f'<path class="line" d="M{start} {number(low)}C{start} {middle} {number(end)} {middle} {number(end)} '
        f'{number(high)}" {stroke(weight)}/>'
        for end, weight in zip(above.middles, map(float, crossing.weight_K), strict=True)
        if weight >= least
    ]


def _describe_alignment(crossing: AlignmentLines) -> str:
    """Alignment lines in words."""
    looked = describe(ArcDiagram(crossing.keys, crossing.weight_K, -1))
    who = crossing.queries[crossing.query]
    return f"{' '.join(crossing.queries)}: {who} {looked}" if len(crossing.queries) > 1 else f"{who} {looked}"
