"""The long buffers of weights and gradients, and how processes complete each other's parts of them.

On one machine they lie in memory that all processes share: weights are there once, and a gradient is read where it was
computed. Between machines their parts travel as messages. Both add in the order of the same tree.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock

import torch
from torch import Tensor

from regard.system.processor import allow_cores, allowed_cores, current_core
from regard.training.world import World, tree_sum

PLACE = 64
"""Bytes of a process at a barrier: a line of the processor's cache."""
_APART = 100
"""Barriers behind which a process keeps to other cores, once it was found on one with another."""
_FOLDER = "/dev/shm"
"""Where a file is memory, on Linux; elsewhere, or where it is full, messages are sent."""


class SharedBarrier:
    """Where processes of a machine wait for each other: in shared memory, so that nobody is woken by a message.

    Beside other busy processes a message costs the time until its receiver is given a core; a process that looks
    now and then has slept, and is given one at once.

    Two processes of a run are kept from taking turns on one core, beside a process of others that has the next core.
    The system counts how many processes a core has, not whose they are, and leaves two of ours on one core for seconds.
    So behind a barrier the later of the two keeps to other cores. Whoever arrives first at the next barrier lets those
    that are missing move again, to the core where it only waits. Where each has a core already, nothing happens.

    Args:
        shared: eight numbers for each process, zeros at first.
        world: of the process.
    """

    def __init__(self, shared: Tensor, world: World) -> None:
        places = shared.view(world.size, -1).numpy()
        self._arrived, self._cores = places[:, 0], places[:, 1]
        self._world, self._turn = world, 0
        self._allowed, self._apart = allowed_cores(), 0
        self._fence = Lock()  # taken and released, it orders what this process writes, on ARM too

    def wait(self) -> None:
        """Wait until all processes are here.

        Raises:
            LostProcess: one of them has ended.
        """
        rank = self._world.rank
        self._turn += 1
        self._cores[rank] = current_core()
        with self._fence:  # what was written before is seen before the arrival
            self._arrived[rank] = self._turn
        for process, misses in zip(self._world.processes, self._arrived < self._turn, strict=False):
            if misses:
                allow_cores(self._allowed, process)
        self._world.wait_until(lambda: not (self._arrived < self._turn).any())
        earlier = set(self._cores[:rank].tolist())
        if current_core() in earlier:
            self._apart = _APART
        if self._apart:
            self._apart -= 1
            allow_cores(self._allowed - earlier)


def buffers_for(world: World, weights: Tensor) -> PrivateBuffers | SharedBuffers:
    """What this process computes with, the weights filled in: they, and the gradient of its own shards."""
    if world.size > 1 and world.local:
        with _shared_file((1 + world.size) * weights.nbytes + PLACE * world.size, world) as file:
            if file is not None:
                return SharedBuffers(world, weights, file)
    return PrivateBuffers(world, weights)


class PrivateBuffers:
    """Buffers of one process: their parts travel as messages, where there are others.

    Args:
        world: of the process.
        weights: the same in all.
    """

    def __init__(self, world: World, weights: Tensor) -> None:
        self.world = world
        self.weights = weights
        self.gradients = torch.zeros_like(weights)

    def reduce(self) -> Tensor:
        """The sum of all processes' gradients, for the part that this process updates."""
        return self.world.reduce(self.gradients)

    def publish(self) -> None:
        """Give the others the own part of the weights, and take theirs."""
        self.world.gather(self.weights)


class SharedBuffers:
    """Buffers that all processes of a machine map: the weights once, the gradients of each behind them.

    Args:
        world: of the process.
        weights: the same in all.
        file: what is mapped.
    """

    def __init__(self, world: World, weights: Tensor, file: Path) -> None:
        self.world = world
        size = file.stat().st_size
        mapped = torch.from_file(str(file), shared=True, size=size, dtype=torch.uint8)
        long = (1 + world.size) * weights.nbytes
        whole = mapped[:long].view(weights.dtype).view(1 + world.size, -1)
        self.weights, self._every = whole[0], whole[1:]
        self.gradients = self._every[world.rank]
        self._barrier = SharedBarrier(mapped[long:].view(torch.int64), world)
        world.own(self.weights).copy_(world.own(weights))
        world.wait()  # until all have mapped it, and their parts are written

    def reduce(self) -> Tensor:
        """The sum of all processes' gradients, for the part that this process updates.

        The others still read the gradient; what is exchanged next tells that they have.
        """
        self._barrier.wait()
        each = len(self.weights) // self.world.size
        first = self.world.rank * each
        return tree_sum(self._every[:, first : first + each])

    def publish(self) -> None:
        """Wait until the others have updated their parts."""
        self._barrier.wait()


@contextmanager
def _shared_file(size: int, world: World) -> Iterator[Path | None]:
    """The path of a file of zeros in memory, the same in every process; ``None`` where there is no room for it.

    It has no name, so that nothing stays of it, however processes end: the others find it as one that the first holds.
    """
    with ExitStack() as held:

        def make() -> str | None:
            with suppress(OSError, AttributeError):
                file = held.enter_context(tempfile.TemporaryFile(dir=_FOLDER))
                os.posix_fallocate(file.fileno(), 0, size)
                path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
                return path if Path(path).exists() else None
            return None

        found = world.lead(make)
        yield Path(found) if found else None
