"""A line of words in an SVG, each tinted with the attention it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from regard.explore.svg import MARGIN, label, number, soft, text_width
from regard.text.cells import visible

SIZE = 17
"""Size of the words, pixels (as in the style)."""
GAP = 9
"""Pixels between words."""


@dataclass(frozen=True)
class Row:
    """Words one behind the other; ``line`` is the height of their baseline, pixels from above."""

    words: Sequence[str]
    line: float

    @cached_property
    def sizes(self) -> list[float]:
        """How wide each word is, pixels."""
        return [text_width(visible(word), SIZE) for word in self.words]

    @cached_property
    def starts(self) -> list[float]:
        """Where each word begins, and at last where the next one would."""
        found = [MARGIN + 4.0]
        for size in self.sizes:
            found.append(found[-1] + size + GAP)
        return found

    @cached_property
    def middles(self) -> list[float]:
        """The middle of each word."""
        return [start + size / 2 for start, size in zip(self.starts, self.sizes, strict=False)]

    @property
    def width(self) -> float:
        """What a page needs to hold the row, pixels."""
        return self.starts[-1] + MARGIN

    def tints(self, weight_K: NDArray[Any]) -> list[str]:
        """A box behind each word, the darker the larger its weight, which its tooltip names."""
        found = []
        for start, size, weight in zip(self.starts, self.sizes, map(float, weight_K), strict=False):
            box = f'x="{number(start - 3)}" y="{number(self.line - SIZE)}" width="{number(size + 6)}"'
            tint = f'height="{SIZE + 7}" rx="4" fill-opacity="{0.55 * min(weight, 1):.3f}"'
            found.append(f'<rect class="ink" {box} {tint}><title>{weight:.3f}</title></rect>')
        return found

    def texts(self, query: int = -1) -> list[str]:
        """The words; the one at ``query`` stands out."""
        found = []
        for place, (word, start, size) in enumerate(zip(self.words, self.starts, self.sizes, strict=False)):
            kind = "word from" if place == query else "word"
            spot = f'x="{number(start)}" y="{number(self.line)}"'
            exact = f'textLength="{number(size)}" lengthAdjust="spacingAndGlyphs"'  # lines end at words in any face
            found.append(f'<text class="{kind}" {spot} {exact}>{label(word)}</text>')
        return found

    def shares(self, weight_K: NDArray[Any], y: float, least: float) -> list[str]:
        """The strongest three weights, as percentages at height ``y``; none under ``least`` or a twentieth."""
        strongest = sorted(range(len(self.words)), key=lambda k: -float(weight_K[k]))[:3]
        return [
            soft(self.middles[k], y, f"{float(weight_K[k]):.0%}", "middle")
            for k in sorted(strongest)
            if float(weight_K[k]) >= max(least, 0.05)
        ]


def stroke(weight: float) -> str:
    """How a line with this weight is drawn: the thicker and darker the more."""
    strength = min(weight, 1.0)
    return f'stroke-width="{1 + 7 * strength:.2f}" stroke-opacity="{0.2 + 0.75 * strength:.3f}"'
