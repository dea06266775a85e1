"""Calls into libraries that wait for other processes, and hear no signal meanwhile, made so that signals are heard."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread
from typing import TypeVar

Result = TypeVar("Result")
_PAUSE = 0.02
"""Seconds between two looks whether the call has ended."""


def interruptible(
    call: Callable[[], Result], look: Callable[[float], None] = lambda waited: None, most: float | None = None
) -> Result:
    """What a call gives, which is made in a thread of its own; where it is left, the thread waits on and ends with us.

    Args:
        call: waits where Python does not hear signals.
        look: called at every look with the seconds waited; what it raises ends the wait.
        most: seconds to wait.

    Raises:
        TimeoutError: the call took longer.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:  # it is raised where the result is waited for
            errors.append(error)

    thread, began = Thread(target=work, daemon=True), time.monotonic()
    thread.start()
    while thread.is_alive():
        waited = time.monotonic() - began
        if most is not None and waited > most:
            raise TimeoutError
        look(waited)
        thread.join(_PAUSE)
    if errors:
        raise errors[0]
    return results[0]
