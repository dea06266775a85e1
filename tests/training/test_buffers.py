"""Buffers that processes share."""

import errno
import os
import time
from pathlib import Path

import pytest
import torch

from regard.training import buffers
from regard.training.buffers import PrivateBuffers, SharedBuffers, buffers_for
from regard.training.world import ALONE, LostProcess, World, has_ended
from tests.training.forks import DIED, in_world

COUNT = 64


def test_one_process_keeps_its_own() -> None:
    weights = torch.arange(4.0)
    found = buffers_for(ALONE, weights)
    assert isinstance(found, PrivateBuffers)
    assert found.weights is weights
    assert found.reduce() is found.gradients


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

    monkeypatch.setattr(buffers.os, "posix_fallocate", full)
    with buffers._shared_file(COUNT, ALONE) as file:
        assert file is None

    def work(world: World) -> None:
        assert isinstance(buffers_for(world, torch.zeros(COUNT)), PrivateBuffers)

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
