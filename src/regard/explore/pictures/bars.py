"""Bars to both sides of zero, one for each word: the shares of an attribution as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from regard.explore.pictures.svg import LABEL, MARGIN, document, label, number, small_text, text_width
from regard.text.terminal import visible

Groups = Sequence[Sequence[tuple[str, float]]]
HALF = 180.0
"""Pixels of the longest bar."""
ROW = 22
GAP = 14
"""Pixels between two groups."""
VALUE = 52
"""Room for a value beside its bar."""


def diverging(groups: Groups, title: str, remark: str = "") -> str:
    """A bar for each name, to the right where its value is positive, to the left where it is negative.

    Args:
        groups: names with values, below each other with a gap between the groups; all have one scale.
        title: stands above the picture; ``remark``: a caption below it.
    """
    largest = max((abs(value) for group in groups for _, value in group), default=0.0) or 1.0
    widest = max((text_width(visible(name)[:LABEL]) for group in groups for name, _ in group), default=0.0)
    zero, y = MARGIN + widest + VALUE + 8 + HALF, MARGIN + 28.0
    body, top = [], y
    for group in groups:
        for name, value in group:
            body += _row(name, value, HALF * abs(value) / largest, (MARGIN + widest, zero, y))
            y += ROW
        y += GAP
    body.append(f'<path class="frame" d="M{number(zero)} {number(top)}V{number(y - GAP)}"/>')
    order = sorted((one for group in groups for one in group), key=lambda one: -abs(one[1]))[:5]
    told = "Largest: " + "; ".join(f"{visible(name)} {value:+.3f}" for name, value in order) + "."
    return document(zero + HALF + VALUE + MARGIN, y + MARGIN, title, told if order else "", body, remark)


def _row(name: str, value: float, length: float, place: tuple[float, float, float]) -> list[str]:
    """A name, its bar and its value; ``place``: right edge of the name, zero, and upper edge."""
    right, zero, y = place
    left, colour = (zero, "ink") if value >= 0 else (zero - length, "spot")
    edge, anchor = (zero + length + 6, "start") if value >= 0 else (zero - length - 6, "end")
    size = f'x="{number(left)}" y="{number(y + 3)}" width="{number(length)}" height="{ROW - 6}" rx="2"'
    return [
        f'<text x="{number(right)}" y="{number(y + 15)}" text-anchor="end">{label(name)}</text>',
        f'<rect class="{colour}" {size}><title>{label(name)}: {value:+.4f}</title></rect>',
        small_text(edge, y + 15, f"{value:+.3f}", anchor),
    ]
