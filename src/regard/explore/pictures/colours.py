"""Colours for terminals: maps a weight to true colour, 256 or 16 colours, or shaded characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.explore.pictures.labels import fit

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
