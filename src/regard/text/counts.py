"""Counts and durations in sentences for people."""

from __future__ import annotations

import re

_CHOICE = re.compile(r"\[([^\[\]|]*)\|([^\[\]|]*)\]")


def counted(count: int, noun: str, several: str = "") -> str:
    """``1 pair``, ``2,000 pairs``.

    Args:
        count: how many.
        noun: for one; ``several``: for more, where it is not the noun and an s.
    """
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def agreeing(sentence: str, count: int) -> str:
    """A sentence with one of each ``[has|have]``: the first for a single thing, the second for others."""
    return _CHOICE.sub(lambda found: found[1 if count == 1 else 2], sentence)


def clock(seconds: float) -> str:
    """A duration as people read it: ``45 s``, ``3:20``, ``1:02:09``."""
    seconds = max(round(seconds), 0)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
