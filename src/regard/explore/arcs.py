"""One word's attention drawn over its sentence: arcs from the word to what it looks at, the thicker the more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.explore.ink import Look, paint
from regard.explore.labels import fit
from regard.explore.row import SIZE, Row, stroke
from regard.explore.svg import MARGIN, document, number, safe, soft, text_width
from regard.text.cells import crop, visible, width

CAPTION = 120
"""Cells a caption may take."""


@dataclass(frozen=True)
class Glance:
    """One query and what it attends to: the words (keys), a weight for each, and which of them is the query itself."""

    words: Sequence[str]
    weight_K: NDArray[Any]
    query: int
    caption: str = ""


def arcs(glances: Sequence[Glance], title: str = "Attention", least: float = 0.02, remark: str = "") -> str:
    """The glances below each other as SVG, a remark below them; weights under ``least`` get no arc.

    Words carry their weight as a tint, the strongest three also as a percentage.
    """
    body = [f'<text class="title" x="{MARGIN}" y="{MARGIN + 12}">{safe(title)}</text>']
    y, widest = MARGIN + 26.0, MARGIN * 2 + text_width(title, 15)
    for glance in glances:
        lines, wide, high = _glance(glance, y, least)
        body, y, widest = body + lines, y + high, max(widest, wide)
    return document(widest, y + 4, title, " ".join(map(told, glances)), body, remark)


def _glance(glance: Glance, top: float, least: float) -> tuple[list[str], float, float]:
    below = top + (44 if glance.caption else 26)
    middles = Row(glance.words, 0).middles
    home = middles[glance.query]
    reach = max((abs(m - home) for m, w in zip(middles, glance.weight_K, strict=True) if w >= least), default=0)
    row = Row(glance.words, below + min(reach * 0.42, 170))  # below caption and highest arc
    caption = crop(visible(glance.caption), CAPTION) if glance.caption else ""
    body = [soft(MARGIN, top + 10, caption)] if caption else []
    body += row.tints(glance.weight_K)
    body += [
        _arc(home, middle, row.line - SIZE - 2, weight)
        for place, (middle, weight) in enumerate(zip(middles, map(float, glance.weight_K), strict=True))
        if weight >= least and place != glance.query
    ]
    body += row.texts(glance.query) + row.shares(glance.weight_K, row.line + 24, least)
    return body, max(row.width, 2 * MARGIN + text_width(caption, 11)), row.line - top + 42


def _arc(start: float, end: float, y: float, weight: float) -> str:
    """Half an ellipse over the words between two of them."""
    rise = min(abs(end - start) * 0.42, 170) * 4 / 3  # a cubic's middle lies at three quarters of its handles' height
    one, two, low, high = number(start), number(end), number(y), number(y - rise)
    return f'<path class="line" d="M{one} {low}C{one} {high} {two} {high} {two} {low}" {stroke(weight)}/>'


def told(glance: Glance) -> str:
    """A glance in words."""
    order = sorted(range(len(glance.words)), key=lambda k: -float(glance.weight_K[k]))[:3]
    said = ", ".join(f"{visible(glance.words[k])} {float(glance.weight_K[k]):.0%}" for k in order)
    who = "" if glance.query < 0 else f"{visible(glance.words[glance.query])} "
    return f"{glance.caption}: {who}attends to {said}.".removeprefix(": ")


def bars(glance: Glance, look: Look) -> str:
    """A glance in the terminal: the words one below the other, each with a bar as long as its weight."""
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
