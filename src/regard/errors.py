"""The one error of Regard: what is wrong, where, and what to do about it."""

from __future__ import annotations

LONGEST = 2000
"""Characters of a sentence; more come only from a file that somebody made to be tiresome."""


class RegardError(Exception):
    """Something the person can mend; its text is one clear sentence (or a few), never a stack trace.

    Args:
        message: what is wrong and what to do.
        where: the file, line, option or field it is about, e.g. ``"train.de:17"`` or ``"model.d_model"``.
    """

    exit_code = 1

    def __init__(self, message: str, where: str | None = None) -> None:
        message = message if len(message) <= LONGEST else f"{message[:LONGEST]} …"
        super().__init__(message)
        self.message = message
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class UsageError(RegardError):
    """The command, option or recipe field asked for does not exist or does not fit."""

    exit_code = 2


class Damaged(RegardError):
    """A file is not what its manifest or its own sha256 says; ``where`` names it."""


class NoValidCheckpoint(RegardError):
    """Checkpoints exist but none is whole: never start again silently."""

    exit_code = 3


class Stopped(RegardError):
    """A signal asked to stop; everything is saved and the same command goes on from here."""

    exit_code = 75


class Diverged(RegardError):
    """Numbers went bad too often for training to go on."""

    exit_code = 76
