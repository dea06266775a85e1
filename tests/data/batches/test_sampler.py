"""Each sentence once an epoch or by weight, full batches, any position at once: a pure function."""

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from regard.data.batches import sampler
from regard.data.batches.batch import Capacity, Position, capacity_for
from regard.data.batches.sampler import BatchSampler, DataLoader, EpochSampler, iterate_ahead, temper
from regard.system.errors import RegardError, UsageError
from tests.decoding.counted_calls import calls
from tests.refusals import refused

Lengths = tuple[NDArray[np.int64], NDArray[np.int64]]


def realistic(pairs: int, ratio: float = 1.08) -> Lengths:
    """Lengths as corpora have them: log-normal, the target's share of the source's varying by a fifth."""
    draws = np.random.default_rng(0)
    source = np.clip(draws.lognormal(2.7, 0.5, pairs).astype(np.int64) + 2, 2, 256)
    target = np.clip((source * draws.normal(ratio, 0.2, pairs)).astype(np.int64), 2, 256)
    return source, target


def planned(source: Any, target: Any, capacity: Capacity | int, seed: int = 1, look_ahead: int = 64) -> BatchSampler:
    """A plan of this capacity, or of that for so many tokens."""
    if isinstance(capacity, int):
        longest = int(max(source.max(), target.max()))
        capacity = capacity_for(capacity, int(source.sum()), int(target.sum()), len(source), longest)
    return BatchSampler(source, target, capacity, EpochSampler((len(source),), seed), look_ahead)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Lengths, Capacity, int, int]:
    source = np.array(draw(st.lists(st.integers(1, 40), min_size=1, max_size=150)), dtype=np.int64)
    target = np.array([draw(st.integers(1, 40)) for _ in source], dtype=np.int64)
    capacity = Capacity(draw(st.integers(40, 200)), draw(st.integers(40, 200)), draw(st.integers(1, 30)))
    return (source, target), capacity, draw(st.integers(0, 99)), draw(st.integers(1, 70))


@given(problems(), st.integers(7, 60))
def test_each_sentence_once_an_epoch_in_batches_that_fit(problem, block: int) -> None:
    (source, target), capacity, seed, look_ahead = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "BLOCK", block)
        plan, fresh = (planned(source, target, capacity, seed, look_ahead) for _ in range(2))
        walk = list(itertools.takewhile(lambda pair: pair[0].epoch < 2, plan.batches()))
        for epoch in (0, 1):
            seen = np.concatenate([batch for position, batch in walk if position.epoch == epoch])
            assert sorted(seen.tolist()) == list(range(len(source)))
        for _, batch in walk:
            assert 0 < len(batch) <= capacity.sentences
            assert source[batch].sum() <= capacity.source
            assert target[batch].sum() <= capacity.target
        for (position, batch), (following, _) in itertools.pairwise(walk):
            assert fresh.after(position) == following
            found_position, found = next(fresh.batches(position))
            assert (found_position, found.tolist()) == (position, batch.tolist())


def test_epochs_and_seeds_differ_and_behind_the_last_batch_the_next_block_follows() -> None:
    lengths = realistic(2000)
    plan = planned(*lengths, 512)
    firsts = [plan.block(0, 0), plan.block(1, 0), planned(*lengths, 512, 2).block(0, 0)]
    assert len({tuple(block[0].tolist()) for block in firsts}) == 3
    position, batch = next(plan.batches(Position(0, 0, len(firsts[0]))))
    assert (position, batch.tolist()) == (Position(1, 0, 0), firsts[1][0].tolist())


@pytest.mark.parametrize("tokens", [1024, 4096])
@pytest.mark.parametrize("ratio", [0.8, 1.08, 1.5])
def test_batches_are_full(tokens: int, ratio: float) -> None:
    """The last two of the block aside; of the source as far as the corpus's ratio allows: it is rounded up to 64."""
    source, target = realistic(20_000, ratio)
    plan = planned(source, target, tokens)
    batches, capacity = plan.block(0, 0)[:-2], plan.capacity
    possible = min(1.0, source.sum() / target.sum() * capacity.target / capacity.source)
    assert np.mean([source[batch].sum() for batch in batches]) / capacity.source / possible >= 0.99
    assert np.mean([target[batch].sum() for batch in batches]) / capacity.target >= 0.99


def test_order_stays_random() -> None:
    """Closing the gap must not sort: short sentences come as early as long ones."""
    source, target = realistic(20_000)
    batches = planned(source, target, 1024).block(0, 0)
    place = np.concatenate([np.full(len(batch), number) for number, batch in enumerate(batches)])
    assert abs(np.corrcoef(place, target[np.concatenate(batches)])[0, 1]) < 0.02


def test_a_block_is_planned_at_a_few_calls_a_sentence() -> None:
    plan = planned(*realistic(65_536), 1024)
    assert calls(lambda: plan.block(0, 0)) < 5 * 65_536


def test_lengths_that_differ_by_epoch() -> None:
    source, target = realistic(300)
    asked: list[int] = []

    def longer(epoch: int, sentences_B: NDArray[np.int64]) -> NDArray[np.int64]:
        asked.append(epoch)
        return target[sentences_B] + epoch

    plan = planned(source, longer, Capacity(512, 512, 64))
    assert all((target[batch] + 3).sum() <= 512 for batch in plan.block(3, 0))
    assert asked == [3]


