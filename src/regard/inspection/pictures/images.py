"""Attention over image patches: views for terminal, JSON and SVG, and the mean attention distance of every head.

The mean attention distance of a head is the distance from a patch to the patches it attends to, weighted by how much,
averaged over patches and images; it corresponds to the receptive field of a convolution [Dosovitskiy21 Figure 7, §D.7].
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.config.families import Model
from regard.inspection.forward.record import (
    AttentionRecord,
    Weights,
    image_inputs,
    mean_distance,
    patch_distances,
    record_attention,
)
from regard.inspection.pictures import svg
from regard.inspection.pictures import terminal_heatmap as heatmap
from regard.inspection.pictures.terminal_heatmap import ColourScheme
from regard.system.errors import Option, UsageError
from regard.text.counts import counted

if TYPE_CHECKING:
    from regard.tasks.images.classifier import Image, ImageClassification

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, COLOUR = 0, 2
"""PNG colour types: grey, or red, green and blue."""
CLASS, MEAN = "class", "mean"
"""Names of queries other than patches: the class token, and the mean over all patches."""
FIRST = 128
"""Number of images, as in the paper."""
AT_ONCE = 16
KERNEL = 3
"""Side of the compared convolution kernels, in patches."""
Table = NDArray[np.float64]


def png_bytes(pixels: NDArray[np.uint8]) -> bytes:
    """Height × width × 1 (grey) or 3 (colour) values as a PNG file."""
    height, width, channels = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, GREY if channels == 1 else COLOUR, 0, 0, 0)
    rows = np.pad(pixels.reshape(height, width * channels), ((0, 0), (1, 0)))  # filter type 0: none
    return SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def data_url(pixels: NDArray[np.int64], largest: float) -> str:
    """An image as a data URL for SVG; other numbers of channels than 1 and 3 are averaged.

    Args:
        pixels: height × width × channels.
        largest: what full brightness is.
    """
    shown = pixels if pixels.shape[2] in (1, 3) else pixels.mean(2, keepdims=True)
    bright = np.clip(shown * (255.0 / largest), 0, 255).round().astype(np.uint8)
    return "data:image/png;base64," + base64.b64encode(png_bytes(bright)).decode()


@dataclass(frozen=True)
class ImageName:
    """An image's number in its file from 1 (``None``: drawn by hand), its label, and the model's prediction."""

    number: int | None
    label: str | None
    said: str

    def __str__(self) -> str:
        label = "" if self.label is None else f", labelled {self.label}" if self.label else ", without a label"
        name = "a drawn image" if self.number is None else f"image {self.number:,}"
        return f"{name}{label}, read as {self.said}"


@dataclass(frozen=True)
class ImageView:
    """What to show of one pass over an image.

    Args:
        pixels: height × width × channels.
        largest: what full brightness is.
        grid: patches from top to bottom, and from left to right.
        record: of the pass, the class token first.
        name: which image it is, and what the model says of it.
        who: what looks: ``class``, ``mean``, or a patch as ``row,column``, counted from 1.
        layer: counted from 1; ``None``: all.
        head: counted from 1; ``None``: all.

    Raises:
        UsageError: there is no such layer, head or patch.
    """

    pixels: NDArray[np.int64]
    largest: float
    grid: tuple[int, int]
    record: AttentionRecord
    name: ImageName
    who: str = CLASS
    layer: int | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        self.record.head("encoder", 1 if self.layer is None else self.layer, 1 if self.head is None else self.head)
        self._row(self.record.layer("encoder", 1))

    def _row(self, weight_HQK: Weights) -> Weights:
        """``weight_HK`` of the chosen query."""
        if self.who == MEAN:
            return np.asarray(weight_HQK[:, 1:].mean(1))
        if self.who == CLASS:
            return weight_HQK[:, 0]
        rows, columns = self.grid
        place = re.fullmatch(r"\s*(\d{1,9})\s*,\s*(\d{1,9})\s*", self.who)
        if place is None or not (1 <= int(place[1]) <= rows and 1 <= int(place[2]) <= columns):
            last = f"{rows},{columns}"
            raise UsageError(f"{self.who!r} is no patch; there are 1,1 to {last}, {CLASS} and {MEAN}", Option("token"))
        return weight_HQK[:, 1 + (int(place[1]) - 1) * columns + int(place[2]) - 1]

    @property
    def title(self) -> str:
        """The title, in words."""
        looks = {CLASS: "the class token", MEAN: "the mean of all patches"}.get(self.who, f"patch {self.who}")
        parts = [f"Where {looks} looks", self.layer and f"layer {self.layer}", self.head and f"head {self.head}"]
        return ", ".join(str(part) for part in parts if part)

    def heads(self) -> tuple[list[str], Weights, Weights]:
        """The heads shown: names, and the weights of each on the class token and on the grid of patches."""
        weights = self.record.weights["encoder"]
        layers = range(len(weights)) if self.layer is None else [self.layer - 1]
        heads = range(len(weights[0])) if self.head is None else [self.head - 1]
        names = [f"layer {layer + 1} head {head + 1}" for layer in layers for head in heads]
        rows = np.stack([self._row(weights[layer])[head] for layer in layers for head in heads])
        return names, rows[:, 0], rows[:, 1:].reshape(len(rows), *self.grid)

    def terminal(self, look: ColourScheme) -> str:
        """The picture for a terminal: the image as patch brightness, then the heads."""
        names, first, grids = self.heads()
        if len(names) > 1:
            (down, across), (height, width) = self.grid, self.pixels.shape[:2]
            cells = self.pixels.reshape(down, height // down, across, width // across, -1)
            bright = np.concatenate([cells.mean((1, 3, 4))[None], grids])
            shares = f"given to the class token: {first.min():.0%} to {first.max():.0%}"
            return f"{self.name}\n{heatmap.heads(bright, ['the image', *names], look, self.title)}{shares}\n"
        rows, columns = ([str(place + 1) for place in range(side)] for side in self.grid)
        picture = heatmap.heatmap(grids[0], rows, columns, look, self.title)
        return f"{self.name}\n{picture}given to the class token: {first[0]:.0%}\n"

    def values(self) -> dict[str, object]:
        """Plain values for JSON: each head's weights on the class token and on the patches, row by row."""
        names, first, grids = self.heads()
        return {
            "image": self.name.number,
            "label": self.name.label,
            "said": self.name.said,
            "looks": self.who,
            "layer": self.layer,
            "head": self.head,
            "heads": [
                {"name": name, "class_token": round(float(one), 6), "patches": np.round(grid.astype(float), 6).tolist()}
                for name, one, grid in zip(names, first, grids, strict=True)
            ],
        }

    def svg(self, remark: str = "") -> str:
        """The image and the heads' pictures, darkest at the largest weight, with a remark below."""
        names, first, grids = self.heads()
        rows, columns = self.grid
        cell = svg.SIDE / max(rows, columns)
        wide, high = columns * cell, rows * cell

        def draw(place: int, left: float, above: float) -> list[str]:
            if not place:
                box, address = svg.box(left, above, wide, high), data_url(self.pixels, self.largest)
                style = 'preserveAspectRatio="none" style="image-rendering: pixelated"'
                return [f'<image {box} {style} href="{address}"/>']
            share = f"<g><title>{first[place - 1]:.0%} to the class token</title>"
            return [share, *svg.squares(grids[place - 1], left, above, cell), "</g>"]

        body, width, height = svg.thumbnails(["the image", *names], draw, wide, high, svg.MARGIN + 68)
        body = [svg.small_text(svg.MARGIN, svg.MARGIN + 32, str(self.name)), *body]
        width = max(width, svg.MARGIN * 2 + svg.text_width(str(self.name), 11))
        told = f"{self.name}; {counted(len(names), 'head')}, a small heat map over its patches each."
        return svg.document(width, height, self.title, told, body, remark)


