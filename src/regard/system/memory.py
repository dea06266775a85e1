"""How this process treats the memory that it frees."""

from __future__ import annotations

import contextlib
import ctypes
import mmap


def keep_pages() -> None:
    """Let this process keep the memory it frees: every step asks for the same large pieces again.

    On Linux with glibc each piece would be fetched from the system again; elsewhere nothing happens.
    """
    threshold, trim = -3, -1  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        for option in (threshold, trim):
            library.mallopt(option, 2**31 - 1)


def lazy_pages(size: int) -> mmap.mmap | bytearray:
    """Zeros straight from the system: a page takes memory once it is written, and is given back when it is freed.

    Memory that this process had before is in use whole, and so would the part of it that nobody writes be.
    """
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except AttributeError:  # Windows
        return bytearray(size)
