"""What every pass over a corpus uses: its progress callback, and a hash by which equal texts are found."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

Progress = Callable[[str, int], None]
"""Called now and then with what is being done and how many pairs of it are."""

EVERY = 10_000


def no_progress(stage: str, pairs: int) -> None:
    """Progress callback that does nothing."""


def text_hash(text: str) -> int:
    """A hash of a text, ignoring case and surrounding white space."""
    return int.from_bytes(hashlib.blake2b(text.strip().casefold().encode(), digest_size=8).digest(), "little")


EMPTY_HASH = text_hash("")