def test_a_sentence_longer_than_a_batch_is_an_error() -> None:
    with refused(RegardError, "training.tokens", "70", "64"):
        planned(np.array([5, 70]), np.array([5, 5]), Capacity(64, 64, 8)).block(0, 0)


@pytest.mark.parametrize(
    ("sizes", "weights", "epoch", "drawn"),
    [((1000, 10), (1.0, 1.0), 100, (50, 50)), ((6, 4), None, 5, (3, 2)), ((4, 0), (1, 1), 8, (8, 0))],
)
def test_a_virtual_epoch_is_shared_out_by_weight_or_size(sizes, weights, epoch: int, drawn: tuple[int, int]) -> None:
    draws = EpochSampler(sizes, seed=1, weights=weights, epoch=epoch)
    for number in range(2):
        found = draws.of(number)
        assert ((found < sizes[0]).sum(), (found >= sizes[0]).sum()) == drawn


def test_every_sentence_comes_before_one_comes_again() -> None:
    draws = EpochSampler((7, 5), seed=1, weights=(1, 3), epoch=12)
    seen = np.bincount(np.concatenate([draws.of(epoch) for epoch in range(7)]), minlength=12)  # 21 of 7, 63 of 5
    assert (seen[:7].tolist(), set(seen[7:].tolist())) == ([3] * 7, {12, 13})
    assert sorted(EpochSampler((3, 4), seed=1).of(0).tolist()) == list(range(7))
    plain = EpochSampler((6, 4), seed=1, epoch=5)
    assert sorted(np.concatenate([plain.of(0), plain.of(1)]).tolist()) == list(range(10))


@pytest.mark.parametrize(
    ("sizes", "weights"), [((3, 4), (1.0,)), ((3, 4), (-1, 2)), ((3, 4), (0, 0)), ((4, 0), (0, 1))]
)
def test_weights_that_do_not_fit(sizes: tuple[int, int], weights: tuple[float, ...]) -> None:
    with refused(UsageError, "data.weights"):
        EpochSampler(sizes, seed=1, weights=weights)


def running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("regard-batches")]


def test_the_same_items_in_order_are_made_in_advance_but_not_without_bound() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(50):
            made.append(number)
            yield number

    received = iterate_ahead(items(), 2)
    assert next(received) == 0
    deadline = time.monotonic() + 5
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert made == [0, 1, 2, 3]  # one received, two ready, one waiting to be put
    received.close()  # type: ignore[attr-defined]
    assert not running()
    assert list(iterate_ahead(iter(range(100)), 3)) == list(range(100))
    assert not running()


def test_dropping_ends_the_thread_which_no_forked_process_has(monkeypatch: pytest.MonkeyPatch) -> None:
    received = iterate_ahead(itertools.count(), 2)
    assert not running()  # nothing starts before the first item is asked for
    next(received)
    assert len(running()) == 1
    del received
    assert not running()
    received = iterate_ahead(itertools.count(), 2)
    next(received)
    monkeypatch.setattr(sampler.os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError):
        next(received)


class Plan:
    """Two epochs of three batches, for ever."""

    capacity = Capacity(10, 10, 8)

    def batches(self, position: Position):
        while True:
            yield position, np.arange(position.batch, position.batch + 2)
            position = self.after(position)

    def after(self, position: Position) -> Position:
        epoch, batch = divmod(3 * position.epoch + position.batch + 1, 3)
        return Position(epoch, 0, batch)


class Made:
    def __init__(self, place: Position, sentences_B) -> None:
        if place == Position(3):
            raise FileNotFoundError
        self.said = (place, tuple(sentences_B))
        self.tokens = self.room = 10


def feed() -> DataLoader[Made]:
    return DataLoader(Made, Plan(), "f", 30.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("ahead", [1, 5])
def test_each_batch_comes_with_the_position_behind_it_from_any_position_on(
    ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = list(itertools.islice(feed().iterate(), 9))
    monkeypatch.setattr(sampler, "AHEAD", ahead)
    assert [batch.said[0] for batch, _ in whole] == [Position(), *(behind for _, behind in whole[:-1])]
    for start in range(5):
        again = itertools.islice(feed().iterate(whole[start - 1][1] if start else None), 4)
        found = [(batch.said, behind) for batch, behind in again]
        assert found == [(batch.said, behind) for batch, behind in whole[start : start + 4]]
    assert feed().batches_per_epoch == 3.0
    last = feed().iterate(Position(2, 0, 2))
    next(last)
    with pytest.raises(FileNotFoundError):  # an error in making comes through
        next(last)
    assert not running()


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_directions_are_drawn_by_temperature(temperature: float) -> None:
    sizes, directions = (900, 100, 4000, 0), ("a", "b", "a", "c")
    weights = temper(sizes, directions, temperature)
    whole = {one: sum(n for n, other in zip(sizes, directions, strict=True) if other == one) for one in "ab"}
    wanted = {one: count ** (1 / temperature) for one, count in whole.items()}
    shares = {one: sum(w for w, other in zip(weights, directions, strict=True) if other == one) for one in "ab"}
    assert shares["a"] / shares["b"] == pytest.approx(wanted["a"] / wanted["b"])
    assert weights[0] / weights[2] == pytest.approx(900 / 4000)
    assert weights[3] == 0
    drawn = np.bincount(np.searchsorted(np.cumsum(sizes), EpochSampler(sizes, 1, weights).of(0), side="right"))
    assert drawn[1] / drawn.sum() == pytest.approx(wanted["b"] / sum(wanted.values()), abs=1e-3)
