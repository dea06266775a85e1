"""Standard input as lines of bytes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from regard.system import disk
from regard.system.errors import RegardError


def _stdin(number: int) -> bytes:
    with disk.naming("stdin"):
        return os.read(number, 1 << 16)


def raw_lines() -> Iterator[bytes]:
    """Stdin's lines as bytes, each with its line feed.

    Read from the descriptor itself: a thread that waits inside Python's own stdin would make the exit fail.

    Raises:
        RegardError: a line is longer than any text; with its number.
    """
    from regard.text.lines import LONGEST, TOO_LONG

    try:
        number = sys.stdin.fileno()
    except (OSError, ValueError):  # a stand-in without a descriptor
        yield from sys.stdin.buffer
        return
    begun: list[bytes] = []
    size, line = 0, 1
    while block := _stdin(number):
        first, *rest = block.split(b"\n")
        begun.append(first)
        if (size := size + len(first)) > LONGEST:
            raise RegardError(TOO_LONG, f"stdin:{line}")
        for following in rest:
            yield b"".join(begun) + b"\n"
            begun, size, line = [following], len(following), line + 1
    if last := b"".join(begun):
        yield last
