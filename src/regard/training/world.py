"""The processes that train one model together, and what they exchange.

A step's batch is a fixed number of shards. Processes divide the shards among them, and whatever is summed over shards
is summed in the order of a fixed binary tree, so that the bits do not depend on how many processes there are.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from regard.system.errors import RegardError, Stopped, UsageError

Part = TypeVar("Part")
Found = TypeVar("Found")
LOST = "another process of this run ended or does not answer; rerun the same command to resume"
"""What is said where nothing more is known."""
_EAGER = 50
"""Looks for the others without a pause."""
_NAPS = 5e-5, 2e-3
"""Seconds of the shortest and the longest pause between later looks."""
_SHARE = 1 / 16
"""A pause is as long as this share of the wait so far: short waits end soon, and in long ones the core is idle for so
long that the system moves a process to it that shares its own with another."""
_CHECKED = 0.2
"""Seconds of waiting after which it is asked whether the others are alive."""
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
"""Under its name of today, or that of older torch."""


class LostProcess(RegardError):
    """Another process of the run is gone."""


class LostTorchrunProcess(LostProcess):
    """The same where ``torchrun`` started the processes, which nothing is known of but that the run can be resumed."""

    exit_code = Stopped.exit_code


@contextmanager
def exchange() -> Iterator[None]:
    """Within, an error of the connection to another process is a :class:`LostProcess`."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        raise LostProcess(LOST) from error


