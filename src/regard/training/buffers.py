"""The long buffers of weights and gradients, and how processes complete each other's parts of them.

On one machine they lie in memory that all processes share: weights are there once, and a gradient is read where it was
computed. Between machines their parts travel as messages. Both add in the order of the same tree.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Protocol

import torch
from torch import Tensor

from regard.training.world import World, tree_sum

_FOLDER = "/dev/shm"
"""Where a file is memory, on Linux; elsewhere, or where it is full, messages are sent."""
_PLACE = 64
"""Bytes of a process at a barrier: a line of the processor's cache."""


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
    if world.size > 1 and world.local and (file := world.lead(lambda: _file(weights, world.size))):
        return SharedBuffers(world, weights, Path(file))
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
        file: what is mapped; it is removed once all have it.
    """

    def __init__(self, world: World, weights: Tensor, file: Path) -> None:
        self.world = world
        size = file.stat().st_size
        mapped = torch.from_file(str(file), shared=True, size=size, dtype=torch.uint8)
        world.wait()
        if world.leads:
            file.unlink()
        long = (1 + world.size) * weights.nbytes
        whole = mapped[:long].view(weights.dtype).view(1 + world.size, -1)
        self.weights, self._every = whole[0], whole[1:]
        self.gradients = self._every[world.rank]
        self._barrier = SharedBarrier(mapped[long:].view(torch.int64), world)
        world.own(self.weights).copy_(world.own(weights))
        world.wait()

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


class SharedBarrier:
    """Where processes of a machine wait for each other: in shared memory, so that nobody is woken by a message.

    Beside other busy processes a message costs the time until its receiver is given a core; a process that looks
    now and then has slept, and is given one at once.

    Args:
        shared: eight numbers for each process, zeros at first.
        world: of the process.
    """

    def __init__(self, shared: Tensor, world: World) -> None:
        self._arrived = shared.view(world.size, -1)[:, 0].numpy()
        self._world, self._turn = world, 0
        self._fence = Lock()

    def wait(self) -> None:
        """Wait until all processes are here.

        Raises:
            LostProcess: one of them has ended.
        """
        self._turn += 1
        with self._fence:  # what was written before is seen before the arrival
            self._arrived[self._world.rank] = self._turn
        self._world.wait_until(lambda: not (self._arrived < self._turn).any())


def _file(weights: Tensor, processes: int) -> str | None:
    """A file of zeros as long as the shared buffers; ``None`` where there is no room for it."""
    with suppress(OSError, AttributeError):
        handle, name = tempfile.mkstemp(prefix="regard-", dir=_FOLDER)
        try:
            os.posix_fallocate(handle, 0, (1 + processes) * weights.nbytes + _PLACE * processes)
            return name
        except OSError:
            os.unlink(name)
        finally:
            os.close(handle)
    return None