def image_view(
    task: ImageClassification, image: Image, number: int, label: str | None, who: str | None, **shown: int | None
) -> ImageView:
    """Run a model once over an image and record its attention.

    Args:
        task: a loaded classifier of images.
        image: its pixel values.
        number: which one it is.
        label: that it has, if it has one.
        who: what looks; default: :func:`usual_query`.
        shown: ``layer`` and ``head``.

    Raises:
        RegardError: the image is not of the size the model reads.
    """
    (pixels,) = task.images([image])
    record = record_attention(image_inputs(task, pixels))
    shape, patch = task.cut.shape, task.cut.patch
    verdict = task.predictor().predictions(task.scores([pixels]))[0]
    said = f"{verdict.value:.6g}" if verdict.value is not None else f"{verdict.label} ({verdict.probability:.2f})"
    grid, largest = (shape.height // patch, shape.width // patch), task.cut.scale.largest
    name = ImageName(number, label, said)
    return ImageView(pixels, largest, grid, record, name, who or usual_query(task.recipe.model), **shown)


def usual_query(section: Model) -> str:
    """What looks if nothing is named: the class token where the model classifies by it, else the mean."""
    return CLASS if getattr(section, "pool", "") == "first" else MEAN


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
            f"Mean attention distance in pixels, {counted(self.images, 'image')} of {self.width} pixels; attending "
            f"evenly to all would be {self.even:.1f}.",
            "",
            f"{'layer':<6}{names}{'mean':>8}{'to class token':>16}   {beside}: field{'evenly':>8}",
        ]
        for layer, heads in enumerate(self.heads):
            values = "".join(f"{value:>8.1f}" for value in (*heads, heads.mean()))
            field = f"{self.fields[layer]:>{len(beside) + 7}}{self.within[layer]:>8.1f}"
            lines.append(f"{layer + 1:<6}{values}{self.first[layer].mean():>16.0%}   {field}")
        return "\n".join(lines) + "\n"

    def values(self) -> dict[str, object]:
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


def distances(task: ImageClassification, images: Sequence[Image]) -> Distances:
    """The mean attention distance of every head of a model over images [Dosovitskiy21 §D.7].

    Raises:
        UsageError: there is no image.
        RegardError: an image is not of the size the model reads.
    """
    from regard.models.captured_attention import image_weights

    given = task.images(images)
    if not len(given):
        raise UsageError("there is no image to look at", "image")
    cut = task.cut
    rows, columns = cut.shape.height // cut.patch, cut.shape.width // cut.patch
    distance, reach = patch_distances(rows, columns, cut.patch)
    sums = []
    for begin in range(0, len(given), AT_ONCE):
        for batch in task.batches(given[begin : begin + AT_ONCE]):
            layers = [[one.double().cpu().numpy() for one in layer] for layer in image_weights(task.model, batch)]
            far = [np.sum([mean_distance(weight, distance) for weight in layer], axis=0) for layer in layers]
            share = [np.sum([weight[:, 1:, 0].mean(-1) for weight in layer], axis=0) for layer in layers]
            sums.append((far, share))
    heads, first = np.sum(sums, axis=0) / len(given)
    depths = range(1, len(heads) + 1)
    fields_seen = (reach <= depth * (KERNEL // 2) for depth in depths)
    within = tuple(float(((distance * seen).sum(1) / seen.sum(1)).mean()) for seen in fields_seen)  # if uniform
    fields = tuple(receptive_field([(cut.patch, cut.patch), *[(KERNEL, 1)] * depth]) for depth in depths)
    size = max(cut.shape.height, cut.shape.width)
    return Distances(heads, first, fields, within, float(distance.mean()), len(given), size)
