"""Many steps at once are those that NumPy takes one by one, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from regard.config import Decoding
from regard.decoding.hypotheses import Hypothesis, Symbols
from regard.decoding.scheduler import Scheduler
from regard.decoding.search import search
from regard.decoding.step import MultiStepRequest
from regard.kernels.packing import Precision
from regard.system.errors import RegardError
from tests.fast.engines import pair, writing
from tests.laws.families import SOURCES, Family, held
from tests.models.small_models import PIECES, sentences


@contextmanager
def counted(fast: Any) -> Iterator[list[tuple[int, int]]]:
    """The steps of each call, asked for and taken."""
    calls: list[tuple[int, int]] = []
    whole = type(fast).multi_step

    def noted(self: Any, state: Any, asked: MultiStepRequest) -> Any:
        found = whole(self, state, asked)
        calls.append((asked.steps, found[1].tokens_MS.shape[1]))
        return found

    with patch.object(type(fast), "multi_step", noted):
        yield calls


def one_by_one(*given: Any, **options: Any) -> list[list[Hypothesis]]:
    with patch.object(Scheduler, "most_steps", 0):
        return search(*given, **options)


def same(found: list[list[Hypothesis]], wanted: list[list[Hypothesis]]) -> bool:
    """Equal to the bit, NaN included."""
    return repr(found) == repr(wanted)


@pytest.mark.one_of(4)
@held("transformer", transformer=9)
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_they_are_those_of_single_steps(family: Family, beam: int, alpha: float) -> None:
    _, fast = writing(family)
    decoding = Decoding(beam=beam, length_penalty=alpha, max_extra=9, tokens=60)
    with counted(fast) as calls:
        for nbest in {1, beam}:
            given = fast, SOURCES, decoding, Symbols(PIECES, without=(1, 4))
            assert same(search(*given, nbest=nbest), one_by_one(*given, nbest=nbest))
    assert calls


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("end", [0, 3, 7, 11, PIECES - 1])
def test_long_searches_that_end_late(precision: Precision, end: int) -> None:
    """Some piece ends a row, most often none; with and without scores the tokens are the same."""
    _, fast = pair({}, precision=precision)
    sources = sentences([3, 9, 5, 1], seed=end)
    for beam in (1, 3):
        given = fast, sources, Decoding(beam=beam, max_extra=40, tokens=10_000), Symbols(PIECES, end=end)
        with counted(fast) as calls:
            found = search(*given, nbest=beam)
        assert max(taken for _, taken in calls) > 1
        assert same(found, one_by_one(*given, nbest=beam))
        plain = search(*given, scores=False)
        assert [one[0].tokens for one in plain] == [one[0].tokens for one in found]
        assert same(plain, one_by_one(*given, scores=False))
        assert np.isnan(plain[0][0].score) == (beam == 1)


def test_what_is_no_number_is_refused() -> None:
    _, fast = pair({}, broken=True)
    for beam, scores in ((1, True), (1, False), (3, True)):
        with pytest.raises(RegardError, match="not numbers"):
            search(fast, SOURCES, Decoding(beam=beam), Symbols(PIECES), scores=scores)


def test_many_rows_are_stepped_one_by_one() -> None:
    _, fast = pair({})
    with counted(fast) as calls:
        search(fast, SOURCES * 5, Decoding(beam=2, max_extra=3), Symbols(PIECES))
    assert all(asked >= 1 for asked, _ in calls)
    assert len(calls) < 5


def test_a_beam_wider_than_the_vocabulary() -> None:
    _, fast = pair({})
    given = fast, SOURCES[:1], Decoding(beam=PIECES + 3, max_extra=2), Symbols(PIECES)
    assert same(search(*given, nbest=5), one_by_one(*given, nbest=5))
