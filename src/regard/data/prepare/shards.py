"""Shards of token ids in memory-mapped files, for corpora larger than memory (docs/decisions, prepared data).

A side of a corpus is one file of offsets (int64) and files of ids (uint16, uint32 above 65,536), cut between sentences.
Every sentence ends with ``</s>``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.system import disk
from regard.system.errors import Damaged

INSIDE, NEIGHBOUR, CONTINUES, TAGS = 0, 1, 2, 3
"""Marks of the pieces of a tagged text: inside a word; the first of a word that another window counts; the symbol that
ends a window whose text continues in the next; the first of a word with the first tag, the other tags above it."""
PART = 1 << 20
"""Sentences whose lengths are looked at together."""
FILE_TOKENS = 1 << 28
"""Most ids of a file: half a gigabyte in uint16."""
Entry = dict[str, Any]
"""What an index says of a side, a file or a table: plain values."""
Numbers = NDArray[np.integer]
Ids = NDArray[np.int64]


class Side(Protocol):
    """One side of a corpus, as batches need it. ``epoch`` matters only where words are segmented at random."""

    @property
    def count(self) -> int:
        """Sentences."""

    @property
    def tokens(self) -> int:
        """Tokens of them all; of an epoch, where epochs differ a little."""

    @property
    def longest(self) -> int:
        """Tokens of the longest sentence, in any epoch."""

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        """Tokens of each of these sentences, ``</s>`` counted."""

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        """The ids of these sentences end to end, and the tokens of each: ``(ids_T, lengths_B)``."""


def ragged_indices(starts_B: Ids, lengths_B: Ids) -> Ids:
    """The places of all elements of runs that begin at ``starts_B`` and are ``lengths_B`` long."""
    ends = lengths_B.cumsum()
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts_B - ends + lengths_B, lengths_B)


def narrowest_type(pieces: int) -> np.dtype[np.integer]:
    """The smallest type for ids below ``pieces``, the same on every machine."""
    return np.dtype("<u2" if pieces <= 65_536 else "<u4")


class ShardFile:
    """A file being written, its sha256 kept up."""

    def __init__(self, path: Path) -> None:
        self.name, self.bytes, self._path = path.name, 0, path
        self._stream: BinaryIO = path.open("wb")
        self._sum = hashlib.sha256()

    def write(self, raw: bytes) -> None:
        """Append bytes."""
        with disk.naming(self._path):
            self._stream.write(raw)
        self._sum.update(raw)
        self.bytes += len(raw)

    def close(self) -> Entry:
        """Bring everything to the disk; the file's entry for the index."""
        with disk.naming(self._path), self._stream as stream:
            stream.flush()
            os.fsync(stream.fileno())
        return {"bytes": self.bytes, "sha256": self._sum.hexdigest()}

    def release(self) -> None:
        """Close the file, finished or not; disk errors were raised before."""
        with contextlib.suppress(OSError):
            self._stream.close()


class OffsetsWriter:
    """Writes where each of some runs begins, and where the last ends.

    Args:
        folder: where the file goes.
        name: of the file.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._file, self._end = ShardFile(folder / name), 0
        self._file.write(bytes(8))

    def add(self, lengths: Sequence[int] | Ids) -> None:
        """Append runs of these lengths."""
        ends = self._end + np.cumsum(lengths, dtype=np.int64)
        self._file.write(ends.astype("<i8").tobytes())
        self._end = int(ends[-1]) if len(ends) else self._end

    def close(self) -> tuple[str, Entry]:
        """Finish the file: its name, and its entries for the index."""
        return self._file.name, {self._file.name: self._file.close()}

    def release(self) -> None:
        """Close the file, finished or not."""
        self._file.release()


class SideWriter:
    """Writes one side of a corpus, sentence by sentence.

    Args:
        folder: where the files go.
        name: how their names begin, e.g. ``train.source``.
        pieces: ids are below this; it decides their type.
        file_tokens: when to begin a new file of ids.
    """

    def __init__(self, folder: Path, name: str, pieces: int, file_tokens: int = FILE_TOKENS) -> None:
        self._folder, self._name, self._file_tokens = folder, name, file_tokens
        self._type = narrowest_type(pieces)
        self._offsets = OffsetsWriter(folder, f"{name}.offsets")
        self._ids: list[ShardFile] = []
        self._begins: list[int] = []
        self.tokens, self.count, self.longest = 0, 0, 0

    def add(self, sentences: Sequence[Ids]) -> None:
        """Append sentences; each must end with ``</s>``."""
        if sentences:
            lengths = np.array([len(ids) for ids in sentences], dtype=np.int64)
            self.append(np.concatenate(sentences), lengths)

    def append(self, ids_T: Numbers, lengths_B: Ids) -> None:
        """Append sentences end to end, of these lengths."""
        if not len(lengths_B):
            return
        if not self._ids or self.tokens - self._begins[-1] >= self._file_tokens:
            self._ids.append(ShardFile(self._folder / f"{self._name}.{len(self._ids):03d}.ids"))
            self._begins.append(self.tokens)
        self._ids[-1].write(ids_T.astype(self._type, copy=False).tobytes())
        self._offsets.add(lengths_B)
        self.tokens += int(lengths_B.sum())
        self.count += len(lengths_B)
        self.longest = max(self.longest, int(lengths_B.max()))

    def close(self) -> tuple[Entry, Entry]:
        """Finish the files: the side's entry for the index, and those of its files."""
        offsets, files = self._offsets.close()
        files |= {file.name: file.close() for file in self._ids}
        entry = {
            "sentences": self.count,
            "tokens": self.tokens,
            "longest": self.longest,
            "type": self._type.str,
            "begins": self._begins,
            "ids": [file.name for file in self._ids],
            "offsets": offsets,
        }
        return entry, files

    def release(self) -> None:
        """Close the files, finished or not."""
        self._offsets.release()
        for file in self._ids:
            file.release()


