"""Processes that train together: what they exchange, and that their number does not change a bit."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from regard.system.errors import RegardError, UsageError
from regard.training.checkpoints.files import Files
from regard.training.world import ALONE, LostProcess, World, tree_sum
from tests.training.forks import DIED, FAILED, in_world
from tests.training.toy import Killer, Play, StopAt, Toy, recipe

SHARDS = 4


def test_one_process_exchanges_nothing() -> None:
    flat = torch.arange(4.0)
    assert ALONE.leads
    assert ALONE.mine == range(1)
    assert ALONE.lead(lambda: [1]) == [1]
    assert ALONE.any(True)
    assert ALONE.reduce(flat) is flat
    assert ALONE.whole(flat) is flat
    assert ALONE.divide("ab", str.encode) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("shards", "size", "said"), [(8, 3, "1, 2, 4 or 8 do"), (1, 2, "only 1 does"), (2, 4, "1 or 2 do")]
)
def test_only_some_numbers_of_processes_divide_the_shards(shards: int, size: int, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        World(shards, 0, size)
    assert caught.value.where == "processes"


def test_a_tree_adds_neighbours_first() -> None:
    rows = torch.tensor([[1e8], [1.0], [-1e8], [1.0]])
    assert tree_sum(rows).tolist() == [0.0]  # (1e8 + 1) + (-1e8 + 1) in single precision; one after the other gives 1
    assert tree_sum(torch.arange(8.0).view(8, 1)).tolist() == [28.0]


@pytest.mark.parametrize("size", [2, 4])
def test_what_processes_exchange(size: int) -> None:
    def work(world: World) -> None:
        rank = world.rank
        assert world.lead(lambda: {"from": rank}) == {"from": 0}
        assert world.any(rank == size - 1)
        assert not world.any(False)
        parts = ["", "a", "bcd", "ef", "ghijk", "l", "m"]
        for count in (0, 1, 3, 7):
            assert world.divide(parts[:count], str.encode) == [part.encode() for part in parts[:count]]
        rows = torch.tensor([[float(shard), 2.0 * shard] for shard in world.mine])
        assert world.rows(rows).tolist() == [[float(n), 2.0 * n] for n in range(SHARDS)]
        flat = torch.arange(64.0) + rank
        summed = sum(torch.arange(64.0) + other for other in range(size))
        each = 64 // size
        assert torch.equal(world.reduce(flat), summed[rank * each : (rank + 1) * each])
        whole = torch.full((64,), -1.0)
        world.own(whole).copy_(torch.arange(64.0)[rank * each : (rank + 1) * each])
        assert torch.equal(world.whole(world.own(whole)), torch.arange(64.0))
        world.gather(whole)
        assert torch.equal(whole, torch.arange(64.0))

    assert in_world(size, SHARDS, work) == [0] * size


def test_the_others_hear_of_a_process_that_is_gone() -> None:
    def work(world: World) -> None:
        if world.rank:
            os._exit(DIED)
        with pytest.raises(LostProcess, match="rerun the same command"):
            world.whole(torch.zeros(8))

    assert in_world(2, SHARDS, work) == [0, DIED]


def test_whoever_waits_looks_after_the_others_where_no_connection_tells() -> None:
    def work(world: World) -> None:
        assert len(world.processes) == 3
        if world.rank == 2:
            os._exit(DIED)
        with pytest.raises(LostProcess, match="rerun the same command"):
            world.wait_until(lambda: False)
        os._exit(0)

    assert in_world(3, 3, work) == [0, 0, DIED]


def play(output: Path, world: World, stop: StopAt | None = None, files: Files | None = None) -> None:
    Play(output, recipe(tokens=1024, shards=SHARDS, accumulate=2, ema=0.9)).fit(files, stop, Toy(), world=world)


def train(
    output: Path,
    size: int,
    die: Callable[[World], StopAt | None] = lambda world: None,
    files: Files | None = None,
    local: bool = False,
) -> list[int]:
    """A run of the toy in so many processes; ``files`` are those of the first."""
    return in_world(size, SHARDS, lambda world: play(output, world, die(world), files if world.leads else None), local)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Play:
    output = tmp_path_factory.mktemp("alone") / "model"
    assert train(output, 1) == [0]
    return Play(output)


def same(output: Path, play: Play) -> None:
    found, expected = Play(output).ended(), play.ended()
    assert found.weights == expected.weights
    assert found.moments == expected.moments
    assert found.averages == expected.averages
    assert found.model == expected.model


@pytest.mark.one_of(12, minutes=0.03)
@pytest.mark.parametrize("local", [False, True], ids=["messages", "memory"])
@pytest.mark.parametrize("size", [2, 4])
def test_any_number_of_processes_makes_the_same_weights(
    size: int, local: bool, undisturbed: Play, tmp_path: Path
) -> None:
    assert train(tmp_path / "model", size, local=local) == [0] * size
    same(tmp_path / "model", undisturbed)


class DieAt(StopAt):
    """The process is killed before a step, as by a signal that cannot be caught."""

    def __call__(self) -> bool:
        if self.reporter.step in self.steps:
            os.kill(os.getpid(), DIED)
        return False


@pytest.mark.one_of(80, minutes=0.04)
@pytest.mark.parametrize("step", range(40))
def test_a_run_that_lost_a_process_resumes_with_another_number(step: int, undisturbed: Play, tmp_path: Path) -> None:
    first, second = [(2, 4), (4, 1), (4, 2), (2, 1), (1, 4)][step % 5]
    victim = step % first
    output = tmp_path / "model"

    def die(world: World) -> StopAt | None:
        return DieAt(step) if world.rank == victim else None

    codes = train(output, first, die, local=bool(step % 3))
    assert codes[victim] == -DIED
    assert all(code == FAILED for rank, code in enumerate(codes) if rank != victim)
    assert train(output, second) == [0] * second
    same(output, undisturbed)


@pytest.mark.long(minutes=0.04)
@pytest.mark.parametrize("operation", range(0, 400, 10))
@pytest.mark.parametrize("middle", [False, True], ids=["before", "in"])
def test_killed_while_saving_it_resumes_with_another_number(
    operation: int, middle: bool, undisturbed: Play, tmp_path: Path
) -> None:
    output, size = tmp_path / "model", (2, 4)[operation // 10 % 2]
    codes = train(output, size, files=Killer(operation, middle), local=bool(operation // 20 % 2))
    assert codes in ([137, *[FAILED] * (size - 1)], [0] * size)  # some operations write nothing to be killed in
    assert train(output, 6 - size) == [0] * (6 - size)
    same(output, undisturbed)


def test_a_signal_to_any_process_stops_all_at_the_same_step(undisturbed: Play, tmp_path: Path) -> None:
    output, stopped = tmp_path / "model", tmp_path / "stopped"
    stopped.mkdir()

    def work(world: World) -> None:
        with pytest.raises(RegardError, match="stopped after step 8 of 40"):
            play(output, world, StopAt(7) if world.rank else None)
        (stopped / str(world.rank)).touch()

    assert in_world(2, SHARDS, work) == [0, 0]
    assert len(list(stopped.iterdir())) == 2
    assert train(output, 4) == [0] * 4
    same(output, undisturbed)
