"""Ensembles: a search over them is one over averaged probabilities, computed in plain loops."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import Decoding
from regard.decoding.ensemble import EnsembleAnswer, EnsembleStep
from regard.decoding.search import sample, search
from tests.decoding.table_step import Table, TableAnswer, TableStep, chances
from tests.decoding.test_search import plain, rules, sentence, sources, symbols, textbook


@dataclass(frozen=True)
class Mean(Table):
    """The mean of the probabilities of several tables."""

    tables: tuple[Table, ...] = ()

    def log_probabilities(self, source, prefix):
        every = [np.exp(table.log_probabilities(source, prefix)) for table in self.tables]
        return np.log(sum(every) / len(every))


def mean_of(vocabulary: int, *seeds: int) -> Mean:
    return Mean(vocabulary, tables=tuple(Table(vocabulary, seed, end=0.5) for seed in seeds))


def steps_of(mean: Mean) -> EnsembleStep:
    return EnsembleStep([TableStep(table) for table in mean.tables])


@given(sources, st.integers(3, 30), st.lists(st.integers(0, 999), min_size=1, max_size=3), st.integers(1, 4), rules)
def test_a_beam_is_that_over_averaged_probabilities(sources, vocabulary, seeds, width, rules):
    mean, decoding = mean_of(vocabulary, *seeds), Decoding(beam=width, max_extra=4, tokens=40, **rules)
    found = search(steps_of(mean), sources, decoding, symbols(mean), nbest=width)
    for source, hypotheses in zip(sources, found, strict=True):
        wanted = textbook(mean, source, decoding, width)
        assert plain(hypotheses) == [(pytest.approx(score, rel=1e-9), *rest) for score, *rest in wanted]


@given(sources, st.integers(0, 999), st.integers(1, 4))
def test_one_model_with_itself_is_the_model_alone(sources, seed, width):
    table, decoding = Table(seed=seed), Decoding(beam=width, max_extra=4)
    twice = EnsembleStep([TableStep(table), TableStep(table)])
    found = search(twice, sources, decoding, symbols(table), nbest=width)
    assert found == search(TableStep(table), sources, decoding, symbols(table), nbest=width)
    sorting = decoding.model_copy(update={"top_k": 99})  # as the table draws
    drawn = sample(twice, sources, sorting, symbols(table), seed=1)
    assert drawn == sample(TableStep(table), sources, sorting, symbols(table), seed=1)


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.7, "top_k": 4}, {"top_p": 0.8}, {"typical": 0.5}])
def test_draws_are_of_the_mean(settings):
    mean, decoding = mean_of(6, 1, 2, 3), Decoding(**settings)
    lines = np.array([mean.log_probabilities((1, source), ()) for source in range(20)])
    answer = EnsembleAnswer([TableAnswer(_lines(table)) for table in mean.tables])
    uniform_N = np.random.default_rng(0).random(20)
    drawn = answer.sample(uniform_N, decoding, (3,)).tolist()
    for line, uniform, token in zip(lines, uniform_N, drawn, strict=True):
        odds = chances(line, decoding, (3,))
        order = sorted(odds, key=lambda token: (-odds[token], token)) if settings.keys() - {"typical"} else sorted(odds)
        below = sum(odds[one] for one in order[: order.index(token)])
        assert below - 1e-6 <= uniform <= below + odds[token] + 1e-6


def _lines(table: Table) -> np.ndarray:
    return np.array([table.log_probabilities((1, source), ()) for source in range(20)])


def test_ties_go_to_the_smaller_id_and_what_is_excluded_is_never_best():
    none = -np.inf
    answer = EnsembleAnswer([TableAnswer(np.log([[0.2, 0.2, 0.2, 0.4], [0.1, 0.3, 0.2, 0.4]]))] * 2)
    assert answer.best(2, (3,))[0].tolist() == [[0, 1], [1, 2]]
    assert answer.most_probable().tolist() == [3, 3]
    assert answer.most_probable(range(4)).tolist() == [-1, -1]
    assert np.isfinite(answer.best(9)[1]).sum(1).tolist() == [4, 4]
    masked = EnsembleAnswer([TableAnswer(np.array([[none, 0.0]])), TableAnswer(np.array([[none, 0.0]]))])
    assert masked.all().tolist() == [[none, 0.0]]
    assert masked.of(np.array([1])).tolist() == [0.0]
    assert masked.context() is None


class _Seen(TableAnswer):
    def __init__(self, heads: int) -> None:
        super().__init__(np.zeros((2, 3)))
        self.heads = heads

    def context(self) -> np.ndarray:
        return np.full((2, self.heads, 4), self.heads)


def test_the_heads_of_all_models_are_side_by_side():
    weight_NHS = EnsembleAnswer([_Seen(1), _Seen(2)]).context()
    assert weight_NHS is not None
    assert weight_NHS[0, :, 0].tolist() == [1, 2, 2]


@pytest.mark.usefixtures("watch_shapes")
def test_letters_mean_one_size():
    mean = mean_of(7, 1, 2)
    search(steps_of(mean), [sentence(1), sentence(2, 3)], Decoding(beam=2), symbols(mean))
