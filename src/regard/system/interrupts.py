"""Handlers of SIGINT, SIGTERM and SIGUSR1: installed before large imports, ignored once the command is done.

Imports only the smallest standard library modules: the handlers must be installed as early as Python allows.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # as typing's own, which takes ten milliseconds to load
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import NoReturn

TRAININGS = ("train", "demo", "compare")
"""Commands that can be stopped at any moment and resume when rerun."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""Those that ask a training to stop; another command is interrupted by the first alone, and ended by the others."""
STOPPED, INTERRUPTED = 75, 130
"""Exit codes: stopped, rerun the same command; and interrupted, as in every shell."""
NOTHING_LOST = "stopped; nothing is lost: rerun the same command"
SHOW_CURSOR = b"\x1b[?25h"
"""To a terminal on which a bar may have hidden it."""
_asked: list[int] = []
"""The exit code that a signal asked for, once :func:`end` raised."""


def run_command(command: Callable[[], int]) -> int:
    """Run the command of this process: no signal ends it with a traceback, nor a training with another code than 75.

    The first signal ends a training, until a :class:`~regard.cli.io.terminal.Stop` takes them over; of another command
    SIGINT is a KeyboardInterrupt. Once all is done they are ignored: they could only disturb Python's tidying up.

    Args:
        command: gives the exit code.
    """
    training = sys.argv[1:2] != [] and sys.argv[1] in TRAININGS
    numbers = [n for n in (SIGNALS if training else SIGNALS[:1]) if signal.getsignal(n) is not signal.SIG_IGN]
    try:
        sys.unraisablehook, sys.excepthook = _unraisable, _uncaught
        for number in numbers:
            signal.signal(number, _stop if training else _interrupt)
        return command()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)


class InterruptHandler:
    """As a context manager: Ctrl-C asks a training in Python for a stop, and the second time ends it as ever.

    Before the training has asked, there is nothing to save: then the first is a KeyboardInterrupt, too.

    Args:
        should_stop: another reason to stop.
    """

    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop
        self._asked = self._polled = self._heard = False

    def __call__(self) -> bool:
        self._polled = True
        return self._asked or self._should_stop()

    def __enter__(self) -> InterruptHandler:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                signal.signal(signal.SIGINT, self._handle)
                self._heard = True
            except ValueError:  # not in the main thread, which alone hears of signals
                pass
        return self

    def __exit__(self, *error: object) -> None:
        if self._heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._asked or not self._polled:
            raise KeyboardInterrupt
        self._asked = True
        os.write(2, b"stopping: saving after this step (a second interrupt ends it at once)\n")


def end(error: BaseException, frame: FrameType | None, code: int) -> NoReturn:
    """End the command from a signal's handler: by raising ``error``, so that what is open is closed.

    While a module is loaded nothing is open, and what is raised there may be caught, or replaced by another error:
    then the process ends at once. Elsewhere a library in native code may put an error of its own in its place (pydantic
    does, while it builds a section), so the code is noted for :func:`asked_code`.

    Args:
        error: what ends the command.
        frame: where the signal came.
        code: what the process exits with.
    """
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    if frame is None:  # no module is being loaded
        _asked[:] = [code]
        raise error
    if os.isatty(2):
        os.write(2, SHOW_CURSOR)
    os._exit(code)


def asked_code() -> int | None:
    """The exit code that a signal asked for, whatever error it became on its way; ``None`` where none came."""
    return _asked[0] if _asked else None


def forget_asked() -> None:
    """Begin a command: what a signal asked for before it was of another."""
    _asked.clear()


def _stop(number: int, frame: FrameType | None) -> None:
    os.write(2, f"regard: {NOTHING_LOST}\n".encode())
    os._exit(STOPPED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    end(KeyboardInterrupt(), frame, INTERRUPTED)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What ends the process: Python itself would show a traceback of an interrupt too."""
    if isinstance(error, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__excepthook__(kind, error, trace)


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    """Handle an exception in a finaliser, where Python ignores it: a requested end ends the command there too."""
    if isinstance(found.exc_value, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    if isinstance(found.exc_value, SystemExit) and isinstance(found.exc_value.code, int):
        os._exit(found.exc_value.code)
    sys.__unraisablehook__(found)
