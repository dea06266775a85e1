"""Labelled images: a row of pixel values per image in CSV or TSV, or the arrays of an ``.npz`` file.

An example's text is its pixel values with commas between: row by row, in a row pixel by pixel, in a pixel channel by
channel. So images are counted, compared, split and kept as texts are. Folders of pictures are not read: that would take
a library to decode them; ``numpy.savez`` makes an array of them.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.labelled import LABELS, LabelledCsv, LabelledRows, LabelledTsv
from regard.data.corpora.pairs import Pair
from regard.data.corpora.records import Record, Records, plain_name
from regard.system import disk
from regard.system.errors import RegardError, UsageError
from regard.text.lines import InvalidLines

Pixels = NDArray[np.int64]
BROKEN = (OSError, ValueError, EOFError, OverflowError, TypeError, AttributeError)
"""Exceptions that numpy raises for damaged arrays."""
LARGEST = 65_535
"""Of pixel values: what shards hold in two bytes."""


@dataclass(frozen=True)
class Shape:
    """The size of every image of a corpus: pixels from top to bottom and from left to right, values of a pixel."""

    height: int
    width: int
    channels: int = 1

    def __str__(self) -> str:
        return f"{self.height} x {self.width} x {self.channels}"

    @property
    def values(self) -> int:
        """Numbers of an image."""
        return self.height * self.width * self.channels

    @classmethod
    def square(cls, values: int) -> Shape | None:
        """The square image of ``values`` numbers, grey or RGB; None if there is none."""
        for channels in (1, 3):
            side = isqrt(values // channels)
            if side and side * side * channels == values:
                return cls(side, side, channels)
        return None


def parse_cells(cells: Sequence[str]) -> Pixels:
    """Cells as pixel values.

    Raises:
        ValueError: a cell is not a whole number from 0 to :data:`LARGEST`; names it.
    """
    try:
        found = np.array(cells, np.float64)
    except ValueError:
        found = np.array([float(cell) if _is_number(cell) else np.nan for cell in cells], np.float64)
    good = (found >= 0) & (found <= LARGEST) & (found == np.floor(found))
    if not good.all():
        place = int(np.argmin(good))
        what = f"{str(cells[place])[:20]!r}, the {place + 1:,}. of its pixel values"
        raise ValueError(f"{what}, is no whole number from 0 to {LARGEST:,}")
    return found.astype(np.int64)


def is_header(cells: Sequence[str]) -> bool:
    """Whether these cells are names: most are no numbers, or one is what a label's column is called."""
    wordy = sum(not _is_number(cell) for cell in cells)
    return 2 * wordy > len(cells) or any(cell.strip().casefold() in LABELS for cell in cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def format_pixels(pixels: Pixels) -> str:
    """Pixel values as an example's text."""
    return ",".join(map(str, pixels.tolist()))


def parse_pixels(text: str) -> Pixels:
    """Pixel values of an example's text."""
    return np.array(text.split(","), np.int64)


@dataclass
class ImageRows(Records):
    """An image a row, its label in one of the columns.

    A first row of names is a header. The label is in the column that ``label`` names, or counts from
    1; else in that whose header says so (:data:`~regard.data.corpora.labelled.LABELS`), else in the last.
    """

    table: LabelledRows = field(kw_only=True)
    label: str | None = field(default=None, kw_only=True)

    @property
    def shape(self) -> Shape | int:
        """Of the images, inferred from a row; the number of values if no square image has as many."""
        for text, _ in self.pairs():
            values = text.count(",") + 1
            return Shape.square(values) or values
        return 0

    def records(self, notes: InvalidLines) -> Iterator[Record]:
        """Every image's values and its label; empty rows are passed over.

        Raises:
            RegardError: a row has another number of columns than the first, or a value is no pixel.
        """
        place, first = None, (0, 0)
        for line, cells in self.table.rows(notes):
            if place is None:
                place, naming = self._label(cells, line)
                first = line, len(cells)
                if naming:
                    continue
            if len(cells) != first[1]:
                message = f"has {len(cells):,} values, but line {first[0]} has {first[1]:,}; an image is a row"
                raise RegardError(message, self.at(line))
            pixels = cells[:place] + cells[place + 1 :]
            try:
                yield line, (format_pixels(parse_cells(pixels)), cells[place].strip())
            except ValueError as error:
                raise RegardError(str(error), self.at(line)) from None

    def _label(self, cells: Sequence[str], line: int) -> tuple[int, bool]:
        """The label's column from 0, and whether these cells of the first row are a header."""
        if len(cells) < 2:
            raise RegardError(
                "has a single column; an image is a row of pixel values, its label the last", self.at(line)
            )
        names = [cell.strip().casefold() for cell in cells]
        naming = is_header(names)
        if self.label is None:
            named = next((names.index(name) for name in LABELS if name in names), None) if naming else None
            return (len(cells) - 1 if named is None else named), naming
        if self.label.isdecimal():
            if not 1 <= int(self.label) <= len(cells):
                raise RegardError(f"has {len(cells):,} columns, but the label should be in {self.label}", self.at(line))
            return int(self.label) - 1, naming
        if self.label.casefold() not in names:
            raise RegardError(f"the first line names no column {self.label!r}", self.at(line))
        return names.index(self.label.casefold()), True


@dataclass
class ImageArrays:
    """The arrays ``images`` and ``labels`` of an ``.npz`` file: images × height × width, or × channels behind these.

    ``where`` gives an image's number from 1 in the place of a line.
    """

    path: Path
    notes: tuple[InvalidLines, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return str(self.path)

    def where(self, number: int, side: int = 0) -> str:
        return f"{self.path}:{number + 1}"

    @property
    def shape(self) -> Shape | int:
        """Of the images."""
        return Shape(*self._arrays()[0].shape[1:])

    def pairs(self) -> Iterator[Pair]:
        """Every image and its label, in order.

        Raises:
            RegardError: the file is damaged or lacks an array, or they do not go together.
        """
        images, labels = self._arrays()
        for image, label in zip(images, labels.tolist(), strict=True):
            yield format_pixels(image.ravel()), str(label).strip()

    def _arrays(self) -> tuple[NDArray[Any], NDArray[Any]]:
        disk.refuse_irregular(self.path)
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
                images, labels = found["images"], found["labels"]
        except KeyError as error:
            raise RegardError(f"has no array of this name: {error}; it needs images and labels", self.name) from None
        except MemoryError as error:
            said = str(error).rstrip(".") or "there is not enough"
            raise RegardError(f"is too large for memory, or is damaged: {said}", self.name) from None
        except (*BROKEN, zipfile.BadZipFile, zlib.error) as error:
            first = str(error).partition(". ")[0]
            raise RegardError(f"is damaged, or no .npz of plain arrays: {first}", self.name) from None
        if images.ndim not in (3, 4) or labels.shape != images.shape[:1] or not images.size:
            shapes = f"images {images.shape}, labels {labels.shape}"
            raise RegardError(
                f"holds {shapes}; images are (count, height, width) or (count, height, width, channels), and there is "
                "one label for each",
                self.name,
            )
        if images.dtype.kind not in "biu" or labels.dtype.kind not in "biufU":
            raise RegardError(
                f"holds images of {images.dtype} and labels of {labels.dtype}; pixels are whole numbers (fractions "
                "times 255, rounded), labels numbers or texts",
                self.name,
            )
        if images.min() < 0 or images.max() > LARGEST:
            raise RegardError(f"holds pixel values outside of 0 to {LARGEST:,}", self.name)
        return images, labels


Images = ImageRows | ImageArrays


def open_images(path: Path | str, columns: str | None = None) -> Images:
    """The labelled images of a file; its name's ending tells the form: ``.csv``, ``.tsv``, ``.npz``.

    Args:
        path: the file; CSV and TSV plain or compressed.
        columns: the label's column, by name or counted from 1; default: as in :class:`ImageRows`.

    Raises:
        UsageError: the ending tells no form, or the columns are not one.
    """
    path, label = Path(path), columns.strip() if columns is not None else None
    if label is not None and (not label or "," in label):
        raise UsageError(f"{columns!r} must be the column of the label; all others are pixels", "--columns")
    name = plain_name(path)
    if name.endswith(".npz"):
        if label is not None:
            raise UsageError("an .npz has no columns; its labels are in the array labels", "--columns")
        return ImageArrays(path)
    tables: dict[str, Callable[[Path], LabelledRows]] = {".csv": LabelledCsv, ".tsv": LabelledTsv, ".tab": LabelledTsv}
    for ending, table in tables.items():
        if name.endswith(ending):
            return ImageRows(path, table=table(path), label=label)
    raise UsageError("is neither .csv, .tsv (an image a row) nor .npz (arrays images and labels)", str(path))


def one_shape(corpora: Sequence[Images]) -> Shape | int:
    """The shape of the images of all these corpora.

    Raises:
        RegardError: they have different ones.
    """
    found = [corpus.shape for corpus in corpora]
    for corpus, shape in zip(corpora, found, strict=True):
        if shape != found[0]:
            raise RegardError(
                f"has images of {_format_shape(shape)}, but {corpora[0].name} of {_format_shape(found[0])}", corpus.name
            )
    return found[0]


def _format_shape(shape: Shape | int) -> str:
    return f"{shape:,} values" if isinstance(shape, int) else str(shape)
