"""What a run costs, timed on a fake clock, in bounded time; and the steps made by it are the run's own."""

import subprocess
import sys
from dataclasses import astuple
from functools import partial

import pytest
import torch

from regard.data.batches.batch import Position
from regard.training.budget import Costs
from regard.training.measure import (
    _container,
    fastest,
    fit_batch_to_memory,
    free_memory,
    measure,
    peak_memory,
    time_ways,
)
from regard.training.trainer import Hooks
from tests.training.timed import Clock, SlowDisk, Timed
from tests.training.toy import Corpus, Fast, Play, Toy, assert_same, recipe


def timed(tmp_path, clock, limit, training=(), kind=Timed, **toy):
    hooks = Hooks(clock=clock, files=SlowDisk(clock))
    return measure(kind(clock, **toy), Corpus(), recipe(**dict(training)), tmp_path, hooks, limit)


def test_measured_exactly_on_a_fake_clock(tmp_path):
    costs, kept = timed(tmp_path, Clock(), 1e9)
    spent = 5 * 5.0 + 25 * 0.5 + 2.0 + 12.0 + 0.25
    wanted = Costs(step=0.5, loss=2.0, text=14.0, save=0.25, spent=spent)
    assert astuple(costs) == pytest.approx(astuple(wanted))
    assert [made.seconds for made in kept.made] == [5.0] * 5 + [0.5] * 25
    assert list(tmp_path.iterdir()) == []


def test_an_unlearned_model_that_does_not_stop_is_not_held_against_it(tmp_path):
    clock = Clock()
    costs, _ = timed(tmp_path, clock, 1e9, unlearned=4.0)
    assert costs.text == pytest.approx(2.0 + 12.0 / 4)
    assert costs.spent == pytest.approx(clock.now)


def timed_ways(seconds, disturbed=(), agrees=None):
    """Seconds and choice as found, and the calls: a step takes the seconds of its way, a disturbed one ten times."""
    clock, calls = Clock(), []
    toy = Timed(clock, cold=0, step=0.0)
    now = []

    def loss(batch, before=toy.loss):
        calls.append(now[-1])
        clock.work(seconds[now[-1]] * (10.0 if len(calls) in disturbed else 1.0))
        return before(batch)

    toy.loss = loss
    batch, _ = next(iter(Corpus().iterate(Position())))
    hooks = Hooks(clock=clock)
    ways = {way: partial(now.append, way) for way in seconds}
    choose = agrees or (lambda found: fastest(found, tuple(seconds)))
    return time_ways(toy, ways, batch, recipe(), choose, hooks, clock), calls


def test_ways_take_turns_until_two_rounds_agree():
    (found, chosen), calls = timed_ways({"exact": 0.2, "onednn": 0.1, "bf16": 0.15}, disturbed=(5, 12))
    assert chosen == "onednn"
    assert found == pytest.approx({"exact": 0.2, "onednn": 0.1, "bf16": 0.15})
    assert calls == ["exact", "onednn", "bf16"] * 5  # the cold one, and two rounds of two


def test_a_disturbed_round_is_followed_by_others():
    """Both steps of the faster way are disturbed in the first round."""
    (_, chosen), calls = timed_ways({"exact": 0.2, "bf16": 0.1}, disturbed=(4, 6))
    assert chosen == "bf16"
    assert calls == ["exact", "bf16"] * 7


@pytest.mark.parametrize("seconds", [0.01, 1.0, 30.0])
def test_where_no_two_rounds_agree_nothing_is_chosen_and_it_ends(seconds):
    answers = iter(range(100))
    (found, chosen), calls = timed_ways({"exact": seconds, "bf16": seconds}, agrees=lambda found: next(answers))
    assert chosen is None
    assert found == pytest.approx({"exact": seconds, "bf16": seconds})
    assert len(calls) == (2 + 7 * 4 if seconds < 0.2 else 2 + 2 * 4)


def test_ways_that_are_as_fast_go_to_the_first():
    seconds = {"exact": 1.02, "onednn": 1.0, "bf16": 0.96}
    assert fastest(seconds, ("exact", "onednn")) == "exact"
    assert fastest(seconds, ("exact", "onednn", "bf16")) == "onednn"
    assert fastest({"exact": 1.0, "bf16": 0.9}, ("exact", "bf16")) == "bf16"
    assert fastest({"exact": 1.0, "bf16": 0.1}, ("exact",)) == "exact"


@pytest.mark.one_of(5)
@pytest.mark.parametrize("limit", [200.0, 40.0, 12.0, 6.0, 2.0])
@pytest.mark.parametrize("cold", [0, 5])
def test_it_takes_no_longer_than_it_may(tmp_path, limit, cold):
    """But for two steps, the first parts of each kind of validation, and a save."""
    clock = Clock()
    costs, kept = timed(tmp_path, clock, limit, cold=cold)
    assert costs.spent == clock.now
    assert clock.now <= max(limit, sum(made.seconds for made in kept.made[:2])) + 2 * 0.02 + 2 * 0.12 + 0.25 + 1e-9
    assert len(kept.made) >= 2
    assert costs.loss == pytest.approx(2.0)
    early = sum(made.seconds for made in kept.made) + 2 * 0.02 < limit
    assert costs.text == pytest.approx(14.0 if early else 2.0 + 2 * 2.0)
    assert costs.step in (0.5, 5.0)


