"""Buffers that processes share, and where they wait for each other and keep to cores of their own."""

import errno
import os
import time
from collections.abc import Collection
from pathlib import Path

import pytest
import torch

from regard.training import buffers
from regard.training.buffers import PrivateBuffers, SharedBarrier, SharedBuffers, buffers_for
from regard.training.world import ALONE, LostProcess, World, has_ended
from tests.training.forks import DIED, in_world

COUNT = 64


def test_one_process_keeps_its_own() -> None:
    weights = torch.arange(4.0)
    found = buffers_for(ALONE, weights)
    assert isinstance(found, PrivateBuffers)
    assert found.weights is weights
    assert found.reduce() is found.gradients


@pytest.mark.one_of(2)
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("local", [False, True], ids=["messages", "memory"])
def test_parts_are_summed_and_completed(size: int, local: bool) -> None:
    def work(world: World) -> None:
        found = buffers_for(world, torch.arange(float(COUNT)))
        assert isinstance(found, SharedBuffers if local else PrivateBuffers)
        assert torch.equal(found.weights, torch.arange(float(COUNT)))
        for turn in range(3):
            found.gradients.fill_(10.0**world.rank + turn)
            summed = found.reduce()
            assert summed.tolist() == [sum(10.0**rank + turn for rank in range(size))] * (COUNT // size)
            world.wait()
            world.own(found.weights).add_(1.0 + world.rank)
            found.publish()
            ranks = torch.arange(size).repeat_interleave(COUNT // size)
            assert torch.equal(found.weights, torch.arange(float(COUNT)) + (turn + 1) * (1.0 + ranks))
            world.wait()

    assert in_world(size, 4, work, local) == [0] * size


@pytest.mark.skipif(not Path("/dev/shm").exists(), reason="needs a processor with /dev/shm")
def test_shared_memory_has_no_name() -> None:
    with buffers._shared_file(COUNT, ALONE) as file:
        assert file is not None
        assert file.stat().st_size == COUNT
        assert os.readlink(file).endswith("(deleted)")
        file.write_bytes(b"seen")
        assert file.read_bytes()[:4] == b"seen"
    assert not file.exists()


def test_without_room_for_shared_memory_messages_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def work(world: World) -> None:
        assert isinstance(buffers_for(world, torch.zeros(COUNT)), PrivateBuffers)

    monkeypatch.setattr(buffers.os, "posix_fallocate", full)
    assert in_world(2, 2, work, local=True) == [0, 0]


def test_whether_a_process_has_ended() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    until = time.monotonic() + 10
    while not has_ended(child):  # nobody has asked for its exit code
        assert time.monotonic() < until
        time.sleep(0.01)
    os.waitpid(child, 0)
    assert has_ended(child)
    assert not has_ended(os.getpid())


def test_whoever_waits_hears_of_a_process_that_is_gone() -> None:
    def work(world: World) -> None:
        found = buffers_for(world, torch.zeros(COUNT))
        if world.rank:
            os._exit(DIED)
        with pytest.raises(LostProcess, match="rerun the same command"):
            found.publish()

    assert in_world(2, 2, work, local=True) == [0, DIED]


class Cores:
    """Stands for the system: on which core the process is, and what it was allowed; with two barriers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, current: int, processes: tuple[int, ...] = ()) -> None:
        self.current = current
        self.allowed = list[tuple[int, set[int]]]()
        monkeypatch.setattr(buffers, "allowed_cores", lambda: {0, 1})
        monkeypatch.setattr(buffers, "current_core", lambda: self.current)
        monkeypatch.setattr(buffers, "allow_cores", self.allow)
        shared = torch.zeros(2 * 8, dtype=torch.int64)
        self.first, self.second = (SharedBarrier(shared, World(2, n, 2, processes=processes)) for n in range(2))
        self.places = shared.view(2, -1)

    def allow(self, cores: Collection[int], process: int = 0) -> None:
        self.allowed.append((process, set(cores)))


def test_the_later_of_two_on_one_core_keeps_to_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = Cores(monkeypatch, current=1)
    cores.places[0, :2] = torch.tensor([1, 1])  # the first is there, on core 1
    cores.second.wait()
    assert cores.places[:, 0].tolist() == [1, 1]
    assert cores.allowed == [(0, {0})]
    cores.current = 0
    for turn in range(2, buffers._APART + 2):
        cores.places[0, 0] = turn
        cores.second.wait()
    assert cores.allowed == [(0, {0})] * buffers._APART  # and no longer, as they do not meet again
    cores.places[1, 0], cores.first._turn = 200, 199
    cores.current = 1
    cores.first.wait()
    assert len(cores.allowed) == buffers._APART, "the first one stays where it is"


def test_processes_with_a_core_each_are_left_alone_but_whoever_waits_lets_the_others_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cores = Cores(monkeypatch, 0, (11, 12))
    cores.places[0, :2] = torch.tensor([1, 1])
    cores.second.wait()
    assert cores.allowed == []
    again = torch.tensor([2, 1] + [0] * 6)
    monkeypatch.setattr(World, "wait_until", lambda world, done: cores.places[1].copy_(again))
    cores.first._turn = 1
    cores.first.wait()
    assert cores.allowed == [(12, {0, 1})]
