"""Sentences about single texts: warnings, or collected, for warnings are those of all threads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)


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
