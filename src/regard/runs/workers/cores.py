"""How many processes this machine can feed: cores that compute side by side, measured and not counted.

Two threads of one core, and cores that others keep busy, look like cores to the system.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import torch

from regard.system.cores import allowed_cores

_ROUNDS, _SIZE, _PRODUCTS = 5, 384, 8
"""Best of so many rounds, each of so many products of square matrices: some milliseconds."""
_WORTH = 1.5
"""Twice as many processes must do this much more than half as many."""


def usable_cores() -> int:
    """Cores that this process may use, whatever they are worth."""
    return len(allowed_cores()) or os.cpu_count() or 1


def independent_cores(most: int) -> int:
    """How many cores compute side by side, a power of two, at most ``most``; measured in about a tenth of a second."""
    most = min(most, usable_cores())
    found, alone = 1, _seconds(1) if most > 1 else 0.0
    while 2 * found <= most and 2 * alone >= _WORTH * (together := _seconds(2 * found)):
        found, alone = 2 * found, together
    return found


def _seconds(count: int) -> float:
    """The least seconds in which each of so many threads makes the same products at the same time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    matrices = [torch.ones(_SIZE, _SIZE) for _ in range(count)]

    def work(matrix: torch.Tensor) -> None:
        torch.set_num_threads(1)
        for _ in range(_PRODUCTS):
            torch.mm(matrix, matrix)

    best = float("inf")
    try:
        with ThreadPoolExecutor(count) as pool:
            for _ in range(_ROUNDS + 1):  # the first round starts the threads
                began = time.perf_counter()
                list(pool.map(work, matrices))
                best = min(best, time.perf_counter() - began)
    finally:
        torch.set_num_threads(threads)
    return best
