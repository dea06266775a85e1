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
from typing import Protocol

import torch
from torch import Tensor

from regard.training.barrier import PLACE, SharedBarrier
from regard.training.world import World, tree_sum

_FOLDER = "/dev/shm"
"""Where a file is memory, on Linux; elsewhere, or where it is full, messages are sent."""


class Buffers(Protocol):
    """What a process computes with: the weights, and the gradient of its own shards."""

    weights: Tensor
    gradients: Tensor

    def reduce(self) -> Tensor:
        """The sum of all processes' gradients, for the part that this process updates."""

    def publish(self) -> None:
        """Give the others the own part of the weights, and take theirs."""


def buffers_for(world: World, weights: Tensor) -> Buffers:
    """The buffers of this process, the weights filled in; every process has the same."""
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
