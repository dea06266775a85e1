"""Which core of the processor a thread computes on."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection
from contextlib import suppress
from functools import cache

UNKNOWN = -1
"""Number of a core that the system does not tell."""


@cache
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
