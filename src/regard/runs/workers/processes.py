"""Several processes of this machine: how many it can feed, and many texts answered by them, in order and as by one.

How many are worth it is measured and not counted: two threads of one core, and cores that others keep busy, look like
cores to the system. Those that answer texts are copies of this one, made once the model is loaded, so its weights are
in memory once. Each computes with one thread, on groups of texts that do not depend on how many processes there are.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice

from regard.system import kernels
from regard.system.errors import RegardError
from regard.system.forks import SAFE, ForkedWorkers, LostWorker
from regard.system.processor import keep_pages, usable_cores
from regard.system.threads import ended_threads
from regard.tasks.protocols import Divide, Find

Content = Callable[[list[str], int], bytes | memoryview]
"""From texts, and the number of the first, to the bytes of their answers."""
BLOCK = 256
"""Examples of a test set that a process scores at a time."""
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
        import numpy as np

        from regard.system.kernels import _native
        from regard.system.kernels.packing import pack

        with kernels.one_thread():
            matrices = np.ones((count, _SIZE, _SIZE), np.float32)
            yield [partial(_native.product, one, pack(one), np.empty_like(one), 0) for one in matrices]
        return
    import torch

    def multiply(matrix: torch.Tensor) -> None:
        torch.set_num_threads(1)
        torch.mm(matrix, matrix)

    with torch_threads(1):
        yield [partial(multiply, torch.ones(_SIZE, _SIZE)) for _ in range(count)]


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Within, torch computes with so many threads; a program that trains has its own number again afterwards."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def answer_processes(asked: int | None, threads: int | None, device: str) -> int:
    """How many processes answer many texts: as many as asked for, else as are useful.

    One where a number of threads is given, on a GPU, and where processes cannot be copied.
    """
    if not SAFE or not device.startswith("cpu"):
        return 1
    if asked is None and threads is not None:
        return 1
    return asked or useful_processes(usable_cores())


def answer_groups(
    content: Content, groups: Iterable[tuple[list[str], int]], processes: Callable[[], int] | None
) -> Generator[tuple[list[str], int, bytes | None], None, None]:
    """Each group of texts, the number of its first, and its answers; ``None``: the caller is to answer it.

    The caller answers all groups of one process, and one whose answer is an error, so that the error is its own.

    Args:
        content: answers a group.
        groups: of texts, with the number of their first.
        processes: how many to use, asked where there is more than one group; ``None``: they are answered as they come.

    Raises:
        LostWorker: a process was ended.
    """
    given = iter(groups)
    first = list(islice(given, 2 if processes else 0))
    rest, count = chain(first, given), processes() if processes and len(first) > 1 else 1
    if count == 1:
        for texts, number in rest:
            yield texts, number, None
        return

    def work(asked: bytes) -> bytes:
        _one_thread()
        texts, number = json.loads(asked)
        return bytes(content(texts, number))

    with ForkedWorkers(work, count) as workers:
        for (texts, number), answer in workers.pairs(rest, lambda group: json.dumps(group).encode()):
            try:
                found = answer()
            except LostWorker:
                raise
            except RegardError:
                yield texts, number, None
                raise
            yield texts, number, found


def divider(processes: Callable[[], int], block: int = BLOCK) -> Divide:
    """A function that applies another to examples, in blocks and in several processes.

    Args:
        processes: how many to use, asked where there is more than one block.
        block: examples that a process takes at a time.
    """

    def divide(find: Find, examples: Sequence[object]) -> list[object]:
        count = processes() if len(examples) > block else 1
        if count == 1:
            return find(examples, 0)

        def work(asked: bytes) -> bytes:
            _one_thread()
            begin = int(asked)
            return json.dumps(find(examples[begin : begin + block], begin)).encode()

        with ForkedWorkers(work, count) as workers:
            answers = workers.map(str(begin).encode() for begin in range(0, len(examples), block))
            return [found for answer in answers for found in json.loads(answer)]

    return divide


def _one_thread() -> None:
    """Let a copy's torch, where it is loaded, compute with one thread."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    keep_pages()
