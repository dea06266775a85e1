"""A process that trains beside the first one of a run: ``python -m regard.runs.workers.worker``.

It is told everything by the first process, writes nothing, and ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from regard.system.forks import end_with
from regard.system.threads import interruptible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from regard.runs.workers.group import TorchrunProcess
    from regard.training.world import World


def main() -> int:
    """The work of a process that the first one started; its exit code."""
    raised = list[int]()  # signals that ask the run to stop; the first process hears of them at the next step
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(one, lambda number, frame: raised.append(number))
    path, rank, size, shards, parent = json.loads(os.environ["REGARD_PROCESS"])
    end_with(parent, signal.SIGKILL)
    from torch._C._distributed_c10d import FileStore

    from regard.runs.workers.group import join
    from regard.system.errors import RegardError
    from regard.training.world import World

    world = World(shards, rank, size, local=True)
    try:
        with _leaving():
            world = join(world, FileStore(path, world.size))
            world.any(False)
            follow(world, lambda: bool(raised))
    except RegardError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


@contextmanager
def _leaving() -> Iterator[None]:
    """Close the connections at the end; where a process was lost nobody can, and this one just ends."""
    from regard.runs.workers.group import abandon, leave
    from regard.training.world import LostProcess

    try:
        yield
    except LostProcess:
        abandon()
        raise
    except BaseException:
        leave()
        raise
    leave()


def follow(world: World, should_stop: Callable[[], bool]) -> None:
    """Do what the first process says, until it says that all is done.

    Args:
        world: of the run.
        should_stop: asked before every step.

    Raises:
        RegardError: the run stopped, or this process cannot take part in it.
    """
    from regard.runs.workers.worker_run import WorkerRun

    part: WorkerRun | None = None
    while True:
        message: dict[str, Any] = world.lead(dict)
        match message.pop("do"):
            case "prepare":
                part = WorkerRun.of(world, should_stop, **message)
            case "measure" if part:
                part.measure(**message)
            case "fit" if part:
                part.fit(**message)
            case _:
                return


def follow_torchrun(torchrun_process: TorchrunProcess, should_stop: Callable[[], bool]) -> None:
    """Take part in the run of the first process of a ``torchrun``, if it calls the others.

    Raises:
        RegardError: as :func:`follow`.
    """
    from regard.runs.workers.group import join
    from regard.training.world import LostProcess, LostTorchrunProcess, World, exchange

    rank, size, look = torchrun_process.rank, torchrun_process.size, torchrun_process.look
    try:
        with _leaving(), exchange():
            if shards := interruptible(torchrun_process.wait, look):
                world = World(shards, rank, size, is_lost=torchrun_process.is_lost)
                follow(interruptible(lambda: join(world, torchrun_process.store), look), should_stop)
    except LostProcess as lost:
        raise LostTorchrunProcess(str(lost)) from lost


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # nothing is left to be closed, and the first process waits for the end
