"""The exceptions of Regard: a message, where it applies, and what to do about it."""

from __future__ import annotations

LONGEST = 2000
"""Longest message, in characters; longer ones come only from crafted files."""


class RegardError(Exception):
    """An error the user can fix; its text is one clear sentence (or a few), never a stack trace.

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
