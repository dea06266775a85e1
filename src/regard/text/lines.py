"""Line reader for text files: line feeds only; plain or gz, xz, zst; streamed in bounded memory, so of any size."""

from __future__ import annotations

import gzip
import io
import itertools
import lzma
import os
import re
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from regard.system.errors import RegardError
from regard.text.counts import counted

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIECE = 1 << 16
"""Packed bytes read at once."""
MEMORY = 256 << 20
"""Bytes that unpacking may take; ``xz -9`` asks for 65 MiB, and a file may claim to need 4 GiB."""
BOM = b"\xef\xbb\xbf"
MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\x00", ".zst": b"\x28\xb5\x2f\xfd"}
FOREIGN = {
    b"BZh": "a bzip2 file; use gz, xz or zst",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\xff\xfe\x00\x00": "UTF-32 text; convert it with `iconv -f UTF-32 -t UTF-8`",
    b"\x00\x00\xfe\xff": "UTF-32 text; convert it with `iconv -f UTF-32 -t UTF-8`",
    b"\xff\xfe": "UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8`",
    b"\xfe\xff": "UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8`",
    b"%PDF": "a PDF; its text must be taken out first",
    b"\x7fELF": "a program",
    b"\x89PNG": "a picture",
}
HEAD = 1 << 16
LONGEST = 16 << 20
"""Bytes of a line: it stands in memory whole, and a few bytes of a packed file can make any number of them."""
TOO_LONG = f"the line is longer than {LONGEST >> 20} MiB; is this a text, a line each?"
LONE_RETURNS = "lines end with lone carriage returns; convert the file with `tr '\\r' '\\n' < OLD > NEW`"
_SURROGATE = re.compile("[\ud800-\udfff]")


class TooLong(Exception):
    """A line has more bytes than it may have."""


class _Stream(io.RawIOBase):
    """A stream to read from, by :meth:`take`."""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer; how many bytes of it."""
        view = memoryview(buffer)
        found = self.take(len(view))
        view[: len(found)] = found
        return len(found)

    @abstractmethod
    def take(self, most: int) -> bytes:
        """Some of the next bytes; none at the end."""


class BoundedReader(_Stream):
    """The same bytes, up to the first line that is too long.

    Only the last line feed of each block is searched for, so lines cost no more than without it.

    Args:
        read: gives some of the next bytes, none at the end.
        longest: bytes of a line at most, its line feed not counted.
    """

    def __init__(self, read: Callable[[int], bytes | None], longest: int) -> None:
        self._read, self._longest, self._begun = read, longest, 0

    def take(self, most: int) -> bytes:
        """Some of the next bytes.

        Raises:
            TooLong: a line without an end has more bytes than it may have.
        """
        block = self._read(most) or b""
        first, count = block.find(b"\n"), len(block)
        if self._begun + (count if first < 0 else first) > self._longest:
            raise TooLong
        self._begun = self._begun + count if first < 0 else count - block.rfind(b"\n") - 1
        return block


class Xz(_Stream):
    """The bytes of all streams of an xz file, concatenated; trailing data is ignored.

    Args:
        packed: the file.
    """

    def __init__(self, packed: io.BufferedReader) -> None:
        self._packed, self._held = packed, b""
        self._unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)

    def take(self, most: int) -> bytes:
        """Some of the next bytes.

        Raises:
            EOFError: the file is cut off.
            lzma.LZMAError: it is damaged, or needs more than :data:`MEMORY`.
        """
        found = b""
        while not found and (not self._unpacker.eof or self._another()):
            piece, self._held = self._held, b""
            if not piece and self._unpacker.needs_input and not (piece := self._packed.read(PIECE)):
                raise EOFError("it ends before its end was marked")
            found = self._unpacker.decompress(piece, most)
        return found

    def _another(self) -> bool:
        """Advance to the next stream, skipping zero padding; whether there is one."""
        rest = self._unpacker.unused_data
        while not (rest := rest.lstrip(b"\0")):
            if not (rest := self._packed.read(PIECE)):
                return False
        self._unpacker, self._held = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY), rest
        return rest.startswith(MAGIC[".xz"][: len(rest)])


class Zst(_Stream):
    """The bytes of all frames of a zst file, concatenated.

    Args:
        packed: the file.
    """

    def __init__(self, packed: io.BufferedReader) -> None:
        import zstandard  # not in every installation

        self._reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        self._fault = zstandard.ZstdError

    def take(self, most: int) -> bytes:
        """Some of the next bytes.

        Raises:
            EOFError: the file is damaged, or cut off.
        """
        try:
            return self._reader.read(most)
        except self._fault as error:
            raise EOFError(str(error)) from None


FAULTS = (EOFError, OSError, MemoryError, TooLong, lzma.LZMAError, zlib.error)
"""Exceptions that reading a file may raise."""


@dataclass
class InvalidLines:
    """Lines (from 1) that were not valid UTF-8: their count, and the numbers of the first few.

    ``path`` is the file, where there is one. ``read`` is how many lines there were, once reading has ended or broken
    off; before, the last that was noted.
    """

    path: Path | None = field(default=None, compare=False)
    kept: int = 10
    read: int = field(default=0, compare=False)
    invalid: int = 0
    invalid_lines: list[int] = field(default_factory=list)

    @property
    def message(self) -> str:
        """How many lines of the file there were, from which on, and what became of them."""
        be = "is" if self.invalid == 1 else "are"
        said = f"{counted(self.invalid, 'line')} {be} not valid UTF-8; bytes became U+FFFD"
        return f"{self.path}:{self.invalid_lines[0]}: {said}"

    def add(self, invalid: int, invalid_lines: Sequence[int], read: int) -> None:
        """Count what was noted of the next lines, the last of them being ``read``."""
        self.invalid, self.read = self.invalid + invalid, read
        self.invalid_lines += invalid_lines[: self.kept - len(self.invalid_lines)]

    def note(self, line: int) -> None:
        """Count one line that had bytes replaced."""
        self.add(1, [line], max(self.read, line))


def decode_lines(pieces: Iterable[bytes], notes: InvalidLines | None = None) -> Iterator[str]:
    """Byte lines, whole and any number at a time (a binary stream gives one), as text.

    BOM, line end and the carriage return before it are removed. Invalid UTF-8 becomes U+FFFD and is noted.
    """
    notes, number = notes or InvalidLines(), 0
    try:
        for piece in without_mark(pieces):
            for line in decode_piece(piece, number, notes):
                number += 1
                yield line
    finally:
        notes.read = number


def without_mark(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same without a leading BOM; a file of nothing but a BOM has no line."""
    rest = iter(pieces)
    for piece in rest:
        if piece := piece.removeprefix(BOM):
            yield piece
        break
    yield from rest


