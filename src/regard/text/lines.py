"""Lines of text files: only a line feed ends a line; plain or gz, xz, zst; streamed, so that no file is too large."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from regard.errors import RegardError

BOM = b"\xef\xbb\xbf"
MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\x00", ".zst": b"\x28\xb5\x2f\xfd"}
FOREIGN = {
    b"BZh": "a bzip2 file; use gz, xz or zst",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\xff\xfe": "UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8`",
    b"\xfe\xff": "UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8`",
    b"%PDF": "a PDF; its text must be taken out first",
    b"\x7fELF": "a program",
    b"\x89PNG": "a picture",
}
HEAD = 1 << 16


@dataclass
class Notes:
    """What was mended while reading: the numbers of lines (from 1) that were not valid UTF-8, the first few kept."""

    kept: int = 10
    invalid: int = 0
    invalid_lines: list[int] = field(default_factory=list)

    def note(self, line: int) -> None:
        """Count one line that had bytes replaced."""
        self.invalid += 1
        if len(self.invalid_lines) < self.kept:
            self.invalid_lines.append(line)


def decoded(raw_lines: Iterable[bytes], notes: Notes | None = None) -> Iterator[str]:
    """Byte lines (a binary stream) as text: BOM, line end and the carriage return before it removed.

    Invalid UTF-8 becomes U+FFFD and is noted.
    """
    for number, raw in enumerate(raw_lines, 1):
        if number == 1:
            raw = raw.removeprefix(BOM)
            if not raw:  # a file of nothing but a BOM has no line
                continue
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield raw.decode()
        except UnicodeDecodeError:
            if notes is not None:
                notes.note(number)
            yield raw.decode(errors="replace")


def lines(path: Path | str, notes: Notes | None = None) -> Iterator[str]:
    """The lines of a text file, plain or compressed (known by its first bytes).

    Raises:
        RegardError: the file is missing, a folder, unreadable, binary, or its compression breaks off (with the line).
    """
    where, number = str(path), 0
    with opened(path) as stream:
        try:
            for text in decoded(stream, notes):
                number += 1
                yield text
        except (EOFError, OSError, lzma.LZMAError, zlib.error, _zstd_error()) as error:
            raise RegardError(_broken(error, f" or cut off after line {number}"), f"{where}:{number + 1}") from None


@contextmanager
def opened(path: Path | str) -> Iterator[BinaryIO]:
    """A buffered stream of a file's bytes, decompressed where they are compressed, looked at for being text.

    Raises:
        RegardError: as :func:`lines`.
    """
    where, path = str(path), Path(path)
    if path.is_dir():
        raise RegardError("is a folder; a text file is needed", where)
    try:
        plain = path.open("rb")
    except FileNotFoundError:
        raise RegardError("no such file", where) from None
    except (OSError, ValueError) as error:
        raise RegardError(f"cannot be read: {error}", where) from None
    with plain, _decompressed(plain, _compression(plain, path)) as stream:
        try:
            head = stream.peek(HEAD)[:HEAD]
        except (EOFError, OSError, lzma.LZMAError, zlib.error, _zstd_error()) as error:
            raise RegardError(_broken(error), f"{where}:1") from None
        _refuse_binary(head, where)
        yield cast(BinaryIO, stream)


def _broken(error: Exception, more: str = "") -> str:
    """What went wrong while reading: the system gives its errors a number, a decompressor does not."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be read: {error.strerror}"
    return f"the compressed file is damaged{more}: {error}"


def _compression(plain: io.BufferedReader, path: Path) -> str | None:
    try:
        head = plain.peek(8)
    except OSError as error:
        raise RegardError(_broken(error), str(path)) from None
    for kind, magic in MAGIC.items():
        if head.startswith(magic):
            return kind
    if path.suffix in MAGIC:
        raise RegardError(f"is named {path.suffix} but is not such a file; was it cut off or renamed?", str(path))
    return None


def _decompressed(plain: io.BufferedReader, kind: str | None) -> io.BufferedReader:
    if kind is None:
        return plain
    if kind == ".gz":
        return io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=plain)), HEAD)
    if kind == ".xz":
        return io.BufferedReader(cast(io.RawIOBase, lzma.LZMAFile(plain)), HEAD)
    import zstandard

    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(plain, read_across_frames=True), HEAD)


def _zstd_error() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError


def _refuse_binary(head: bytes, where: str) -> None:
    for magic, what in FOREIGN.items():
        if head.startswith(magic):
            raise RegardError(f"is not UTF-8 text but {what}", where)
    zeros = head.count(0)
    if zeros * 10 > len(head) and zeros > 1:
        utf16 = "UTF-16 text without a mark; convert it with `iconv -f UTF-16LE -t UTF-8`"
        kind = utf16 if _paired(head) else "binary data"
        raise RegardError(f"is not UTF-8 text but {kind}", where)


def _paired(head: bytes) -> bool:
    """Whether zeros stand at every second byte only, as in UTF-16 text of Latin letters."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    return min(even, odd) * 20 < max(even, odd)
