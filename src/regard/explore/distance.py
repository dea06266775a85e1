"""How far attention reaches in an image, by head and layer, beside what convolutions could see.

The mean attention distance of a head is the distance from a patch to the patches it attends to, weighted by how much,
averaged over patches and images: what the receptive field is for a convolution [Dosovitskiy21 Figure 7, §D.7].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import UsageError
from regard.explore import svg

if TYPE_CHECKING:
    from regard.tasks.image_classification import Image, ImageClassification

FIRST = 128
"""Images that are looked at, as many as in the paper."""
AT_ONCE = 16
KERNEL = 3
"""Side of the convolutions shown beside, in patches."""
TITLE = "How far the heads attend"
Table = NDArray[np.float64]


def receptive_field(stack: Iterable[tuple[int, int]]) -> int:
    """Pixels of a side that a stack of convolutions sees: ``1 + Σ (k_l − 1) Π_{i<l} s_i`` [Araujo19 eq. 2].

    Args:
        stack: kernel and stride of each, the first layer first.
    """
    field, jump = 1, 1
    for kernel, stride in stack:
        field += (kernel - 1) * jump
        jump *= stride
    return field


def between(rows: int, columns: int, patch: int) -> tuple[Table, Table]:
    """From each patch to each: pixels between their middles; and patches along the longer of the two ways."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    down, across = np.abs(row[:, None] - row), np.abs(column[:, None] - column)
    return patch * np.hypot(down, across), np.maximum(down, across).astype(np.float64)


def mean_distance(weight: Table, distance: Table) -> Table:
    """The mean over queries of the distance of what each attends to, weighted by how much.

    Args:
        weight: (heads, 1 + patches, 1 + patches), the class token first. It has no place: its own row is left out, and
            of every other row the part that goes to patches is taken for the whole.
        distance: from patch to patch.
    """
    patches = weight[:, 1:, 1:]
    found: Table = ((patches * distance).sum(-1) / patches.sum(-1).clip(1e-12)).mean(-1)
    return found


@dataclass(frozen=True)
class Drawn:
    """A picture to stand alone, or below another: its size, what it shows in words, and what it is made of."""

    width: float
    height: float
    told: str
    body: list[str]


@dataclass(frozen=True)
class Distances:
    """How far a model attends.

    Args:
        heads: mean attention distance in pixels, layers × heads.
        first: the share of their attention that patches give to the class token, layers × heads.
        fields: the side, in pixels, of what convolutions see after as many layers.
        within: the distance if a patch attended evenly to what these see, for each layer.
        even: the distance if every patch attended evenly to all.
        images: how many were looked at; ``width``: pixels of their longer side.
    """

    heads: Table
    first: Table
    fields: tuple[int, ...]
    within: tuple[float, ...]
    even: float
    images: int
    width: int

    def terminal(self) -> str:
        """A table: a line a layer."""
        names = "".join(f"{f'head {head + 1}':>8}" for head in range(self.heads.shape[1]))
        beside = f"{KERNEL} x {KERNEL} convolutions"
        lines = [
            f"Mean attention distance in pixels, {self.images:,} images of {self.width} pixels; attending evenly to "
            f"all would be {self.even:.1f}.",
            "",
            f"{'layer':<6}{names}{'mean':>8}{'to class token':>16}   {beside}: field{'evenly':>8}",
        ]
        for layer, heads in enumerate(self.heads):
            values = "".join(f"{value:>8.1f}" for value in (*heads, heads.mean()))
            field = f"{self.fields[layer]:>{len(beside) + 7}}{self.within[layer]:>8.1f}"
            lines.append(f"{layer + 1:<6}{values}{self.first[layer].mean():>16.0%}   {field}")
        return "\n".join(lines) + "\n"

    def values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "images": self.images,
            "width": self.width,
            "even": round(self.even, 4),
            "layers": [
                {
                    "distance": np.round(self.heads[layer], 4).tolist(),
                    "class_token": np.round(self.first[layer], 4).tolist(),
                    "convolution_field": self.fields[layer],
                    "convolution_evenly": round(self.within[layer], 4),
                }
                for layer in range(len(self.heads))
            ],
        }

    def svg(self) -> str:
        """The picture of :meth:`drawn` alone."""
        found = self.drawn()
        return svg.document(found.width, found.height, TITLE, found.told, found.body)

    def drawn(self) -> Drawn:
        """A dot a head, a place across for each layer, as the paper's Figure 7; a line for convolutions."""
        left, above, step, high = 70, 60, 64, 260
        wide = step * len(self.heads)
        most = 1.1 * max(self.even, float(self.heads.max()), *self.within)

        def place(layer: int, value: float) -> tuple[str, str]:
            return svg.number(left + step * (layer + 0.5)), svg.number(above + high * (1 - value / most))

        body = [f'<text class="title" x="{svg.MARGIN}" y="32">{TITLE}</text>', svg.frame(left, above, wide, high)]
        body += self._axes(left, above, step, high, most)
        points = " ".join(",".join(place(layer, value)) for layer, value in enumerate(self.within))
        body.append(f'<polyline class="line" stroke-dasharray="2 5" points="{points}"/>')
        level = place(0, self.even)[1]
        body.append(f'<path class="frame" stroke-dasharray="6 4" d="M{left} {level}h{wide}"/>')
        for layer, heads in enumerate(self.heads):
            for head, value in enumerate(heads):
                x, y = place(layer, value)
                told = f"layer {layer + 1}, head {head + 1}: {value:.1f} pixels"
                body.append(f'<circle class="spot" cx="{x}" cy="{y}" r="4"><title>{told}</title></circle>')
        notes = (
            "A dot: a head. Broken line: attending evenly to the whole image.",
            f"Dotted: evenly to what {KERNEL} x {KERNEL} convolutions of so many layers see.",
        )
        body += [svg.soft(svg.MARGIN, above + high + 44 + 16 * line, note) for line, note in enumerate(notes)]
        width = max(left + wide + svg.MARGIN, 2 * svg.MARGIN + max(svg.text_width(note, 11) for note in notes))
        told = f"Mean attention distance of {self.heads.size} heads. " + "; ".join(
            f"layer {layer + 1}: {heads.min():.1f} to {heads.max():.1f} pixels"
            for layer, heads in enumerate(self.heads)
        )
        return Drawn(width, above + high + 76, told, body)

    def _axes(self, left: float, above: float, step: float, high: float, most: float) -> list[str]:
        layers = [
            svg.soft(left + step * (layer + 0.5), above + high + 18, f"layer {layer + 1}", "middle")
            for layer in range(len(self.heads))
        ]
        every = next(size for size in (1, 2, 5, 10, 20, 50, 100, 1000, 10000) if most / size <= 8)
        pixels = [
            svg.soft(left - 8, above + high * (1 - value / most) + 4, f"{value} px", "end")
            for value in range(0, int(most) + 1, every)
        ]
        return layers + pixels


