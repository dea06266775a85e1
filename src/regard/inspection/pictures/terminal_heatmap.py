"""Attention heat maps for terminals: one head with token labels, or all heads as thumbnails; the colours of weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.inspection.pictures.svg import ArcDiagram, Weights
from regard.text.terminal import crop, fit, upright, visible, width

Colours = Literal["true", "256", "16", "none"]
# Dark to bright with monotonic luminance, so that the order of weights is visible on any screen.
RAMP = (
    (16, 18, 32),
    (29, 36, 84),
    (33, 66, 132),
    (28, 104, 158),
    (31, 145, 158),
    (74, 184, 138),
    (159, 216, 106),
    (246, 240, 142),
)
# The same ramp in the 6 × 6 × 6 colour cube.
RAMP_256 = (233, 17, 18, 24, 25, 31, 37, 43, 78, 113, 149, 186, 228)
SHADES = " ░▒▓█"
SHADES_ASCII = " .:-=+*%#"
RESET = "\x1b[0m"
LABEL = 16
"""Most cells of a row label."""
UPRIGHT = 12
"""Most lines of a vertical column label."""
ROWS = 60
"""Most rows of a picture, to fit the screen."""


@dataclass(frozen=True)
class ColourScheme:
    """A terminal's capabilities; the default is the minimum: no colour, Unicode, 80 columns."""

    colours: Colours = "none"
    unicode: bool = True
    columns: int = 80

    @property
    def shades(self) -> str:
        """Characters from empty to full."""
        return SHADES if self.unicode else SHADES_ASCII

    @property
    def mark(self) -> str:
        """The mark at the end of a cropped label."""
        return "…" if self.unicode else "~"


def colour(share: float) -> tuple[int, int, int]:
    """The ramp at ``share`` (0 to 1) as red, green, blue; luminance rises with the share."""
    place = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    low = min(int(place), len(RAMP) - 2)
    part = place - low
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(RAMP[low], RAMP[low + 1], strict=True))
    return red, green, blue


def luminance(rgb: tuple[int, int, int]) -> float:
    """Relative luminance, 0 (black) to 1 (white)."""
    parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def shade(share: float, look: ColourScheme) -> str:
    """One character from empty to full."""
    return look.shades[_level(share, len(look.shades))]


def ground(share: float, look: ColourScheme, front: bool = False) -> str:
    """The escape sequence for the background (or, with ``front``, the foreground) in the colour of a share."""
    layer = 38 if front else 48
    if look.colours == "true":
        return f"\x1b[{layer};2;" + ";".join(map(str, colour(share))) + "m"
    return f"\x1b[{layer};5;{RAMP_256[_level(share, len(RAMP_256))]}m"


def paint(share: float, text: str, cells: int, look: ColourScheme) -> str:
    """A cell exactly ``cells`` wide: ``text`` on the colour of the share, or next to a shade character."""
    if look.colours in ("true", "256"):
        ink = "\x1b[38;5;16m" if luminance(colour(share)) > 0.18 else "\x1b[38;5;231m"
        return ground(share, look) + ink + fit(text, cells, "^", look.mark) + RESET
    filled = shade(share, look) * cells
    if text and cells >= len(text) + 1:  # the shade, then the number
        filled = shade(share, look) * (cells - len(text)) + text
    return f"\x1b[36m{filled}{RESET}" if look.colours == "16" and filled.strip() else filled


def scale(top: float, look: ColourScheme, cells: int = 24) -> str:
    """The colour scale: from zero through the ramp to the largest weight."""
    bar = "".join(paint(i / (cells - 1), "", 1, look) for i in range(cells))
    return f"0 {bar} {top:.2f}"


def _level(share: float, count: int) -> int:
    return min(max(round(share * (count - 1)), 0), count - 1)


