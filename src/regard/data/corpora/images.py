"""Labelled images: a row of pixel values per image in CSV or TSV, or the arrays of an ``.npz`` file.

Pixel values come row by row, in a row pixel by pixel, in a pixel channel by channel. Folders of pictures are not read:
that would take a library to decode them; ``numpy.savez`` makes an array of them.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isqrt, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.corpus import Records, find_column, plain_name
from regard.data.corpora.labelled import LABELS, LabelledCsv, LabelledRows, LabelledTsv
from regard.system import disk
from regard.system.errors import Option, RegardError, UsageError
from regard.text.lines import InvalidLines

Pixels = NDArray[np.int64]
BROKEN = (OSError, ValueError, EOFError, OverflowError, TypeError, AttributeError)
"""Exceptions that numpy raises for damaged arrays."""
MOST_VALUES = 1 << 24
"""Of an image in an .npz, whose header may claim anything."""
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


def wrong_pixels(values: NDArray[Any]) -> str | None:
    """What is wrong with pixel values, in a sentence; ``None``: nothing. An array of floats may hold whole numbers."""
    if values.dtype.kind not in "biuf":
        return f"holds {values.dtype}, no numbers"
    floats = values.dtype.kind == "f"
    odd = (values < 0) | (values > np.float64(LARGEST)) | (values != np.floor(values) if floats else False)
    if floats:
        odd |= np.isnan(values)
    if not odd.any():
        return None
    hint = " (fractions times 255, rounded)" if floats else ""
    return f"holds {values[odd][0]:.6g}; pixel values are whole numbers from 0 to {LARGEST:,}{hint}"


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


class Image(NamedTuple):
    """An image's pixel values in one row, and its label as written."""

    pixels: Pixels
    label: str

    @property
    def is_empty(self) -> bool:
        """Never: an image has pixels."""
        return False

    def sides(self) -> tuple[str, str]:
        """The pixel values with commas between, and the label."""
        return ",".join(map(str, self.pixels.tolist())), self.label


@dataclass
class ImageRows(Records[Image]):
    """An image a row, its label in one of the columns.

    A first row of names is a header. The label is in the column that ``label`` names, or counts from
    1; else in that whose header says so (:data:`~regard.data.corpora.labelled.LABELS`), else in the last.
    """

    table: LabelledRows = field(kw_only=True)
    label: str | None = field(default=None, kw_only=True)

    @property
    def shape(self) -> Shape | int:
        """Of the images, inferred from a row; the number of values if no square image has as many."""
        for pixels, _ in self.examples():
            return Shape.square(len(pixels)) or len(pixels)
        return 0

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, Image]]:
        """Every image's values and its label; empty rows are passed over.

        Raises:
            RegardError: a row has another number of columns than the first, or a value is no pixel.
        """
        for line, cells, label in self.table.choose(notes, self._choose_label):
            try:
                yield line, Image(parse_cells(cells[:label] + cells[label + 1 :]), cells[label].strip())
            except ValueError as error:
                raise RegardError(str(error), self.at(line)) from None

    def _choose_label(self, cells: Sequence[str], line: int) -> tuple[int, bool]:
        """The label's column from 0, and whether these cells of the first row are a header."""
        if len(cells) < 2:
            raise RegardError(
                "has a single column; an image is a row of pixel values, its label the last", self.at(line)
            )
        names = [cell.strip().casefold() for cell in cells]
        header = is_header(names)
        if self.label is not None:
            return find_column(self.label, names, self.at(line)), header or not self.label.isdecimal()
        named = [names.index(name) for name in LABELS if name in names] if header else []
        return named[0] if named else len(cells) - 1, header


@dataclass
class ImageArrays(Records[Image]):
    """The arrays ``images`` and ``labels`` of an ``.npz`` file: images × height × width, or × channels behind these.

    ``where`` gives an image's number from 1 in the place of a line.
    """

    @property
    def shape(self) -> Shape | int:
        """Of the images."""
        return Shape(*self._arrays()[0].shape[1:])

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, Image]]:
        """Every image and its label, each with its number from 1.

        Raises:
            RegardError: the file is damaged or lacks an array, or they do not go together.
        """
        images, labels = self._arrays()
        for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True), 1):
            yield number, Image(image.ravel().astype(np.int64), str(label).strip())

    def _arrays(self) -> tuple[NDArray[Any], NDArray[Any]]:
        disk.refuse_irregular(self.path)
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
                self._refuse_large(found.zip)
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
        if labels.dtype.kind not in "biufU":
            raise RegardError(f"holds labels of {labels.dtype}, no numbers or texts", self.name)
        if wrong := wrong_pixels(images):
            raise RegardError(wrong, self.name)
        return images, labels

    def _refuse_large(self, members: zipfile.ZipFile) -> None:
        """Raise a RegardError for images of too many pixels, by the header, before they are unpacked."""
        with members.open("images.npy") as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, _ = read(member)
        if (values := prod(shape[1:])) > MOST_VALUES:
            raise RegardError(f"holds images of {values:,} values; at most {MOST_VALUES:,} are read", self.name)


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
        raise UsageError(f"{columns!r} must be the column of the label; all others are pixels", Option("columns"))
    name = plain_name(path)
    if name.endswith(".npz"):
        if label is not None:
            raise UsageError("an .npz has no columns; its labels are in the array labels", Option("columns"))
        return ImageArrays(path)
    if name.endswith((".csv", ".tsv", ".tab")):
        table = LabelledCsv(path) if name.endswith(".csv") else LabelledTsv(path)
        return ImageRows(path, table=table, label=label)
    raise UsageError("is neither .csv, .tsv (an image a row) nor .npz (arrays images and labels)", str(path))


def one_shape(corpora: Sequence[Images]) -> Shape | int:
    """The shape of the images of all these corpora.

    Raises:
        RegardError: they have different ones.
    """
    found = [corpus.shape for corpus in corpora]
    for corpus, shape in zip(corpora, found, strict=True):
        if shape != found[0]:
            other, first = (f"{one:,} values" if isinstance(one, int) else str(one) for one in (shape, found[0]))
            raise RegardError(f"has images of {other}, but {corpora[0].name} of {first}", corpus.name)
    return found[0]
