"""Streaming decompression in bounded memory, safe against decompression bombs."""

from __future__ import annotations

import io
import lzma
from typing import Any

PIECE = 1 << 16
"""Packed bytes read at once."""
MEMORY = 256 << 20
"""Bytes that unpacking may take; ``xz -9`` asks for 65 MiB, and a file may claim to need 4 GiB."""


MAGIC = b"\xfd7zXZ\x00"


class TooLong(Exception):
    """A line has more bytes than it may have."""


class BoundedReader(io.RawIOBase):
    """The same bytes, up to the first line that is too long.

    Only the last line feed of each block is searched for, so lines cost no more than without it.

    Args:
        raw: where the bytes come from.
        longest: bytes of a line at most, its line feed not counted.
    """

    def __init__(self, raw: Any, longest: int) -> None:
        # Of a pipe what has come is given, though more would be taken.
        self._read = raw.read1 if isinstance(raw, io.BufferedReader) else raw.read
        self._longest, self._begun = longest, 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; how many bytes of it.

        Raises:
            TooLong: a line without an end has more bytes than it may have.
        """
        block: bytes = self._read(len(buffer))
        buffer[: len(block)] = block
        first, count = block.find(b"\n"), len(block)
        if self._begun + (count if first < 0 else first) > self._longest:
            raise TooLong
        self._begun = self._begun + count if first < 0 else count - block.rfind(b"\n") - 1
        return count


class Xz(io.RawIOBase):
    """The bytes of all streams of an xz file, concatenated; trailing data is ignored.

    Args:
        packed: the file.
    """

    def __init__(self, packed: io.BufferedReader) -> None:
        self._packed, self._held = packed, b""
        self._unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; how many bytes of it.

        Raises:
            EOFError: the file is cut off.
            lzma.LZMAError: it is damaged, or needs more than :data:`MEMORY`.
        """
        found = b""
        while not found and (not self._unpacker.eof or self._another()):
            piece, self._held = self._held, b""
            if not piece and self._unpacker.needs_input and not (piece := self._packed.read(PIECE)):
                raise EOFError("it ends before its end was marked")
            found = self._unpacker.decompress(piece, len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def _another(self) -> bool:
        """Advance to the next stream, skipping zero padding; whether there is one."""
        rest = self._unpacker.unused_data
        while not (rest := rest.lstrip(b"\0")):
            if not (rest := self._packed.read(PIECE)):
                return False
        self._unpacker, self._held = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY), rest
        return rest.startswith(MAGIC[: len(rest)])