def decode_piece(piece: bytes, before: int, notes: InvalidLines) -> list[str]:
    """The lines of a piece that holds them whole; ``before`` is how many came before it."""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        mended = []
        for number, raw in enumerate(piece.removesuffix(b"\n").split(b"\n"), before + 1):
            mended.append(raw.decode(errors="replace"))
            if mended[-1].encode() != raw:
                notes.note(number)
        text = "\n".join([*mended, ""])
    found = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in found] if "\r" in text else found


def replace_surrogates(text: str) -> str:
    """``text`` without surrogates, which are no characters: pairs are joined, lone ones become U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def lines(path: Path | str, notes: InvalidLines | None = None) -> Iterator[str]:
    """The lines of a text file, plain or compressed (known by its first bytes).

    Raises:
        RegardError: the file is missing, a folder, unreadable, binary, or its compression breaks off (with the line);
            or a line has more than :data:`LONGEST` bytes.
    """
    return decode_lines(line_pieces(path), notes)


def matching_lines(
    left: Path | str, right: Path | str, notes: tuple[InvalidLines | None, InvalidLines | None] = (None, None)
) -> tuple[list[str], list[str]]:
    """The lines of two files that belong together line by line.

    Raises:
        RegardError: as :func:`lines`, or there are more in one.
    """
    lefts, rights = list(lines(left, notes[0])), list(lines(right, notes[1]))
    if len(lefts) != len(rights):
        message = f"has {counted(len(rights), 'line')}, but {left} has {len(lefts)}; they must match line by line"
        raise RegardError(message, str(right))
    return lefts, rights


def line_pieces(path: Path | str) -> Iterator[bytes]:
    """The bytes of a text file, decompressed, in pieces of whole lines: as they come, most of :data:`HEAD` bytes.

    Raises:
        RegardError: as :func:`lines`.
    """
    number = 0
    with open_text(path, LONGEST) as stream:
        try:
            for piece in whole_lines(stream):
                number += piece.count(b"\n")
                yield piece
        except FAULTS as error:
            raise RegardError(error_text(error, f" or cut off after line {number}"), f"{path}:{number + 1}") from None


def whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    """What a buffered stream gives, in pieces that end with a line; the last line may lack its end."""
    held: list[bytes] = []
    while piece := stream.read1(HEAD):  # type: ignore[attr-defined]
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join([*held, piece[:end]])
            held = []
        held.append(piece[end:])
    if rest := b"".join(held):
        yield rest


def row_lines(path: Path | str, notes: InvalidLines | None = None) -> Iterator[str]:
    """The lines of a file with a row, or a word, in each line; as :func:`lines`.

    Raises:
        RegardError: as :func:`lines`; or all of it is one line, as its lines end with lone carriage returns.
    """
    found = lines(path, notes)
    begun = list(itertools.islice(found, 2))
    if len(begun) == 1 and "\r" in begun[0]:
        raise RegardError(LONE_RETURNS, f"{path}:1")
    yield from begun
    yield from found


@contextmanager
def open_text(path: Path | str, longest: int | None = None) -> Iterator[BinaryIO]:
    """A buffered stream of a file's bytes, decompressed where they are compressed, looked at for being text.

    Args:
        path: the file; or a pipe, or a terminal.
        longest: bytes of a line at most; where one has more, reading raises a :class:`TooLong`.

    Raises:
        RegardError: as :func:`lines`.
    """
    with open_bytes(path, longest) as stream:
        try:
            head = stream.peek(HEAD)[:HEAD]
        except FAULTS as error:
            raise RegardError(error_text(error), f"{path}:1") from None
        _refuse_binary(head, str(path))
        yield cast(BinaryIO, stream)


@contextmanager
def open_bytes(path: Path | str, longest: int | None = None) -> Iterator[io.BufferedReader]:
    """As :func:`open_text`, in any encoding."""
    where, path = str(path), Path(path)
    _refuse_endless(path)
    try:
        plain = path.open("rb")
    except FileNotFoundError:
        raise RegardError("no such file", where) from None
    except (OSError, ValueError) as error:
        raise RegardError(f"cannot be read: {error}", where) from None
    with plain, _decompress(plain, path, longest) as stream:
        yield stream


def _refuse_endless(path: Path) -> None:
    """Refuse what is no text: folders, and devices, which may have no end; pipes and terminals have one."""
    if path.is_dir():
        raise RegardError("is a folder; a text file is needed", str(path))
    if path.is_block_device() or (path.is_char_device() and str(path.resolve()) != os.devnull):
        with path.open("rb") as stream:
            if not stream.isatty():
                raise RegardError("is a device; a text file is needed", str(path))


def error_text(error: Exception, more: str = "") -> str:
    """Message for a read error: of the system (has errno) or of a decompressor (has none)."""
    if isinstance(error, TooLong):
        return TOO_LONG
    if isinstance(error, MemoryError):
        return "there is not enough memory to read this line"
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be read: {error.strerror}"
    return f"the compressed file is damaged{more}: {error}"


def _decompress(plain: io.BufferedReader, path: Path, longest: int | None) -> io.BufferedReader:
    """The stream of a file's bytes, unpacked if its first bytes say that it is packed."""
    try:
        head = plain.peek(8)
    except OSError as error:
        raise RegardError(error_text(error), str(path)) from None
    kind = next((kind for kind, magic in MAGIC.items() if head.startswith(magic)), None)
    if kind is None and path.suffix in MAGIC:
        raise RegardError(f"is named {path.suffix} but is not such a file; was it cut off or renamed?", str(path))
    if kind is None:  # of a pipe what has come is given, though more would be taken
        return plain if longest is None else io.BufferedReader(BoundedReader(plain.read1, longest), HEAD)
    raw: gzip.GzipFile | _Stream
    raw = gzip.GzipFile(fileobj=plain) if kind == ".gz" else Xz(plain) if kind == ".xz" else Zst(plain)
    return io.BufferedReader(raw if longest is None else BoundedReader(raw.read, longest), HEAD)


def refuse_binary(path: Path) -> None:
    """Raise a RegardError for a file that is no text, such as a PDF; of one that cannot be read another says so."""
    with suppress(OSError), path.open("rb") as file:
        _refuse_binary(file.read(HEAD), str(path))


def _refuse_binary(head: bytes, where: str) -> None:
    for magic, what in FOREIGN.items():
        if head.startswith(magic):
            raise RegardError(f"is not UTF-8 text but {what}", where)
    zeros = head.count(0)
    if zeros * 10 > len(head) and zeros > 1:
        found = _wide_encoding(head)
        kind = (
            f"{found[:6]} text without a mark; convert it with `iconv -f {found} -t UTF-8`" if found else "binary data"
        )
        raise RegardError(f"is not UTF-8 text but {kind}", where)


def _wide_encoding(head: bytes) -> str | None:
    """The encoding of text of Latin letters with two or four bytes a character, by the places of their zeros."""
    zeros = [head[place::4].count(0) for place in range(4)]
    few = max(zeros) / 20
    filled = [place for place in range(4) if zeros[place] < few]
    names = {(0,): "UTF-32LE", (3,): "UTF-32BE", (0, 2): "UTF-16LE", (1, 3): "UTF-16BE"}
    return names.get(tuple(filled))
