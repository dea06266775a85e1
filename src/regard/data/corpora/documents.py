"""Running text for language models, split into documents; plain or gz, xz, zst; streamed in a few MB of memory.

A document of more than ``PART`` characters comes in parts; the parts joined are the document, to the character. For
validation a tenth of the documents is held out, or the end of the text where they are few.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.corpus import Corpus, Progress, Records, no_progress, plain_name
from regard.data.corpora.scan import EVERY
from regard.system.errors import Option, RegardError, UsageError
from regard.system.keys import generator
from regard.text.lines import BOM, FAULTS, InvalidLines, error_text, open_text, replace_surrogates

Unit = Literal["file", "paragraph", "line"]
PART = 1 << 20
"""Characters of a document that come at once; also bytes of a line that are read at once."""
SHARE = 0.1
FEW = 20
"""With fewer documents than this, the end of the text is held out instead."""
MOST = 5_000_000
"""Most characters to hold out."""

_NEAR = 4096
_KEPT = 8


class DocumentPart(NamedTuple):
    """A document, or a part of one that the next example ``continues``."""

    text: str
    continues: bool = False

    def sides(self) -> tuple[str, str]:
        """The text, and a mark where it is continued."""
        return self.text, "+" if self.continues else ""


def read_chunks(path: Path | str, notes: InvalidLines, most: int = PART) -> Iterator[tuple[int, str]]:
    """A file's text line by line, each with its number and its line feed; a line of more bytes than ``most`` in pieces.

    As :func:`~regard.text.lines.lines` does: a carriage return before the line feed and a leading byte order
    mark are removed, invalid UTF-8 becomes U+FFFD and is noted.

    Raises:
        RegardError: as :func:`~regard.text.lines.lines`.
    """
    number, kept, first = 1, b"", True
    with open_text(path) as stream:
        try:
            while read := stream.readline(most):
                raw = kept + (read.removeprefix(BOM) if first else read)
                first, ended = False, read.endswith(b"\n")
                cut = _cut(raw) if len(read) == most and not ended else len(raw)
                raw, kept = raw[:cut], raw[cut:]
                if ended:
                    raw = raw.removesuffix(b"\n").removesuffix(b"\r") + b"\n"
                elif len(read) < most:  # the file's last line has no line feed
                    raw = raw.removesuffix(b"\r")
                if raw:
                    yield number, _text(raw, number, notes)
                number += ended
            if kept := kept.removesuffix(b"\r"):
                yield number, _text(kept, number, notes)
        except FAULTS as error:
            raise RegardError(error_text(error, f" or cut off in line {number}"), f"{path}:{number}") from None


def _text(raw: bytes, number: int, notes: InvalidLines) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        if not notes.invalid_lines or notes.invalid_lines[-1] != number:
            notes.note(number)
        return raw.decode(errors="replace")


def _cut(raw: bytes) -> int:
    """End of a piece of a line: before a nearby blank, else between two characters.

    A few bytes are always kept back, so that the line's end never comes alone.
    """
    end = max(1, len(raw) - _KEPT)
    blank = raw.rfind(b" ", max(1, end - _NEAR), end)
    if blank > 0:
        return blank
    while end > 1 and raw[end] & 0xC0 == 0x80 and len(raw) - end < 2 * _KEPT:  # inside a character
        end -= 1
    return end


class _Part:
    """The collected part of a document."""

    def __init__(self, whole: bool) -> None:
        self._whole = whole
        self._texts: list[str] = []
        self._size, self._line = 0, 0

    def add(self, line: int, text: str) -> Iterator[tuple[int, DocumentPart]]:
        """Take more of the document; the part before it, where it would grow too long."""
        if self._texts and self._size + len(text) > PART:
            yield self._line, DocumentPart("".join(self._texts), continues=True)
            self._texts.clear()
            self._size = 0
        if not self._texts:
            self._line = line
        self._texts.append(text)
        self._size += len(text)

    def end(self) -> Iterator[tuple[int, DocumentPart]]:
        """The last part of the document; without its last line feed, unless the document is a whole file."""
        if self._texts:
            text = "".join(self._texts)
            yield self._line, DocumentPart(text if self._whole else text.removesuffix("\n"))
        self._texts.clear()
        self._size = 0


@dataclass
class PlainDocuments(Records[DocumentPart]):
    """Plain text. ``unit``: a document is the whole file with all its lines, what stands between lines of nothing but
    white space, or a line. Empty lines are no documents.
    """

    unit: Unit = "file"

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, DocumentPart]]:
        """Every document, or part of one, with the line it begins in."""
        part, fresh = _Part(self.unit == "file"), True
        for line, text in read_chunks(self.path, notes):
            empty = fresh and len(text) < PART // 2 and not text.strip()  # a longer one may be a piece of a line
            fresh = text.endswith("\n")
            if empty and self.unit != "file":
                yield from part.end()
                continue
            yield from part.add(line, text)
            if fresh and self.unit == "line":
                yield from part.end()
        yield from part.end()


@dataclass
class JsonDocuments(Records[DocumentPart]):
    """JSONL: a document a line, its text under ``key``; empty ones are passed over."""

    key: str = "text"

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, DocumentPart]]:
        """Every document, or part of one, with its line.

        Raises:
            RegardError: a line is no JSON object, or has no text under the key.
        """
        for number, entry in self.json_objects(notes):
            text = self.json_value(entry, self.key, number)
            if not isinstance(text, str):
                raise RegardError(f"{self.key!r} is not a text", self.at(number))
            part = _Part(whole=True)
            for piece in _split_text(replace_surrogates(text)):
                yield from part.add(number, piece)
            yield from part.end()


def _split_text(text: str) -> Iterable[str]:
    """A text that is in memory, cut as one that is read."""
    begin = 0
    while begin < len(text):
        end = begin + PART
        if end < len(text) and (near := max(text.rfind(" ", begin + 1, end), text.rfind("\n", begin + 1, end))) > 0:
            end = near if end - near < _NEAR else end
        yield text[begin:end]
        begin = end


def open_documents(path: Path | str, unit: Unit = "file", key: str = "text") -> Corpus[DocumentPart]:
    """The documents of a file: ``.jsonl`` by lines, anything else as plain text by ``unit``.

    Raises:
        UsageError: no such unit.
    """
    path = Path(path)
    if unit not in ("file", "paragraph", "line"):
        raise UsageError(f"a document is a file, a paragraph or a line, not a {unit!r}", "data.documents")
    if plain_name(path).endswith((".jsonl", ".ndjson", ".json")):
        return JsonDocuments(path, key)
    return PlainDocuments(path, unit)


def refuse_columns(columns: str | None, corpora: Sequence[Corpus[DocumentPart]]) -> None:
    """Raise a UsageError for the key of a text where no file is JSONL: plain running text is learned from whole."""
    if columns is not None and not any(isinstance(corpus, JsonDocuments) for corpus in corpora):
        message = f"{columns!r} would be the key of a text in JSONL, but {corpora[0].name} is read as plain text"
        raise UsageError(f"{message}, all of it; leave it out, or give .jsonl", Option("columns"))


@dataclass
class DocumentSeries:
    """The documents of several corpora as one; implements :class:`~regard.data.corpora.corpus.Corpus`."""

    corpora: Sequence[Corpus[DocumentPart]]

    @property
    def name(self) -> str:
        return " and ".join(corpus.name for corpus in self.corpora)

    @property
    def notes(self) -> tuple[InvalidLines, ...]:
        return tuple(note for corpus in self.corpora for note in corpus.notes)

    def where(self, number: int, side: int = 0) -> str:
        """The file; of documents of several files the names of all."""
        return self.corpora[side].name if side or len(self.corpora) == 1 else self.name

    def examples(self) -> Iterator[DocumentPart]:
        """Every document, or part of one."""
        for corpus in self.corpora:
            yield from corpus.examples()


@dataclass
class HeldOutSpan:
    """Running text of which the characters from ``cut`` on are held out, counted through all corpora.

    A document that is cut is marked as continued.
    """

    text: DocumentSeries
    cut: int

    def parts(self) -> Iterator[tuple[DocumentPart, bool]]:
        """Every document, or part of one, and whether it is held out."""
        seen = 0
        for text, continues in self.text.examples():
            here = min(max(0, self.cut - seen), len(text))
            if here:
                yield DocumentPart(text[:here], continues or here < len(text)), False
            if here < len(text):
                yield DocumentPart(text[here:], continues), True
            seen += len(text)


@dataclass
class HeldOutDocuments:
    """Running text of which some documents are held out, numbered in all corpora; the parts of one stay together."""

    text: DocumentSeries
    held_D: NDArray[np.bool_] = field(compare=False)
    learned_D: NDArray[np.bool_] = field(compare=False)

    def parts(self) -> Iterator[tuple[DocumentPart, bool]]:
        """Every document that is learned from or held out, or part of one, and whether it is held out."""
        number = 0
        for part in self.text.examples():
            if self.held_D[number] or self.learned_D[number]:
                yield part, bool(self.held_D[number])
            number += not part.continues


HeldOut = HeldOutSpan | HeldOutDocuments


@dataclass(frozen=True)
class TextSize:
    """Size of running text.

    Args:
        characters: of all documents.
        same_D: a number for each document, which two share if they are equal.
    """

    characters: int
    same_D: NDArray[np.uint64]

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.same_D)


def measure_corpora(corpora: Sequence[Corpus[DocumentPart]], progress: Progress = no_progress) -> TextSize:
    """One pass over all documents.

    Raises:
        RegardError: a corpus is empty, or cannot be read.
    """
    characters, same = 0, array("Q")
    for corpus in corpora:
        before, content = len(same), hashlib.blake2b(digest_size=8)
        for text, continues in corpus.examples():
            characters += len(text)
            content.update(text.encode())
            if not continues:
                same.append(int.from_bytes(content.digest(), "little"))
                content = hashlib.blake2b(digest_size=8)
                if len(same) % EVERY == 0:
                    progress("read", len(same))
        if len(same) == before:
            raise RegardError("holds no text", corpus.name)
    return TextSize(characters, np.array(same, np.uint64))


def split_documents(corpora: Sequence[Corpus[DocumentPart]], found: TextSize, seed: int) -> HeldOut:
    """Hold out a seeded tenth of the documents, or the end of the text if they are few.

    Args:
        corpora: the documents.
        found: how many they are.
        seed: of the draw.

    Raises:
        RegardError: there is too little text for that.
    """
    text, share = DocumentSeries(corpora), min(SHARE, MOST / max(1, found.characters))
    if found.documents < FEW:
        cut = found.characters - int(found.characters * share)
        if cut == found.characters:
            said = "1 character is" if cut == 1 else f"{cut} characters are"
            raise RegardError(f"{said} too few to hold some out for validation; give {Option('valid')}", text.name)
        return HeldOutSpan(text, cut)
    order = generator(seed, "split").permutation(found.documents)
    held_D = np.zeros(found.documents, np.bool_)
    held_D[order[: max(1, int(found.documents * share))]] = True
    learned_D = ~np.isin(found.same_D, found.same_D[held_D])  # a document that occurs again is on one side only
    if not learned_D.any():
        raise RegardError(f"all {found.documents:,} documents are alike; give {Option('valid')}", text.name)
    return HeldOutDocuments(text, held_D, learned_D)
