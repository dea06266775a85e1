"""Many texts answered by several processes, in order and as by one.

The processes are copies of this one, made once the model is loaded, so its weights are in memory once. Each computes
with one thread, on groups of texts that do not depend on how many processes there are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import chain, islice
from typing import Any

from regard.runs.workers.cores import useful_processes
from regard.system.errors import RegardError
from regard.system.forks import SAFE, ForkedWorkers, LostWorker
from regard.system.processor import keep_pages, usable_cores
from regard.tasks.protocols import Divide, Find, find_at_once

Content = Callable[[list[str], int], bytes | memoryview]
"""From texts, and the number of the first, to the bytes of their answers."""
BLOCK = 256
"""Examples of a test set that a process scores at a time."""


def _one_thread() -> None:
    """A copy's torch, where it is loaded, computes with one thread."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    keep_pages()


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

    def divide(find: Find, examples: Sequence[Any]) -> list[Any]:
        count = processes() if len(examples) > block else 1
        if count == 1:
            return find_at_once(find, examples)

        def work(asked: bytes) -> bytes:
            _one_thread()
            begin = int(asked)
            return json.dumps(find(examples[begin : begin + block], begin)).encode()

        with ForkedWorkers(work, count) as workers:
            answers = workers.map(str(begin).encode() for begin in range(0, len(examples), block))
            return [found for answer in answers for found in json.loads(answer)]

    return divide
