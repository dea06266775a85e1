"""The exceptions of Regard: a message, where it applies, and what to do about it; notices, which end nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LONGEST = 2000
"""Longest message, in characters; longer ones come only from crafted files."""
OPTIONS = {"start_from": "from", "from_": "from", "settings": "set", "weights": "weight"}
"""The arguments whose options of the command line are called otherwise."""


class Option(str):
    """An argument of a function, which is an option of a command; each of these two fronts has its own spelling.

    As the place of an error it is ``columns``, or ``--columns``; within a sentence ``columns='1,2'``, or
    ``--columns 1,2``.

    Args:
        name: the function's.
        value: given to it; in capitals it stands for one, and ``True`` for a flag.
    """

    dashes = False
    """Whether this process runs a command."""
    name: str
    value: object

    def __new__(cls, name: str, value: object = "") -> Option:
        made = super().__new__(cls, f"{name} {value}".rstrip())
        made.name, made.value = name, value
        return made

    def __str__(self) -> str:
        return self._option if self.dashes else super().__str__()

    def __format__(self, spec: str) -> str:
        stands = isinstance(self.value, str) and (not self.value or self.value.isupper())
        return self._option if self.dashes else f"{self.name}={self.value if stands else repr(self.value)}"

    @property
    def _option(self) -> str:
        import shlex  # the handlers of signals stand before it is loaded

        several = self.value if isinstance(self.value, list) else [] if self.value in ("", True) else [self.value]
        return shlex.join([option_name(self.name), *map(str, several)])


def option_name(name: str) -> str:
    """The option of the command line that an argument is."""
    return "--" + OPTIONS.get(name, name).replace("_", "-")


class RegardError(Exception):
    """An error the user can fix; its text is one clear sentence (or a few), never a stack trace.

    Args:
        message: what is wrong and what to do.
        where: the file, line, argument or field it is about, e.g. ``"train.de:17"`` or ``Option("columns")``.
    """

    exit_code = 1

    def __init__(self, message: str, where: str | None = None) -> None:
        message = message if len(message) <= LONGEST else f"{message[:LONGEST]} …"
        super().__init__(message)
        self.message = message
        self.where = where

    def __str__(self) -> str:
        return f"{self.where!s}: {self.message}" if self.where else self.message


def written_by_newer(found: int, read: int) -> str:
    """What to say of a file in a format above the newest that is read here."""
    shown = found if found < 10**9 else "of more than nine digits"
    return f"format {shown} was written by a newer Regard; this one reads format {read}"


class UsageError(RegardError):
    """The command, option or recipe field asked for does not exist or does not fit."""

    exit_code = 2


class Damaged(RegardError):
    """A file does not match its manifest or its own sha256; ``where`` names it."""


class NoValidCheckpoint(RegardError):
    """Checkpoints exist but none is valid: never restart silently."""

    exit_code = 3


class Stopped(RegardError):
    """Stopped by a signal; everything is saved and the same command resumes."""

    exit_code = 75


class Diverged(RegardError):
    """The loss or weights were not finite too often for training to continue."""

    exit_code = 76


_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)
"""What is told where somebody collects it: warnings are those of all threads."""


def notice(sentence: str, stacklevel: int = 2) -> None:
    """Tell a sentence: to whom collects in this context, else as a warning."""
    collected = _COLLECTED.get()
    if collected is None:
        warnings.warn(sentence, stacklevel=stacklevel + 1)
    else:
        collected.append(sentence)


@contextmanager
def collect_notices() -> Iterator[list[str]]:
    """What is told while the context is open, in this thread alone."""
    collected = list[str]()
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)
