"""Threads that are gone when their work is done, and calls made in one so that signals are heard meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")
_LONGEST, _LOOK = 1.0, 0.0005
"""Seconds to wait for the end of threads at most, and between two looks."""
_PAUSE = 0.02
"""Seconds between two looks whether a call has ended."""


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


def interruptible(
    call: Callable[[], Result], look: Callable[[float], None] = lambda waited: None, most: float | None = None
) -> Result:
    """What a call gives, which is made in a thread of its own; where it is left, the thread waits on and ends with us.

    So signals are heard while a library waits for other processes.

    Args:
        call: waits where Python does not hear signals.
        look: called at every look with the seconds waited; what it raises ends the wait.
        most: seconds to wait.

    Raises:
        TimeoutError: the call took longer.
    """
    found = Future[Result]()

    def work() -> None:
        try:
            found.set_result(call())
        except BaseException as error:  # it is raised where the result is waited for
            found.set_exception(error)

    thread, began = threading.Thread(target=work, daemon=True), time.monotonic()
    thread.start()
    while thread.is_alive():
        waited = time.monotonic() - began
        if most is not None and waited > most:
            raise TimeoutError
        look(waited)
        thread.join(_PAUSE)
    return found.result()