@pytest.mark.parametrize("limit", [1e9, 100.0, 40.0])
def test_a_beginning_is_not_taken_for_all_of_it(tmp_path, limit):
    class Beginning(Timed):
        def trial(self, generate, done):
            self.clock.work(3.0)
            super().trial(generate, done)

    costs, _ = timed(tmp_path, Clock(), limit, kind=Beginning)
    assert (costs.loss, costs.text) == pytest.approx((3.0 + 2.0, 3.0 + 2.0 + 3.0 + 12.0))


@pytest.mark.parametrize("minutes", [None, 1.0])
def test_where_text_does_not_decide_it_matters_to_the_final_scores_alone(tmp_path, minutes):
    costs, _ = timed(tmp_path, Clock(), 1e9, {"select": "loss", "minutes": minutes})
    assert (costs.loss, costs.text) == pytest.approx((2.0, 14.0 if minutes else 2.0))


def test_where_nothing_takes_longer_text_costs_nothing(tmp_path):
    class Plain(Toy):
        def trial(self, generate, done):
            if not generate:
                super().trial(generate, done)

    costs, _ = measure(Plain(), Corpus(), recipe(), tmp_path, Hooks(files=Fast()), 1e9)
    assert costs.text == costs.loss > 0


@pytest.mark.one_of(6)
@pytest.mark.parametrize(
    ("settings", "exact"),
    [
        ({"schedule": "noam", "warmup": 4}, True),
        ({"schedule": "inverse_square_root", "warmup": 0}, True),
        ({"schedule": "linear", "warmup": 5, "accumulate": 3, "optimiser": "adamw", "weight_decay": 0.1}, True),
        ({"schedule": "cosine", "warmup": 5, "ema": 0.9}, True),
        ({"schedule": "cosine", "warmup": 4}, False),
        ({"schedule": "linear", "warmup": 0}, False),
        ({"schedule": "noam", "warmup": 6}, False),  # of 50 steps it may be 5
    ],
)
def test_its_steps_are_those_of_the_run_where_the_rates_are(tmp_path, settings, exact):
    """Taken over, they are the bits of the run that makes them itself; a first save comes behind them."""
    plan = {"steps": 50, "validate_every": 20}
    given = recipe(**plan, **settings)
    hooks = Hooks(files=Fast())
    unknown = recipe(**{**plan, **settings, "steps": None, "minutes": 1.0})
    _, kept = measure(Toy(), Corpus(), unknown, tmp_path, hooks, 1e9, most=5)
    assert kept.exact(given) == exact
    if not exact:
        return
    never, taken = Play(tmp_path / "never", given), Play(tmp_path / "taken", given)
    never.fit()
    taken.fit(kept=kept)
    assert taken.corpus.drawn == never.corpus.drawn[5 * given.training.accumulate :]
    assert_same(taken, never.ended())
    assert taken.reporter.step == 50


def test_a_run_that_goes_on_takes_none(tmp_path):
    _, kept = measure(Toy(), Corpus(), recipe(), tmp_path, Hooks(files=Fast()), 1e9, most=5)
    play = Play(tmp_path / "run", recipe(steps=10))
    play.fit()
    play.recipe = recipe(steps=11)
    assert play.fit(kept=kept).step == 11
    assert len(play.corpus.drawn) == 1


@pytest.mark.parametrize("free", [10**3, 10**5, 10**6, 10**9])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_batch_fits_and_the_update_keeps_its_tokens(free, accumulate):
    asked = []

    def needed(tokens):
        asked.append(tokens)
        return 100 * tokens

    tokens, times = fit_batch_to_memory(8192, accumulate, 256, needed, free)
    assert tokens * times >= 8192 * accumulate
    assert tokens * times < 8192 * accumulate + 64 * times
    assert 100 * tokens <= 0.8 * free or tokens == 256
    assert tokens == 8192 or 100 * 2 * tokens > 0.8 * free  # no smaller than needed
    assert asked == [1024]
    assert fit_batch_to_memory(1024, 2, 256, lambda tokens: None, 10) == (1024, 2)  # not measured, nothing changes
    assert fit_batch_to_memory(1024, 2, 256, lambda tokens: 10**12, None) == (1024, 2)


def test_this_machines_peak_is_not_hidden_by_pages_kept_or_garbage():
    """In a process of its own: it changes how memory is kept, and what other tests left would be freed in it."""
    if free_memory(torch.device("cpu")) is None or peak_memory(lambda: None, torch.device("cpu")) is None:
        pytest.skip("needs a processor's /proc to measure memory")
    done = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    for peak in map(int, done.stdout.split()):
        assert 60_000_000 < peak < 150_000_000, done.stdout


PEAKS = """
import gc
import torch
from regard.system.processor import keep_pages
from regard.training.measure import free_memory, peak_memory

class Last:
    def __init__(self, held):
        self.held, self.itself = held, self
    def __del__(self):
        self.held.clear()

def work():
    gc.collect()  # may come at any time
    torch.ones(16_000_000).sum()

def measured():
    held = [cycle := [torch.ones(12_000_000)]]  # garbage once the other is freed
    cycle.append(cycle)
    KEPT.append(held)
    Last(held)
    del held, cycle
    print(peak_memory(work, device))

KEPT, device = [], torch.device("cpu")
torch.set_num_threads(1)
assert free_memory(device) > 10**8
measured()
keep_pages()
for _ in range(3):
    measured()
"""


def test_a_container_leaves_what_it_does_not_use(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("600\n")
    (tmp_path / "memory.stat").write_text("anon 300\ninactive_file 250\n")
    assert _container(tmp_path) == [1000 - 600 + 250]
    (tmp_path / "memory.max").write_text("max\n")
    assert _container(tmp_path) == []
