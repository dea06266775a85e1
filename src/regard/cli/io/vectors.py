"""Writers of vectors for texts, tokens, images and patches: JSON lines, or arrays of an .npz file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.cli.io.lines import image_of, json_line, read_until_error
from regard.system.errors import RegardError

if TYPE_CHECKING:
    from regard.tasks.images.classifier import Image
    from regard.tasks.text.encoding import Floats, ImageVectors, Pool, TextVectors

Arrays = dict[str, NDArray[np.generic]]
SIZE = 8
"""Bytes of the length prefix of a frame."""


class VectorWriter(Protocol):
    """Turns lines into vectors, given the number of the first line (from 1)."""

    def objects(self, lines: list[str], first: int) -> Iterator[str]:
        """JSON objects, one per line."""

    def arrays(self, lines: list[str], first: int) -> Arrays:
        """The arrays for a file."""


class TextWriter:
    """One vector per text."""

    def __init__(self, vectors: TextVectors, pool: Pool | None, normalise: bool | None) -> None:
        self.vectors, self.pool, self.normalise = vectors, pool, normalise

    def objects(self, lines: list[str], first: int) -> Iterator[str]:
        """One JSON object per line."""
        rows = self.vectors.texts(lines, self.pool, self.normalise)
        return (json_line({"text": line, "vector": round_floats(row)}) for line, row in zip(lines, rows, strict=True))

    def arrays(self, lines: list[str], first: int) -> Arrays:
        """One row per line."""
        return {"vectors": self.vectors.texts(lines, self.pool, self.normalise)}


class TokenWriter:
    """One vector per token."""

    def __init__(self, vectors: TextVectors, normalise: bool) -> None:
        self.vectors, self.normalise = vectors, normalise

    def objects(self, lines: list[str], first: int) -> Iterator[str]:
        """One JSON object per line."""
        for one in self.vectors.tokens(lines, self.normalise):
            rows = zip(one.pieces, one.offsets, one.vectors, strict=True)
            tokens = [
                {"text": text, "start": at[0], "end": at[1], "vector": round_floats(row)} for text, at, row in rows
            ]
            yield json_line({"text": one.text, "tokens": tokens})

    def arrays(self, lines: list[str], first: int) -> Arrays:
        """One row per token."""
        found = self.vectors.tokens(lines, self.normalise)
        counts = [len(one.ids) for one in found]
        return {
            "vectors": np.concatenate([np.zeros((0, self.vectors.size), np.float32), *(one.vectors for one in found)]),
            "lines": np.repeat(np.arange(first - 1, first - 1 + len(lines)), counts),
            "ids": np.array([id for one in found for id in one.ids], np.int64),
            "offsets": np.array([place for one in found for place in one.offsets], np.int64).reshape(-1, 2),
        }


class ImageWriter:
    """One vector per image, or per patch; an empty line or a header has none.

    Rows and columns of patches count from 1 in JSON, from 0 in arrays.
    """

    def __init__(self, vectors: ImageVectors, pool: Pool | None, normalise: bool, patches: bool) -> None:
        self.vectors, self.pool, self.normalise, self.patches = vectors, pool, normalise, patches
        self.places = [(row, column) for row in range(vectors.rows) for column in range(vectors.columns)]

    def objects(self, lines: list[str], first: int) -> Iterator[str]:
        """One JSON object per image, with its line; images before an unreadable line are answered first."""
        numbers, images, wrong = read_images(self.vectors, lines, first)
        for number, found in zip(numbers, self.compute(images), strict=True):
            if self.patches:
                places = zip(self.places, found, strict=True)
                each = [{"row": r + 1, "column": c + 1, "vector": round_floats(vector)} for (r, c), vector in places]
                yield json_line({"line": number, "patches": each})
            else:
                yield json_line({"line": number, "vector": round_floats(found)})
        if wrong:
            raise wrong

    def arrays(self, lines: list[str], first: int) -> Arrays:
        """One row per image or patch, with the line numbers."""
        numbers, images, wrong = read_images(self.vectors, lines, first)
        if wrong:
            raise wrong
        found, lines_B = self.compute(images), np.array(numbers, np.int64) - 1
        if not self.patches:
            return {"vectors": found, "lines": lines_B}
        return {
            "vectors": found.reshape(-1, self.vectors.size),
            "lines": np.repeat(lines_B, len(self.places)),
            "patches": np.array(self.places * len(found), np.int64).reshape(-1, 2),
        }

    def compute(self, images: list[Image]) -> Floats:
        """For each image one row, or one per patch."""
        if self.patches:
            return self.vectors.patches(images, self.normalise)
        return self.vectors.images(images, self.pool, self.normalise)


def read_images(
    vectors: ImageVectors, lines: list[str], first: int
) -> tuple[list[int], list[Image], RegardError | None]:
    """The images of some lines with their numbers, up to the first unreadable line, and that line's error."""
    numbered = enumerate(lines, first)
    read, wrong = read_until_error((number, image_of(vectors.task, line, number)) for number, line in numbered)
    found = [(number, image) for number, image in read if image is not None]
    return [number for number, _ in found], [image for _, image in found], wrong


def round_floats(row: NDArray[np.float32]) -> list[float]:
    """A vector's entries, rounded to the digits of a float32."""
    return [float(f"{entry:.7g}") for entry in row.tolist()]


def frame_arrays(arrays: Arrays) -> bytes:
    """The arrays of a chunk as bytes with a length prefix."""
    content = pack_npz(arrays)
    return len(content).to_bytes(SIZE, "little") + content


def join_frames(way: VectorWriter, file: BinaryIO) -> memoryview:
    """The arrays of all frames in a file, concatenated, as the content of an .npz file."""
    parts: list[Arrays] = []
    while head := file.read(SIZE):
        with np.load(io.BytesIO(file.read(int.from_bytes(head, "little"))), allow_pickle=False) as found:
            parts.append({name: found[name] for name in found.files})
    first, *rest = parts or [way.arrays([], 1)]
    return pack_npz({name: np.concatenate([array, *(part[name] for part in rest)]) for name, array in first.items()})


def pack_npz(arrays: Arrays) -> memoryview:
    """The arrays as the content of an .npz file."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getbuffer()
