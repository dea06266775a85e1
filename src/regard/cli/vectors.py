"""Vectors of texts and of tokens, as JSON lines and as the arrays of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.cli.lines import json_line
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.tasks.encoding import Pool, TextVectors

Arrays = dict[str, NDArray[Any]]


class Texts:
    """A vector a text."""

    def __init__(self, vectors: TextVectors, pool: Pool | None, normalise: bool | None) -> None:
        self.vectors, self.pool, self.normalise = vectors, pool, normalise

    def objects(self, lines: list[str]) -> Iterator[str]:
        """A JSON object a line."""
        rows = self.vectors.texts(lines, self.pool, self.normalise)
        return (json_line({"text": line, "vector": plain(row)}) for line, row in zip(lines, rows, strict=True))

    def arrays(self, lines: list[str], before: int) -> Arrays:
        """A row a line."""
        return {"vectors": self.vectors.texts(lines, self.pool, self.normalise)}


class Tokens:
    """A vector a token."""

    def __init__(self, vectors: TextVectors, normalise: bool) -> None:
        self.vectors, self.normalise = vectors, normalise

    def objects(self, lines: list[str]) -> Iterator[str]:
        """A JSON object a line."""
        for one in self.vectors.tokens(lines, self.normalise):
            rows = zip(one.pieces, one.offsets, one.vectors, strict=True)
            tokens = [{"text": text, "start": at[0], "end": at[1], "vector": plain(row)} for text, at, row in rows]
            yield json_line({"text": one.text, "tokens": tokens})

    def arrays(self, lines: list[str], before: int) -> Arrays:
        """A row a token; ``before`` lines came earlier."""
        found = self.vectors.tokens(lines, self.normalise)
        counts = [len(one.ids) for one in found]
        return {
            "vectors": np.concatenate([np.zeros((0, self.vectors.size), np.float32), *(one.vectors for one in found)]),
            "lines": np.repeat(np.arange(before, before + len(lines)), counts),
            "ids": np.array([id for one in found for id in one.ids], np.int64),
            "offsets": np.array([place for one in found for place in one.offsets], np.int64).reshape(-1, 2),
        }


Way = Texts | Tokens


def joined(parts: Sequence[Arrays]) -> Arrays:
    """The arrays of several bursts as one."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def plain(row: NDArray[np.float32]) -> list[float]:
    """A vector's entries, as many digits as a float32 has."""
    return [float(f"{entry:.7g}") for entry in row.tolist()]


def write(path: Path, arrays: Arrays) -> None:
    """The arrays as one file, which is there whole or not at all."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with open(partial, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise RegardError(f"cannot be written: {error.strerror}", str(path)) from None
