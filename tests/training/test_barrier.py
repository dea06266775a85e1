"""Where processes of a machine wait for each other, and how they keep to cores of their own."""

import time
from collections.abc import Collection
from pathlib import Path

import pytest
import torch

from regard.system.cores import allowed_cores
from regard.training import barrier
from regard.training.barrier import PLACE, SharedBarrier
from regard.training.world import World
from tests.training.forks import in_world


def pair(processes: tuple[int, ...] = ()) -> tuple[SharedBarrier, SharedBarrier, torch.Tensor]:
    shared = torch.zeros(2 * 8, dtype=torch.int64)
    first, second = (SharedBarrier(shared, World(2, rank, 2, processes=processes)) for rank in range(2))
    return first, second, shared.view(2, -1)


def test_nobody_passes_before_the_others_are_there() -> None:
    first, second, places = pair()
    second._turn = 1
    places[1, 0] = 1  # the second is there already
    first.wait()
    assert places[:, 0].tolist() == [1, 1]


class Cores:
    """Stands for the system: on which core the process is, and what it was allowed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, current: int) -> None:
        self.current = current
        self.allowed = list[tuple[int, set[int]]]()
        monkeypatch.setattr(barrier, "allowed_cores", lambda: {0, 1})
        monkeypatch.setattr(barrier, "current_core", lambda: self.current)
        monkeypatch.setattr(barrier, "allow_cores", self.allow)

    def allow(self, cores: Collection[int], process: int = 0) -> None:
        self.allowed.append((process, set(cores)))


def test_the_later_of_two_on_one_core_keeps_to_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = Cores(monkeypatch, current=1)
    first, second, places = pair()
    places[0, :2] = torch.tensor([1, 1])  # the first is there, on core 1
    second.wait()
    assert cores.allowed == [(0, {0})]
    cores.current = 0
    for turn in range(2, barrier._APART + 2):
        places[0, 0] = turn
        second.wait()
    assert cores.allowed == [(0, {0})] * barrier._APART  # and no longer, as they do not meet again
    places[1, 0], first._turn = 200, 199
    cores.current = 1
    first.wait()
    assert len(cores.allowed) == barrier._APART, "the first one stays where it is"


def test_processes_with_a_core_each_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = Cores(monkeypatch, current=0)
    _, second, places = pair()
    places[0, :2] = torch.tensor([1, 1])
    second.wait()
    assert cores.allowed == []


def test_whoever_waits_lets_the_others_move(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = Cores(monkeypatch, current=0)
    first, _, places = pair(processes=(11, 12))
    monkeypatch.setattr(World, "wait_until", lambda world, done: places[1].copy_(torch.tensor([1, 1] + [0] * 6)))
    first.wait()
    assert cores.allowed == [(12, {0, 1})]


@pytest.mark.skipif(len(allowed_cores()) < 2, reason="one core")
def test_all_cores_are_allowed_again_by_the_next_barrier(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    path.write_bytes(bytes(2 * PLACE))

    def work(world: World) -> None:
        before = allowed_cores()
        shared = torch.from_file(str(path), shared=True, size=2 * PLACE // 8, dtype=torch.int64)
        found = SharedBarrier(shared, world)
        for _ in range(50):
            found._affinity._turns = 1  # as if they had met on one core
            found.wait()
            assert allowed_cores() < before or world.leads
            world.wait()
            while world.rank and allowed_cores() != before:  # until the first one waits
                time.sleep(1e-4)
        found.wait()

    assert in_world(2, 2, work, local=True) == [0, 0]