def heatmap(
    weight_QK: Weights, queries: Sequence[str], keys: Sequence[str], look: ColourScheme, title: str = ""
) -> str:
    """One head as a heat map: a row per query, a column per key, bright for large weights.

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
    lines = [crop(visible(title), look.columns, look.mark)] if title else []
    lines += [" " * (label + 1) + line[: shown_K * cell].rstrip() for line in heading(columns[:shown_K])]
    for name, weight_K in zip(rows, weight_QK, strict=False):
        shares = [f"{min(round(w * 100), 99):d}" if cell >= 3 and w >= 0.1 else "" for w in weight_K]
        cells = "".join(paint(w / top, share, cell, look) for w, share in zip(weight_K, shares, strict=True))
        lines.append(fit(name, label, ">", look.mark) + " " + cells)
    lines.append(" " * (label + 1) + scale(top, look, min(24, max(room - 8, 2))))
    return "\n".join(lines + _cropping_note(len(rows) - shown_Q, len(columns) - shown_K)) + "\n"


def _columns(labels: Sequence[str], room: int, look: ColourScheme) -> tuple[int, Callable[[Sequence[str]], list[str]]]:
    """The width of a cell, and a function that lays out its labels: horizontal if they fit, else vertical."""
    across = max(map(width, labels), default=1) + 1
    if across * len(labels) <= room:
        cell = max(across, 4)
        if cell * len(labels) <= room:
            return cell, lambda shown: ["".join(fit(k, cell, "^", look.mark) for k in shown)]
    cell = min(max(room // max(len(labels), 1), 2), 4)
    return cell, lambda shown: upright(shown, cell, UPRIGHT, look.mark)


def _cropping_note(rows: int, columns: int) -> list[str]:
    parts = [f"{n} {what}{'s' if n > 1 else ''}" for n, what in ((rows, "row"), (columns, "column")) if n > 0]
    return [f"({' and '.join(parts)} left out: too long for this screen; --svg FILE shows all)"] if parts else []


def thumbnail(weight_QK: Weights, look: ColourScheme, columns: int | None = None) -> list[str]:
    """One head without labels; two rows of weights share a line where half blocks can be coloured."""
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


def heads(weight_HQK: Weights, names: Sequence[str], look: ColourScheme, title: str = "") -> str:
    """Thumbnails of many heads side by side, each scaled to its own largest weight."""
    across = min(max(weight_HQK.shape[2], max(map(width, names), default=0)), look.columns)
    per_row = max((look.columns + 2) // (across + 2), 1)
    lines = [crop(visible(title), look.columns, look.mark), ""] if title else []
    for first in range(0, len(names), per_row):
        some = slice(first, first + per_row)
        lines.append("  ".join(fit(name, across, "<", look.mark) for name in names[some]).rstrip())
        pictures = [thumbnail(weight_QK, look, across) for weight_QK in weight_HQK[some]]
        blank = " " * (across - min(weight_HQK.shape[2], across))
        lines += ["  ".join(line + blank for line in together).rstrip(" ") for together in zip(*pictures, strict=True)]
        lines.append("")
    left_out = _cropping_note(weight_HQK.shape[1] - ROWS, weight_HQK.shape[2] - across)
    return "\n".join(lines[:-1] + left_out) + "\n"


def bars(glance: ArcDiagram, look: ColourScheme) -> str:
    """An arc diagram for the terminal: one word per line, with a bar for its weight."""
    names = [visible(word) for word in glance.words]
    label_cells = min(max(map(width, names)), 20)
    room = max(look.columns - label_cells - 10, 10)
    top = float(np.max(glance.weight_K)) or 1.0
    lines = [crop(visible(glance.caption), look.columns, look.mark)] if glance.caption else []
    for k, (name, weight) in enumerate(zip(names, map(float, glance.weight_K), strict=True)):
        mark = ">" if k == glance.query and not glance.queries else " "
        length = round(weight / top * room)
        bar = paint(weight / top, "", length, look) if look.colours in ("true", "256") else (look.shades[-1] * length)
        lines.append(f"{mark} {fit(name, label_cells, '>', look.mark)} {weight:5.1%} {bar}")
    return "\n".join(lines) + "\n"