class Shards:
    """One side of a corpus on disk, memory-mapped; fits :class:`Side`."""

    def __init__(self, folder: Path, entry: Entry) -> None:
        self.count: int = entry["sentences"]
        self.tokens: int = entry["tokens"]
        self.longest: int = entry["longest"]
        self._offsets = _map_file(folder / entry["offsets"], "<i8")
        self._ids = [_map_file(folder / name, entry["type"]) for name in entry["ids"]]
        self._begins = np.array(entry["begins"], dtype=np.int64)
        self._refuse_others(folder / entry["offsets"])

    def _refuse_others(self, path: Path) -> None:
        """Raise a Damaged where files and entry do not tell of the same sentences."""
        ends = np.cumsum([0, *map(len, self._ids)])
        whole = len(self._offsets) == self.count + 1 and np.array_equal(self._begins, ends[:-1])
        whole = whole and self._offsets[0] == 0 and self._offsets[-1] == ends[-1] == self.tokens
        longest = 0
        for place in range(0, self.count if whole else 0, PART):
            lengths = np.diff(self._offsets[place : place + PART + 1])
            longest, whole = max(longest, int(lengths.max())), whole and lengths.min() >= 0
        if not whole or longest != self.longest:
            raise Damaged("is damaged: it does not fit what the index says of it", str(path))

    def lengths(self, epoch: int, sentences_B: Ids) -> Ids:
        return np.asarray(self._offsets[sentences_B + 1] - self._offsets[sentences_B], dtype=np.int64)

    def gather(self, epoch: int, sentences_B: Ids) -> tuple[Ids, Ids]:
        lengths_B = self.lengths(epoch, sentences_B)
        return self.within(sentences_B, np.zeros_like(lengths_B), lengths_B), lengths_B

    def within(self, sentences_B: Ids, first_B: Ids, lengths_B: Ids) -> Ids:
        """A part of each of these sentences, from token ``first_B`` on, end to end."""
        starts_B = np.asarray(self._offsets[sentences_B], dtype=np.int64)
        places_T = ragged_indices(starts_B + first_B, lengths_B)
        if len(self._ids) == 1:
            return self._ids[0][places_T].astype(np.int64)
        files_T = np.repeat(np.searchsorted(self._begins, starts_B, side="right") - 1, lengths_B)
        ids_T = np.empty(len(places_T), dtype=np.int64)
        for file in np.unique(files_T):
            inside = files_T == file
            ids_T[inside] = self._ids[file][places_T[inside] - self._begins[file]]
        return ids_T

    def sentence(self, number: int) -> Ids:
        """The ids of one sentence."""
        return self.gather(0, np.array([number], dtype=np.int64))[0]


class DocumentIndex:
    """The examples of one side: of example *b* the windows from ``first_B[b]`` on, ``windows_B[b]`` of them."""

    def __init__(self, path: Path) -> None:
        begins = np.fromfile(path, dtype="<i8").astype(np.int64)
        self.first_B: Ids = begins[:-1]
        self.windows_B: Ids = np.diff(begins)
        self.count = len(self.first_B)

    def windows(self, number: int) -> Ids:
        """The windows of one example, by their numbers."""
        return np.arange(self.first_B[number], self.first_B[number] + self.windows_B[number])

    def format_count(self, what: str) -> str:
        """Number of examples, and of windows if some have several, as text."""
        windows = int(self.windows_B.sum())
        return f"{self.count:,} {what}" + (f" ({windows:,} windows)" if windows > self.count else "")


def _map_file(path: Path, kind: str) -> Numbers:
    """Map the file's numbers, of a type by its code; an empty file, which cannot be mapped, gives an empty array."""
    try:
        return np.memmap(path, dtype=kind, mode="r") if path.stat().st_size else np.zeros(0, kind)
    except (OSError, ValueError) as error:
        raise Damaged(f"is damaged: {error}", str(path)) from None
