"""How many processes this machine can feed: cores that compute side by side, measured and not counted.

Two threads of one core, and cores that others keep busy, look like cores to the system.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from regard import kernels
from regard.system.processor import usable_cores
from regard.system.threads import ended_threads

_ROUNDS, _SIZE, _PRODUCTS = 5, 384, 8
"""Best of so many rounds, each of so many products of square matrices: some milliseconds."""
_WORTH = 1.5
"""Twice as many processes must do this much more than half as many."""
_PAUSE = 0.2
"""Seconds between two measurements."""


def useful_processes(most: int, tries: int = 1) -> int:
    """How many processes to start, a power of two, at most ``most``.

    Two where there are two cores, whoever else uses them: beside a busy program two get two thirds of each, one gets no
    more than one. More, where as many cores compute side by side.

    Args:
        most: that there is work for.
        tries: measurements, as of :func:`independent_cores`.
    """
    two = min(2, most, usable_cores())
    return two if min(most, usable_cores()) <= 2 else max(two, independent_cores(most, tries))


def independent_cores(most: int, tries: int = 1) -> int:
    """How many cores compute side by side, a power of two, at most ``most``; measured in about a tenth of a second.

    Args:
        tries: measurements at most, for work that lasts: another program can keep a core busy during one of them.
            The largest count of them is taken.
    """
    most = min(most, usable_cores())
    found = _count(most)
    for _ in range(tries - 1):
        if 2 * found > most:
            break
        time.sleep(_PAUSE)
        found = max(found, _count(most))
    return found


def _count(most: int) -> int:
    found, alone = 1, _seconds(1) if most > 1 else 0.0
    while 2 * found <= most and 2 * alone >= _WORTH * (together := _seconds(2 * found)):
        found, alone = 2 * found, together
    return found


def _seconds(count: int) -> float:
    """The least seconds in which each of so many threads makes the same products at the same time."""
    with _products(count) as products:

        def work(place: int) -> None:
            for _ in range(_PRODUCTS):
                products[place]()

        best = float("inf")
        with ended_threads(count) as pool:
            for _ in range(_ROUNDS + 1):  # the first round starts the threads
                began = time.perf_counter()
                list(pool.map(work, range(count)))
                best = min(best, time.perf_counter() - began)
        return best


@contextmanager
def _products(count: int) -> Iterator[list[Callable[[], object]]]:
    """Functions that multiply matrices of their own, each by one thread: torch's, or kernels where it is not loaded."""
    if "torch" not in sys.modules and kernels.available():
        with kernels.one_thread():
            yield [_kernel_product() for _ in range(count)]
        return
    import torch

    def multiply(matrix: torch.Tensor) -> None:
        torch.set_num_threads(1)
        torch.mm(matrix, matrix)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield [partial(multiply, torch.ones(_SIZE, _SIZE)) for _ in range(count)]
    finally:
        torch.set_num_threads(threads)


def _kernel_product() -> Callable[[], object]:
    import numpy as np

    from regard.kernels import _native
    from regard.kernels.packing import pack

    matrix = np.ones((_SIZE, _SIZE), np.float32)
    return partial(_native.product, matrix, pack(matrix), np.empty_like(matrix), 0)
