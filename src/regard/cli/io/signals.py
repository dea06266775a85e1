"""Signal handling: the first signal requests a stop, the second ends the process."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from regard.cli.io.terminal import say_at_once
from regard.system.errors import Stopped
from regard.system.interrupts import SIGNALS, end

EARLY = "stopped before the first step; rerun the same command to resume"
ASKED = "stopping: saving after this step (a second signal ends it at once)"
"""What is said to the first signal: before there is anything to save, and later."""


class Stop:
    """As a context manager: the first signal sets a flag, read by calling; the second ends the process at once.

    Before anybody has asked, no step was made that could be saved: then the first ends it too, as stopped. Ending at
    once is safe: whatever is being written is not yet in its place.

    Args:
        early: what is said where nothing can be saved yet.
        asked: what is said while the last step is made.
    """

    def __init__(self, early: str = EARLY, asked: str = ASKED) -> None:
        self._early, self._said = early, asked
        self.asked = False
        self.polled = False
        self._former: dict[int, Any] = {}

    def __call__(self) -> bool:
        self.polled = True
        return self.asked

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            # A shell has its background jobs ignore SIGINT.
            heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            self._former = {number: signal.signal(number, self._handle) for number in heard}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.asked = True
        if not self.polled:
            say_at_once(self._early)
            end(SystemExit(Stopped.exit_code), frame, Stopped.exit_code)
        say_at_once(self._said)
