import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols
from regard.decoding.search import Scheduler, search
from regard.decoding.strategies import Beam
from tests.decoding.counted_calls import calls
from tests.decoding.table_step import END, Table, TableStep

lengths = st.lists(st.integers(1, 12), min_size=1, max_size=12)


def sentences(lengths: list[int]) -> list[np.ndarray]:
    return [np.array([*((i + j) % 5 + 1 for j in range(n - 1)), END]) for i, n in enumerate(lengths)]


@given(lengths, st.integers(1, 4), st.integers(16, 120))
def test_the_budget_holds(lengths, width, budget):
    step = TableStep(Table(end=0.0))
    search(step, sentences(lengths), Decoding(beam=width, tokens=budget), Symbols(step.table.start))
    assert step.fullest * width <= max(budget, max(lengths) * width)
    assert max(step.rows) <= max(budget, max(lengths) * width)
    assert step.sentences == len(lengths)


@pytest.mark.usefixtures("watch_shapes")
def test_waiting_sentences_enter_while_others_run_but_not_one_by_one():
    """A quarter of the budget at a time: 2 of the 8 sentences that fit."""
    step = TableStep(Table(end=0.0))
    search(step, sentences([4] * 40), Decoding(beam=2, tokens=64), Symbols(step.table.start))
    assert step.calls.count("start") == 1
    assert 3 < step.calls.count("admit") <= (40 - 8) / 2


def test_the_longest_sources_come_first():
    step = TableStep(Table(end=0.0))
    search(step, sentences([4, 2, 9, 1, 7, 7]), Decoding(beam=1, tokens=16), Symbols(step.table.start))
    assert step.opened == [9, 7, 7, 4, 2, 1]


def test_a_sentence_above_the_budget_runs_alone():
    step = TableStep(Table(end=0.0))
    found = search(step, sentences([30, 3, 30]), Decoding(beam=2, tokens=16), Symbols(step.table.start))
    assert all(found)
    assert step.fullest == 30
    assert "admit" not in step.calls


def test_greedy_rows_that_stay_are_not_reordered():
    step = TableStep(Table(end=-100.0))
    search(step, sentences([3, 3]), Decoding(beam=1, max_extra=4), Symbols(step.table.start))
    assert step.calls == ["start"] + ["step"] * 7


@given(lengths, st.lists(st.integers(0, 2), max_size=12))
def test_sentences_put_in_while_it_runs_find_the_same(lengths, feeds):
    """What a server does: it feeds between two steps."""
    table, decoding, sources = Table(end=0.0), Decoding(beam=3, max_extra=5, tokens=64), sentences(lengths)
    scheduler = Scheduler(TableStep(table), Beam(3, (1,)), decoding, Symbols(table.start))
    found, waiting = {}, list(enumerate(sources))
    assert scheduler.idle
    assert scheduler.advance()[1] == []
    while waiting or not scheduler.idle:
        for _ in range(feeds.pop() if feeds else 1):
            if waiting:
                index, source = waiting.pop(0)
                scheduler.put(index, source, len(source) + 5, nbest=2)
        found |= {sentence.index: sentence.best.hypotheses for sentence in scheduler.advance()[1]}
    wanted = search(TableStep(table), sources, decoding, Symbols(table.start), nbest=2)
    assert [found[i] for i in range(len(sources))] == wanted


class _Idle:
    """A step that costs next to nothing, at V = 8,000: the same few candidates for any row; it ends after 30."""

    vocabulary = 8000

    def __init__(self) -> None:
        generator = np.random.default_rng(1)
        self.ids = np.stack([generator.permutation(np.arange(2, self.vocabulary))[:8] for _ in range(1024)])
        self.logs = np.sort(np.log(generator.dirichlet(np.full(8, 0.3), 1024) + 1e-9))[:, ::-1]
        self.steps = 0

    def start(self, sources):
        return np.zeros(len(sources), np.int64)

    def admit(self, state, sources):
        return np.append(state, self.start(sources))

    def select(self, state, rows_M):
        return state[rows_M]

    def step(self, state, tokens_N):
        self.steps += 1
        self.age, self.lines = state + 1, (tokens_N * 31 + state) % 1024
        return self.age, self

    def best(self, k, without=()):
        ids_Nk, log_probability_Nk = self.ids[self.lines, :k].copy(), self.logs[self.lines, :k].copy()
        ids_Nk[self.age > 30, 0] = END
        log_probability_Nk[self.age > 30, 1:] -= 50.0
        return ids_Nk, log_probability_Nk


def test_the_host_side_costs_little():
    """64 sentences of beam 5: a step calls about two functions for each of the 320 rows."""
    step, found = _Idle(), []
    sources = [np.zeros(20, np.int64)] * 640
    asked = Decoding(beam=5, tokens=64 * 5 * 20), Symbols(step.vocabulary)
    made = calls(lambda: found.extend(search(step, sources, *asked)))
    assert {len(h.tokens) for [h] in found} == {30}
    assert made / step.steps < 4 * 64 * 5