@dataclass(frozen=True)
class World:
    """One of the processes that train a model, and the shards it computes.

    Without processes it is alone, and nothing is exchanged. Every process calls the same methods in the same order;
    all but the first receive what they are given, and write nothing.

    Args:
        shards: of a step, a power of two.
        rank: number of this process.
        size: how many there are; it divides the shards.
        local: all of them are on this machine, and can share memory.
        processes: the numbers that the system has for those on this machine, this one included; none where not known.
        is_lost: tells whether a process on another machine does not answer any more.
    """

    shards: int = 1
    rank: int = 0
    size: int = 1
    local: bool = False
    processes: tuple[int, ...] = ()
    is_lost: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        refuse_division(self.shards, self.size)

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes and reports."""
        return self.rank == 0

    @property
    def mine(self) -> range:
        """The shards of this process."""
        each = self.shards // self.size
        return range(self.rank * each, (self.rank + 1) * each)

    def own(self, flat: Tensor) -> Tensor:
        """The part of a buffer that this process updates, a view."""
        each = len(flat) // self.size
        return flat[self.rank * each : (self.rank + 1) * each]

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Wait until something is done that the others take part in; signals are heard meanwhile.

        A connection does not tell of every process that is gone, so those on this machine are looked after, and
        the others are asked.

        Raises:
            LostProcess: one of them has ended.
        """
        looks, began = 0, time.monotonic()
        checked = began
        while not done():
            looks += 1
            now = time.monotonic()
            time.sleep(0 if looks < _EAGER else min(max((now - began) * _SHARE, _NAPS[0]), _NAPS[1]))
            if now - checked > _CHECKED:
                checked = now
                if (self.is_lost() or any(has_ended(process) for process in self.processes)) and not done():
                    raise LostProcess(LOST)

    def any(self, flag: bool) -> bool:
        """Whether the flag is up in any process."""
        if self.size == 1:
            return flag
        found = torch.tensor(flag, dtype=torch.uint8)
        self._finish(dist.all_reduce(found, dist.ReduceOp.MAX, async_op=True))
        return bool(found)

    def wait(self) -> None:
        """Wait until all processes are here."""
        self.any(False)

    def lead(self, work: Callable[[], Found]) -> Found:
        """What ``work`` gives in the first process, which alone calls it; plain values that JSON can hold."""
        if self.size == 1:
            return work()
        content = json.dumps(work()).encode() if self.leads else b""
        length = torch.tensor(len(content))
        self._finish(dist.broadcast(length, 0, async_op=True))
        found = torch.zeros(int(length), dtype=torch.uint8)
        if self.leads:
            found = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        self._finish(dist.broadcast(found, 0, async_op=True))
        return json.loads(found.numpy().tobytes())

    def divide(self, parts: Sequence[Part], work: Callable[[Part], bytes]) -> list[bytes]:
        """What ``work`` gives for each part, in order; each process works on some of them."""
        if self.size == 1:
            return [work(part) for part in parts]
        mine = [work(part) for part in parts[self.rank :: self.size]]
        lengths = torch.zeros(-(-len(parts) // self.size), dtype=torch.int64)
        lengths[: len(mine)] = torch.tensor([len(found) for found in mine], dtype=torch.int64)
        every = self._stack(lengths)
        most = int(every.sum(1).max())
        sent = torch.zeros(most, dtype=torch.uint8)
        joined = b"".join(mine)
        if joined:
            sent[: len(joined)] = torch.frombuffer(bytearray(joined), dtype=torch.uint8)
        received = self._stack(sent).numpy()
        starts = every.cumsum(1) - every
        found = []
        for number in range(len(parts)):
            turn, rank = divmod(number, self.size)
            begin = int(starts[rank, turn])
            found.append(received[rank, begin : begin + int(every[rank, turn])].tobytes())
        return found

    def agree(self, own: Mapping[str, object]) -> None:
        """Raise a RegardError in every process if one has other values than the first."""
        content = json.dumps(own).encode()
        first, *others = (json.loads(found) for found in self.divide(range(self.size), lambda rank: content))
        for rank, found in enumerate(others, 1):
            for name, value in first.items():
                if found[name] != value:
                    message = f"is {value!r} in the first process and {found[name]!r} in process {rank}"
                    raise RegardError(f"{message}; all must be the same", name)

    def rows(self, mine_SN: Tensor) -> Tensor:
        """The rows of all shards, of those of this process, in order."""
        if self.size == 1:
            return mine_SN
        return self._stack(mine_SN).flatten(0, 1)

    def reduce(self, flat: Tensor) -> Tensor:
        """The sum over all processes of the part of a buffer that this one updates; adds in the order of the tree."""
        if self.size == 1:
            return flat
        received = torch.empty_like(flat)
        self._finish(dist.all_to_all_single(received, flat, async_op=True))
        return tree_sum(received.view(self.size, -1))

    def gather(self, flat: Tensor) -> None:
        """Complete a buffer by the parts that the others have updated."""
        if self.size > 1:
            self._finish(_all_gather(flat, self.own(flat).clone(), async_op=True))

    def whole(self, own: Tensor) -> Tensor:
        """The buffer of which each process holds its own part; the same tensor where there is one process."""
        if self.size == 1:
            return own
        return self._stack(own).flatten()

    def _stack(self, mine: Tensor) -> Tensor:
        """The tensors of all processes, which have the same shape, in order."""
        found = mine.new_empty(self.size, *mine.shape)
        self._finish(_all_gather(found.view(-1), mine.contiguous().view(-1), async_op=True))
        return found

    def _finish(self, work: Any) -> None:
        """Wait for an exchange; an error of the connection to another process is a :class:`LostProcess`."""
        with exchange():
            self.wait_until(work.is_completed)
            work.wait()


def has_ended(process: int) -> bool:
    """Whether a process of this machine has ended, even if nobody has asked for its exit code."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    try:
        os.kill(process, 0)
    except OSError:
        return True
    return False


def refuse_division(shards: int, processes: int) -> None:
    """Raise a UsageError unless so many processes can divide the shards."""
    if processes < 1 or shards % processes:
        works = [str(n) for n in range(1, shards + 1) if shards % n == 0]
        is_power = processes & (processes - 1) == 0  # as the number of shards must be
        more = f", or set training.shards={processes}" if processes > shards and is_power else ""
        said = (f"{', '.join(works[:-1])} or {works[-1]} do" if len(works) > 1 else "only 1 does") + more
        what = "1 shard" if shards == 1 else f"{shards} shards"
        raise UsageError(f"{processes} cannot divide the {what} of a step (training.shards); {said}", "processes")


def tree_sum(rows_SN: Tensor) -> Tensor:
    """The sum of 2ⁿ rows, neighbours first: ((0 + 1) + (2 + 3)) + … ."""
    while len(rows_SN) > 1:
        rows_SN = rows_SN[0::2] + rows_SN[1::2]
    return rows_SN[0]


ALONE = World()
"""One process, one shard."""
