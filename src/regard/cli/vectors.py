"""Vectors of texts and of tokens, of images and of patches, as JSON lines and as the arrays of a file."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.cli.lines import image_of, json_line, until_wrong
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.tasks.encoding import Floats, Pool, TextVectors
    from regard.tasks.image_classification import Image
    from regard.tasks.image_encoding import ImageVectors

Arrays = dict[str, NDArray[Any]]
SIZE = 8
"""Bytes of a number that says how many follow."""


class Way(Protocol):
    """How some lines, of which the number of the first is known (from 1), become vectors."""

    def objects(self, lines: list[str], first: int) -> Iterator[str]:
        """JSON objects, a line each."""
        ...

    def arrays(self, lines: list[str], first: int) -> Arrays:
        """The arrays of a file."""
        ...


class Texts:
    """A vector a text."""

    def __init__(self, vectors: TextVectors, pool: Pool | None, normalise: bool | None) -> None:
        self.vectors, self.pool, self.normalise = vectors, pool, normalise

    def objects(self, lines: list[str], first: int) -> Iterator[str]:
        """A JSON object a line."""
        rows = self.vectors.texts(lines, self.pool, self.normalise)
        return (json_line({"text": line, "vector": plain(row)}) for line, row in zip(lines, rows, strict=True))

    def arrays(self, lines: list[str], first: int) -> Arrays:
        """A row a line."""
        return {"vectors": self.vectors.texts(lines, self.pool, self.normalise)}


class Tokens:
    """A vector a token."""

    def __init__(self, vectors: TextVectors, normalise: bool) -> None:
        self.vectors, self.normalise = vectors, normalise

    def objects(self, lines: list[str], first: int) -> Iterator[str]:
        """A JSON object a line."""
        for one in self.vectors.tokens(lines, self.normalise):
            rows = zip(one.pieces, one.offsets, one.vectors, strict=True)
            tokens = [{"text": text, "start": at[0], "end": at[1], "vector": plain(row)} for text, at, row in rows]
            yield json_line({"text": one.text, "tokens": tokens})

    def arrays(self, lines: list[str], first: int) -> Arrays:
        """A row a token."""
        found = self.vectors.tokens(lines, self.normalise)
        counts = [len(one.ids) for one in found]
        return {
            "vectors": np.concatenate([np.zeros((0, self.vectors.size), np.float32), *(one.vectors for one in found)]),
            "lines": np.repeat(np.arange(first - 1, first - 1 + len(lines)), counts),
            "ids": np.array([id for one in found for id in one.ids], np.int64),
            "offsets": np.array([place for one in found for place in one.offsets], np.int64).reshape(-1, 2),
        }


class Images:
    """A vector an image; an empty line has none, and neither has a header."""

    def __init__(self, vectors: ImageVectors, pool: Pool | None, normalise: bool) -> None:
        self.vectors, self.pool, self.normalise = vectors, pool, normalise

    def objects(self, lines: list[str], first: int) -> Iterator[str]:
        """A JSON object an image, with its line; what comes before a line that cannot be read is answered first."""
        numbers, images, wrong = read_images(self.vectors, lines, first)
        for number, found in zip(numbers, self.found(images), strict=True):
            yield json_line({"line": number, **self.told(found)})
        if wrong:
            raise wrong

    def arrays(self, lines: list[str], first: int) -> Arrays:
        """Everything of the images, with the places of their lines."""
        numbers, images, wrong = read_images(self.vectors, lines, first)
        if wrong:
            raise wrong
        return self.joined(self.found(images), np.array(numbers, np.int64) - 1)

    def found(self, images: list[Image]) -> Floats:
        """A row for each image."""
        return self.vectors.images(images, self.pool, self.normalise)

    def told(self, found: Floats) -> dict[str, Any]:
        """What stands in the object of one image."""
        return {"vector": plain(found)}

    def joined(self, found: Floats, places: NDArray[np.int64]) -> Arrays:
        """A row an image."""
        return {"vectors": found, "lines": places}


class Patches(Images):
    """A vector a patch; rows and columns count from 1 in objects, from 0 in arrays."""

    def __init__(self, vectors: ImageVectors, normalise: bool) -> None:
        super().__init__(vectors, None, normalise)
        self.places = [(row, column) for row in range(vectors.rows) for column in range(vectors.columns)]

    def found(self, images: list[Image]) -> Floats:
        """For each image a row for each patch."""
        return self.vectors.patches(images, self.normalise)

    def told(self, found: Floats) -> dict[str, Any]:
        """The patches of one image."""
        places = zip(self.places, found, strict=True)
        return {"patches": [{"row": r + 1, "column": c + 1, "vector": plain(vector)} for (r, c), vector in places]}

    def joined(self, found: Floats, places: NDArray[np.int64]) -> Arrays:
        """A row a patch."""
        return {
            "vectors": found.reshape(-1, self.vectors.size),
            "lines": np.repeat(places, len(self.places)),
            "patches": np.array(self.places * len(found), np.int64).reshape(-1, 2),
        }


def read_images(vectors: ImageVectors, lines: list[str], first: int) -> tuple[list[int], list[Any], RegardError | None]:
    """The images of some lines with their numbers, as far as they can be read; and what is wrong with the next line."""
    numbered = enumerate(lines, first)
    read, wrong = until_wrong((number, image_of(vectors.task, line, number)) for number, line in numbered)
    found = [(number, image) for number, image in read if image is not None]
    return [number for number, _ in found], [image for _, image in found], wrong


def joined(parts: Sequence[Arrays]) -> Arrays:
    """The arrays of several bursts as one."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def plain(row: NDArray[np.float32]) -> list[float]:
    """A vector's entries, as many digits as a float32 has."""
    return [float(f"{entry:.7g}") for entry in row.tolist()]


def framed(arrays: Arrays) -> bytes:
    """The arrays of a burst as bytes that say where they end."""
    content = packed(arrays)
    return len(content).to_bytes(SIZE, "little") + content


def unframed(file: BinaryIO) -> Iterator[Arrays]:
    """The arrays of each burst, of bytes one behind the other."""
    while head := file.read(SIZE):
        with np.load(io.BytesIO(file.read(int.from_bytes(head, "little"))), allow_pickle=False) as found:
            yield {name: found[name] for name in found.files}


def packed(arrays: Arrays) -> memoryview:
    """The arrays as the content of an .npz file."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getbuffer()
