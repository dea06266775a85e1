"""Mean attention distance in images by head and layer, compared with receptive fields of convolutions.

The mean attention distance of a head is the distance from a patch to the patches it attends to, weighted by how much,
averaged over patches and images; it corresponds to the receptive field of a convolution [Dosovitskiy21 Figure 7, §D.7].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.explore.pictures import svg
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.images.classifier import Image, ImageClassification

FIRST = 128
"""Number of images, as in the paper."""
AT_ONCE = 16
KERNEL = 3
"""Side of the compared convolution kernels, in patches."""
TITLE = "How far the heads attend"
Table = NDArray[np.float64]


def receptive_field(stack: Iterable[tuple[int, int]]) -> int:
    """Receptive field of a stack of convolutions, in pixels per side: ``1 + Σ (k_l − 1) Π_{i<l} s_i`` [Araujo19 eq. 2].

    Args:
        stack: kernel and stride of each, the first layer first.
    """
    field, jump = 1, 1
    for kernel, stride in stack:
        field += (kernel - 1) * jump
        jump *= stride
    return field


def patch_distances(rows: int, columns: int, patch: int) -> tuple[Table, Table]:
    """Between all pairs of patches: Euclidean distance in pixels, and Chebyshev distance in patches."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    down, across = np.abs(row[:, None] - row), np.abs(column[:, None] - column)
    return patch * np.hypot(down, across), np.maximum(down, across).astype(np.float64)


def mean_distance(weight: Table, distance: Table) -> Table:
    """The attention-weighted mean distance, averaged over queries.

    Args:
        weight: (heads, 1 + patches, 1 + patches), the class token first. It has no place: its own row is left out, and
            of every other row the part that goes to patches is taken for the whole.
        distance: from patch to patch.
    """
    patches = weight[:, 1:, 1:]
    found: Table = ((patches * distance).sum(-1) / patches.sum(-1).clip(1e-12)).mean(-1)
    return found


@dataclass(frozen=True)
class DistanceChart:
    """A picture, to stand alone or below another: its size, its description, and its elements."""

    width: float
    height: float
    told: str
    body: list[str]


@dataclass(frozen=True)
class Distances:
    """Attention distances of a model.

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
        """A table with a row per layer."""
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
        """The :meth:`chart` as a document of its own."""
        found = self.chart()
        return svg.document(found.width, found.height, TITLE, found.told, found.body)

    def chart(self) -> DistanceChart:
        """A dot per head, a column per layer, as in the paper's Figure 7; a line for convolutions."""
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
            f"Dotted: evenly to what {KERNEL} x {KERNEL} convolutions of as many layers see.",
        )
        body += [svg.small_text(svg.MARGIN, above + high + 44 + 16 * line, note) for line, note in enumerate(notes)]
        width = max(left + wide + svg.MARGIN, 2 * svg.MARGIN + max(svg.text_width(note, 11) for note in notes))
        told = f"Mean attention distance of {self.heads.size} heads. " + "; ".join(
            f"layer {layer + 1}: {heads.min():.1f} to {heads.max():.1f} pixels"
            for layer, heads in enumerate(self.heads)
        )
        return DistanceChart(width, above + high + 76, told, body)

    def _axes(self, left: float, above: float, step: float, high: float, most: float) -> list[str]:
        layers = [
            svg.small_text(left + step * (layer + 0.5), above + high + 18, f"layer {layer + 1}", "middle")
            for layer in range(len(self.heads))
        ]
        every = next(size for size in (1, 2, 5, 10, 20, 50, 100, 1000, 10000) if most / size <= 8)
        pixels = [
            svg.small_text(left - 8, above + high * (1 - value / most) + 4, f"{value} px", "end")
            for value in range(0, int(most) + 1, every)
        ]
        return layers + pixels


def distances(task: ImageClassification, images: Sequence[Image]) -> Distances:
    """The mean attention distance of every head of a model over images [Dosovitskiy21 §D.7].

    Raises:
        UsageError: there is no image.
        RegardError: an image is not of the size the model reads.
    """
    from regard.models.captured_attention import image_weights

    given = task.images(images)
    if not len(given):
        raise UsageError("there is no image to look at")
    cut = task.cut
    rows, columns = cut.shape.height // cut.patch, cut.shape.width // cut.patch
    distance, reach = patch_distances(rows, columns, cut.patch)
    parts = [given[begin : begin + AT_ONCE] for begin in range(0, len(given), AT_ONCE)]
    batches = (batch for part in parts for batch in task.batches(part))
    sums = [_sums(image_weights(task.model, batch), distance) for batch in batches]
    heads, first = np.sum(sums, axis=0) / len(given)
    depths = range(1, len(heads) + 1)
    within = tuple(_uniform_distance(distance, reach <= depth * (KERNEL // 2)) for depth in depths)
    fields = tuple(receptive_field([(cut.patch, cut.patch), *[(KERNEL, 1)] * depth]) for depth in depths)
    size = max(cut.shape.height, cut.shape.width)
    return Distances(heads, first, fields, within, float(distance.mean()), len(given), size)


def _uniform_distance(distance: Table, seen: NDArray[np.bool_]) -> float:
    """The mean distance under uniform attention within a field."""
    return float(((distance * seen).sum(1) / seen.sum(1)).mean())


def _sums(layers: Sequence[Sequence[Any]], distance: Table) -> tuple[Table, Table]:
    """Over some images, layers × heads: the sum of their mean distances, and of the class token's shares."""
    weights = [[one.double().cpu().numpy() for one in layer] for layer in layers]
    far = [np.sum([mean_distance(weight, distance) for weight in layer], axis=0) for layer in weights]
    first = [np.sum([weight[:, 1:, 0].mean(-1) for weight in layer], axis=0) for layer in weights]
    return np.array(far), np.array(first)


def first_images(path: Path, columns: str | None = None, count: int = FIRST) -> list[NDArray[np.int64]]:
    """The first images of a file of labelled images."""
    from regard.data.corpora import images

    return [image.pixels for image in islice(images.open_images(path, columns).examples(), count)]