def distances(task: ImageClassification, images: Sequence[Image]) -> Distances:
    """The mean attention distance of every head of a model over images [Dosovitskiy21 §D.7].

    Raises:
        UsageError: there is no image.
        RegardError: an image is not of the size the model reads.
    """
    from regard.models.reading import image_weights

    given = task.images(images)
    if not len(given):
        raise UsageError("there is no image to look at")
    cut = task.cut
    rows, columns = cut.shape.height // cut.patch, cut.shape.width // cut.patch
    distance, reach = between(rows, columns, cut.patch)
    parts = [given[begin : begin + AT_ONCE] for begin in range(0, len(given), AT_ONCE)]
    batches = (batch for part in parts for batch in task.batches(part))
    sums = [_sums(image_weights(task.model, batch), distance) for batch in batches]
    heads, first = np.sum(sums, axis=0) / len(given)
    depths = range(1, len(heads) + 1)
    within = tuple(_evenly(distance, reach <= depth * (KERNEL // 2)) for depth in depths)
    fields = tuple(receptive_field([(cut.patch, cut.patch), *[(KERNEL, 1)] * depth]) for depth in depths)
    size = max(cut.shape.height, cut.shape.width)
    return Distances(heads, first, fields, within, float(distance.mean()), len(given), size)


def _evenly(distance: Table, seen: NDArray[np.bool_]) -> float:
    """The mean distance if every patch attended evenly to what it sees."""
    return float(((distance * seen).sum(1) / seen.sum(1)).mean())


def _sums(layers: Sequence[Sequence[Any]], distance: Table) -> tuple[Table, Table]:
    """Of some images, layers × heads: the sum of their mean distances, and of the shares of the class token."""
    weights = [[one.double().cpu().numpy() for one in layer] for layer in layers]
    far = [np.sum([mean_distance(weight, distance) for weight in layer], axis=0) for layer in weights]
    first = [np.sum([weight[:, 1:, 0].mean(-1) for weight in layer], axis=0) for layer in weights]
    return np.array(far), np.array(first)


def some(path: Path, columns: str | None = None, count: int = FIRST) -> list[NDArray[np.int64]]:
    """The first images of a file of labelled images."""
    from regard.data import images

    return [images.read(text) for text, _ in islice(images.images(path, columns).pairs(), count)]
