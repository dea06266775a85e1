"""A search that keeps to a shortlist is that over all pieces in which the others have no probability, to the token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols
from regard.decoding.search import search
from regard.models.decoding import stepper
from regard.system.kernels.packing import Precision
from tests.engine.engines import both, pair
from tests.laws.families import Family, held
from tests.models.small_models import PIECES, assert_near, sentences

SOURCES = sentences([3, 9, 1, 5, 7, 2], seed=4)


def pieces(source: np.ndarray) -> np.ndarray:
    """Five to some more of the pieces, by the source; one of them ends."""
    return np.unique([0, *(source * 7 + 3) % PIECES, *(source + 11) % PIECES, 2, 9])


class Masked:
    """A step of one sentence, and what of its scores is left."""

    def __init__(self, inner: Any, kept: np.ndarray) -> None:
        self._inner, self._kept = inner, kept
        self.start, self.select = inner.start, inner.select

    def step(self, state: Any, tokens_N: np.ndarray) -> tuple[Any, Masked]:
        state, answer = self._inner.step(state, tokens_N)
        left_NV = np.full((len(tokens_N), PIECES), -np.inf)
        left_NV[:, self._kept] = answer.all()[:, self._kept]
        self.score_NV = left_NV - np.logaddexp.reduce(left_NV, axis=1, keepdims=True)
        return state, self

    def best(self, k: int, without: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray]:
        score_NV = self.score_NV.copy()
        score_NV[:, list(without)] = -np.inf
        ids_Nk = np.argsort(-score_NV, axis=1, kind="stable")[:, :k]
        return ids_Nk, np.take_along_axis(score_NV, ids_Nk, 1)


@pytest.mark.one_of(24)
@held("transformer", transformer=7)
@pytest.mark.parametrize("beam", [1, 3])
def test_it_is_the_search_without_the_other_pieces(family: Family, beam: int) -> None:
    """Each sentence for itself; beside it, with many others and alone, the tokens are the same."""
    model, fast = both(family)
    decoding, symbols = Decoding(beam=beam, max_extra=6, tokens=60), Symbols(PIECES, without=(2, 4))
    alone = [search(Masked(stepper(model), pieces(one)), [one], decoding, symbols)[0][0] for one in SOURCES]
    short = fast.with_shortlist(pieces)
    for scores in (True, False):
        found = [one[0] for one in search(short, SOURCES, decoding, symbols, scores=scores)]
        found += [search(short, [one], decoding, symbols, scores=scores)[0][0] for one in SOURCES]
        assert [one.tokens for one in found] == [one.tokens for one in alone] * 2
        if scores or beam > 1:
            assert_near(np.array([one.score for one in found]), np.array([one.score for one in alone] * 2), 1e-4)


def test_of_all_pieces_the_coverage_penalty_is_that_of_the_engine() -> None:
    _, fast = both(Family("transformer", {}))
    short = fast.with_shortlist(lambda source: np.arange(PIECES))
    symbols = Symbols(PIECES, without=tuple(range(3, PIECES)))
    plain, covered = (Decoding(beam=3, max_extra=6, tokens=60, coverage_penalty=beta) for beta in (0.0, 2.0))
    found = [search(one, SOURCES, covered, symbols) for one in (short, fast)]
    assert [[one.tokens for one in line] for line in found[0]] == [[one.tokens for one in line] for line in found[1]]
    assert found[1] != search(fast, SOURCES, plain, symbols)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_scores_are_those_of_the_engine_itself(precision: Precision) -> None:
    """In each precision; with several sentences and, of another number of columns, with one."""
    _, fast = pair({}, precision=precision)
    short = fast.with_shortlist(pieces)
    for count in (1, 3):
        sources, tokens = SOURCES[:count], np.full(count, PIECES)
        _, whole = fast.step(fast.start(sources), tokens)
        _, found = short.step(short.start(sources), tokens)
        for row, source in enumerate(sources):
            kept = pieces(source)
            left = whole.all()[row, kept]
            left = left - np.logaddexp.reduce(left)
            assert_near(found.all()[row, kept], left, 1e-5)
            assert_near(found.of(np.full(count, kept[1]))[row], left[1], 1e-5)
            assert kept[left.argmax()] == found.most_probable()[row]
            drawn = found.sample(np.full(count, 0.999999), Decoding())[row]
            assert drawn in kept
        ids_Nk, best_Nk = found.best(PIECES, (0,))
        assert ids_Nk.shape[1] == max(len(pieces(source)) for source in sources)
        assert not (ids_Nk[best_Nk > -np.inf] == 0).any()
