"""Attention weights as a heat map in the terminal: one head with its words, or all heads at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.explore.ink import RESET, Look, ground, paint, scale, shade
from regard.explore.labels import fit, upright
from regard.text.cells import crop, visible, width

Weights = NDArray[Any]
LABEL = 16
"""Cells a row label may take."""
UPRIGHT = 12
"""Lines a column label may take when it is written downwards."""
ROWS = 60
"""Rows of one picture; more would leave the screen."""


def heatmap(weight_QK: Weights, queries: Sequence[str], keys: Sequence[str], look: Look, title: str = "") -> str:
    """One head as a picture: a row per query, a column per key, bright where the weight is large.

    A row of the weights sums to one. Colours run from nothing to the largest weight shown. Where there is room the
    weight stands in its cell as a percentage. What does not fit is left out, and a line says so.

    Args:
        weight_QK: the weights of one head.
        queries: the labels of the rows, as many as the weights have.
        keys: the labels of the columns.
        look: what the terminal can show.
        title: a line above the picture.
    """
    rows, columns = [visible(q) for q in queries], [visible(k) for k in keys]
    label = min(max(map(width, rows), default=0), LABEL)
    room = look.columns - label - 1
    cell, heading = _columns(columns, room, look)
    shown_Q, shown_K = min(len(rows), ROWS), min(len(columns), max(room // cell, 1))
    weight_QK = np.asarray(weight_QK, dtype=np.float64)[:shown_Q, :shown_K]
    top = float(weight_QK.max(initial=0.0)) or 1.0
    lines = [_cropped(title, look)] if title else []
    lines += [" " * (label + 1) + line[: shown_K * cell].rstrip() for line in heading(columns[:shown_K])]
    for name, weight_K in zip(rows, weight_QK, strict=False):
        cells = "".join(paint(w / top, _percent(w, cell), cell, look) for w in weight_K)
        lines.append(fit(name, label, ">", look.mark) + " " + cells)
    lines.append(" " * (label + 1) + scale(top, look, min(24, max(room - 8, 2))))
    return "\n".join(lines + _left_out(len(rows) - shown_Q, len(columns) - shown_K)) + "\n"


def _cropped(title: str, look: Look) -> str:
    """A title, which may hold a whole sentence, on one line of the screen."""
    return crop(visible(title), look.columns, look.mark)


def _columns(labels: Sequence[str], room: int, look: Look) -> tuple[int, Any]:
    """How wide a cell is, and how its labels are written: across where they fit, else downwards."""
    across = max(map(width, labels), default=1) + 1
    if across * len(labels) <= room:
        cell = max(across, 4)
        if cell * len(labels) <= room:
            return cell, lambda shown: ["".join(fit(k, cell, "^", look.mark) for k in shown)]
    cell = min(max(room // max(len(labels), 1), 2), 4)
    return cell, lambda shown: upright(shown, cell, UPRIGHT, look.mark)


def _percent(weight: float, cell: int) -> str:
    """A weight as a percentage, where there is room for it and something to say."""
    return f"{min(round(weight * 100), 99):d}" if cell >= 3 and weight >= 0.1 else ""


def _left_out(rows: int, columns: int) -> list[str]:
    parts = [f"{n} {what}{'s' if n > 1 else ''}" for n, what in ((rows, "row"), (columns, "column")) if n > 0]
    return [f"({' and '.join(parts)} left out: too long for this screen; --svg FILE shows all)"] if parts else []


def thumbnail(weight_QK: Weights, look: Look, columns: int | None = None) -> list[str]:
    """One head without words, two rows of weights to a line where half blocks can be coloured."""
    weight_QK = np.asarray(weight_QK, dtype=np.float64)[:ROWS, : columns or look.columns]
    share_QK = weight_QK / (float(weight_QK.max(initial=0.0)) or 1.0)
    if look.colours not in ("true", "256") or not look.unicode:
        return ["".join(shade(w, look) for w in share_K) for share_K in share_QK]
    if len(share_QK) % 2:
        share_QK = np.vstack([share_QK, np.zeros_like(share_QK[:1])])
    return [
        "".join(ground(u, look, front=True) + ground(v, look) + "▀" for u, v in zip(upper, lower, strict=True)) + RESET
        for upper, lower in zip(share_QK[::2], share_QK[1::2], strict=True)
    ]


def heads(weight_HQK: Weights, names: Sequence[str], look: Look, title: str = "") -> str:
    """Many heads at a glance, side by side; the brightest spot is each head's own largest weight."""
    across = min(max(weight_HQK.shape[2], max(map(width, names), default=0)), look.columns)
    per_row = max((look.columns + 2) // (across + 2), 1)
    lines = [_cropped(title, look), ""] if title else []
    for first in range(0, len(names), per_row):
        some = slice(first, first + per_row)
        lines.append("  ".join(fit(name, across, "<", look.mark) for name in names[some]).rstrip())
        pictures = [thumbnail(weight_QK, look, across) for weight_QK in weight_HQK[some]]
        blank = " " * (across - min(weight_HQK.shape[2], across))
        lines += ["  ".join(line + blank for line in together).rstrip(" ") for together in zip(*pictures, strict=True)]
        lines.append("")
    left_out = _left_out(weight_HQK.shape[1] - ROWS, weight_HQK.shape[2] - across)
    return "\n".join(lines[:-1] + left_out) + "\n"
