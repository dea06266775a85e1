"""This machine: the name of its processor, the cores a thread may use, and the memory that this process frees."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import platform
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
UNKNOWN = -1
"""Number of a core that the system does not tell."""


@functools.cache
def fields(cpuinfo: Path = CPUINFO) -> Mapping[str, str]:
    """What the system says of the first core, by name; empty where it says nothing."""
    found: dict[str, str] = {}
    with suppress(OSError):
        for line in cpuinfo.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            found.setdefault(name.strip(), value.strip())
    return found


def name(cpuinfo: Path = CPUINFO) -> str:
    """The processor's own name."""
    return fields(cpuinfo).get("model name") or platform.processor() or platform.machine()


def kind(cpuinfo: Path = CPUINFO) -> str:
    """Its name with family and model, since names alone are often cut short, e.g. to ``AMD EPYC``."""
    found = fields(cpuinfo)
    known = "cpu family" in found and "model" in found
    return f"{name(cpuinfo)} (family {found['cpu family']}, model {found['model']})" if known else name(cpuinfo)


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def current_core() -> int:
    """Number of the core that this thread runs on; :data:`UNKNOWN` where the system does not tell."""
    try:
        return int(_library().sched_getcpu())
    except (OSError, AttributeError):
        return UNKNOWN


def allowed_cores() -> set[int]:
    """Numbers of the cores that this thread may use; none where the system does not tell."""
    with suppress(OSError, AttributeError):
        return os.sched_getaffinity(0)
    return set()


def usable_cores() -> int:
    """Cores that this process may use, whatever they are worth."""
    return len(allowed_cores()) or os.cpu_count() or 1


def allow_cores(cores: Collection[int], process: int = 0) -> None:
    """Let a thread use these cores only; nothing happens where the system does not allow it, or there are none.

    Args:
        cores: their numbers.
        process: number of a process, whose first thread is meant; 0: this thread.
    """
    if cores:
        with suppress(OSError, AttributeError):
            os.sched_setaffinity(process, cores)


def keep_pages() -> None:
    """Let this process keep the memory it frees: every step asks for the same large pieces again.

    On Linux with glibc each piece would be fetched from the system again; elsewhere nothing happens.
    """
    threshold, trim = -3, -1  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        for option in (threshold, trim):
            library.mallopt(option, 2**31 - 1)


def share_arena() -> None:
    """Let threads that begin from now on take memory where others freed it: many of them would keep much for each.

    On Linux with glibc; elsewhere nothing happens.
    """
    arenas = -8  # M_ARENA_MAX of malloc.h
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").mallopt(arenas, 1)


def trim_memory() -> None:
    """Give freed memory back to the system, also where it lies between memory in use.

    On Linux with glibc; elsewhere nothing happens.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def lazy_pages(size: int) -> mmap.mmap | bytearray:
    """Zeros straight from the system: a page takes memory once it is written, and is given back when it is freed.

    Memory that this process had before is in use whole, and so would the part of it that nobody writes be.
    """
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except AttributeError:  # Windows
        return bytearray(size)
