"""Threads that are gone when their work is done."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

_LONGEST, _LOOK = 1.0, 0.0005
"""Seconds to wait at most, and between two looks."""


@contextmanager
def ended_threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads that have ended for the system too, not for Python alone, once it is left.

    A thread that is ending frees what libraries keep for it, under their locks. A copy that a process makes of itself
    (``forks``) at that moment would wait for these locks without end. Elsewhere than on Linux nothing is waited for.
    """
    ids: list[int] = []
    with ThreadPoolExecutor(count, initializer=lambda: ids.append(threading.get_native_id())) as pool:
        yield pool
    latest = time.monotonic() + _LONGEST
    while any(os.path.exists(f"/proc/self/task/{id}") for id in ids) and time.monotonic() < latest:
        time.sleep(_LOOK)
