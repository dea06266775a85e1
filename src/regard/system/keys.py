"""Keyed random numbers: every random choice is a pure function of (seed, purpose, numbers), never of history.

No generator state is saved; resume is exact because the same key gives the same bits.
"""

from __future__ import annotations

import hashlib

import numpy as np


def key(seed: int, purpose: str, *numbers: int) -> int:
    """A 64-bit key for one purpose, e.g. ``key(seed, "dropout", step, micro_batch)``."""
    text = "/".join([str(seed), purpose, *map(str, numbers)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """A NumPy generator seeded by :func:`key`; the same key gives the same stream on every machine."""
    return np.random.Generator(np.random.PCG64(key(seed, purpose, *numbers)))
