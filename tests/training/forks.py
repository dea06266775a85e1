"""Worlds of several processes, forked from the one that tests."""

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch._C._distributed_c10d import FileStore

from regard.runs.workers.group import join, leave
from regard.training.world import World

DIED, FAILED = 9, 1


def in_worlds(worlds: Sequence[World], work: Callable[[World], None]) -> list[int]:
    """Call ``work`` in a process for each world, the processes connected; their exit codes, 1 where one raised."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        children = [_fork(world, store, work) for world in worlds]
        return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def in_world(size: int, shards: int, work: Callable[[World], None], local: bool = False) -> list[int]:
    """The same for as many processes, which divide the shards; ``local``: and share memory."""
    return in_worlds([World(shards, rank, size, local) for rank in range(size)], work)


def _fork(world: World, store: str, work: Callable[[World], None]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = FAILED
    try:
        torch.set_num_threads(1)
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        if world.size > 1:
            world = join(world, FileStore(store, world.size))
        work(world)
        leave()
        code = 0
    except BaseException:
        traceback.print_exc()
    os._exit(code)
