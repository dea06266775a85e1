"""Where the processes of a machine wait for each other in a step, and how they keep to cores of their own."""

from __future__ import annotations

from threading import Lock

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regard.system.cores import allow_cores, allowed_cores, current_core
from regard.training.world import World

PLACE = 64
"""Bytes of a process at a barrier: a line of the processor's cache."""
_APART = 100
"""Barriers behind which a process keeps to other cores, once it was found on one with another."""


class SharedBarrier:
    """Where processes of a machine wait for each other: in shared memory, so that nobody is woken by a message.

    Beside other busy processes a message costs the time until its receiver is given a core; a process that looks
    now and then has slept, and is given one at once.

    Args:
        shared: eight numbers for each process, zeros at first.
        world: of the process.
    """

    def __init__(self, shared: Tensor, world: World) -> None:
        places = shared.view(world.size, -1).numpy()
        self._arrived = places[:, 0]
        self._affinity = CoreAffinity(places[:, 1], world)
        self._world, self._turn = world, 0
        self._fence = Lock()  # taken and released, it orders what this process writes, on ARM too

    def wait(self) -> None:
        """Wait until all processes are here.

        Raises:
            LostProcess: one of them has ended.
        """
        self._turn += 1
        self._affinity.arrive()
        with self._fence:  # what was written before is seen before the arrival
            self._arrived[self._world.rank] = self._turn
        self._affinity.release(self._arrived < self._turn)
        self._world.wait_until(lambda: not (self._arrived < self._turn).any())
        self._affinity.separate()


class CoreAffinity:
    """Keeps two processes of a run from taking turns on one core, beside a process of others that has the next core.

    The system counts how many processes a core has, not whose they are, and leaves two of ours on one core for seconds.
    So behind a barrier the later of the two keeps to other cores. Whoever arrives first at the next barrier lets those
    that are missing move again, to the core where it only waits. Where each has a core already, nothing happens.

    Args:
        cores: a number for each process, in shared memory.
        world: of the process.
    """

    def __init__(self, cores: NDArray[np.int64], world: World) -> None:
        self._cores, self._world = cores, world
        self._allowed = allowed_cores()
        self._turns = 0

    def arrive(self) -> None:
        """Tell the others on which core this process is."""
        self._cores[self._world.rank] = current_core()

    def release(self, missing: NDArray[np.bool_]) -> None:
        """Let the processes that have not arrived use all cores."""
        for process, misses in zip(self._world.processes, missing, strict=False):
            if misses:
                allow_cores(self._allowed, process)

    def separate(self) -> None:
        """Leave the cores of earlier processes, if this one was found on one of them lately."""
        earlier = set(self._cores[: self._world.rank].tolist())
        if current_core() in earlier:
            self._turns = _APART
        if self._turns:
            self._turns -= 1
            allow_cores(self._allowed - earlier)
