"""Many steps at once are those that NumPy takes one by one, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from regard.config import Decoding
from regard.decoding.hypotheses import Hypothesis, Symbols
from regard.decoding.search import Scheduler, enqueue, search
from regard.decoding.step import MultiStepRequest
from regard.decoding.strategies import Beam
from regard.engine.answer import Output
from regard.system.errors import RegardError
from regard.system.kernels.packing import Packer, Precision
from tests.engine.engines import both, pair
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


def scheduled(fast: Any, decoding: Decoding) -> Scheduler:
    scheduler = Scheduler(fast, Beam(decoding.beam), decoding, Symbols(PIECES))
    enqueue(scheduler, SOURCES)
    return scheduler


def same(found: list[list[Hypothesis]], wanted: list[list[Hypothesis]]) -> bool:
    """Equal to the bit, NaN included."""
    return repr(found) == repr(wanted)


@pytest.mark.one_of(28)
@held("transformer", transformer=9)
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_they_are_those_of_single_steps(family: Family, beam: int, alpha: float) -> None:
    _, fast = both(family)
    decoding = Decoding(beam=beam, length_penalty=alpha, max_extra=9, tokens=60)
    with counted(fast) as calls:
        for nbest in {1, beam}:
            given = fast, SOURCES, decoding, Symbols(PIECES, without=(1, 4))
            assert same(search(*given, nbest=nbest), one_by_one(*given, nbest=nbest))
    assert calls


@pytest.mark.one_of(6)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("choices", [{}, {"decoder_cell": "ssru"}], ids=["attention", "ssru"])
@pytest.mark.parametrize("end", [0, 3, 7, 11, PIECES - 1])
def test_long_searches_that_end_late(precision: Precision, choices: dict[str, str], end: int) -> None:
    """Some piece ends a row, most often none; with and without scores the tokens are the same."""
    _, fast = pair(choices, precision=precision)
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


def test_rows_beyond_a_number_are_stepped_one_by_one() -> None:
    _, fast = pair({})
    decoding = Decoding(beam=2, max_extra=6, tokens=10_000)
    for most, expected in ((len(SOURCES) * 2, True), (len(SOURCES) * 2 - 1, False)):
        with patch.object(Scheduler, "most_rows", most), counted(fast) as calls:
            next(scheduled(fast, decoding).run())
        assert bool(calls) == expected


def test_steps_stop_where_a_row_falls_below_its_bar() -> None:
    """A row that the finished ones beat is left to NumPy before its next step."""
    _, fast = pair({})
    state = fast.start(SOURCES[:1])
    one, none = np.zeros(1, np.int64), np.zeros(1)
    for bar, steps in ((-np.inf, 5), (-1e-6, 0)):
        asked = MultiStepRequest(one + PIECES, one, none, none + bar, none + 1.0, 1, (0,), 0, True, 5)
        state, found, _ = fast.multi_step(state, asked)
        assert found.tokens_MS.shape[1] == steps


@pytest.mark.one_of(4)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("seed", range(8))
def test_ties_are_broken_as_in_numpy(precision: Precision, seed: int) -> None:
    """Pieces with equal rows have equal scores."""
    _, fast = pair({}, precision=precision)
    weight = np.random.default_rng(seed).integers(-1, 2, (PIECES, 12)).astype(np.float32)
    weight[::3], weight[1::3] = weight[0], weight[1]
    if seed == 0:
        weight[:] = 0.0
    fast.output = Output(weight, Packer(precision))
    for beam in (1, 2, 3, 5):
        given = fast, SOURCES, Decoding(beam=beam, max_extra=7), Symbols(PIECES, end=PIECES - 1)
        for nbest in {1, beam}:
            assert same(search(*given, nbest=nbest), one_by_one(*given, nbest=nbest))


def test_learned_positions_that_a_search_never_reaches() -> None:
    """A limit above the positions there are fails only where a row gets there."""
    _, fast = pair({"positions": "learned"})
    ended = 0
    for end in range(PIECES):
        given = fast, SOURCES[:1], Decoding(beam=1, max_extra=100), Symbols(PIECES, end=end)
        try:
            wanted = one_by_one(*given)
        except ValueError:
            with pytest.raises(ValueError, match="learned positions"):
                search(*given)
        else:
            ended += 1
            assert same(search(*given), wanted)
    assert ended


def given_arrays(**changed: Any) -> dict[str, Any]:
    """Arguments of a search of two rows of two sentences, three steps."""
    _, fast = pair({})
    state = fast.start(SOURCES[:2])
    longs, ints, floats = np.zeros(4, np.int64), np.zeros(4, np.int32), np.zeros(4)
    rows: dict[str, Any] = {
        "hidden": np.zeros((4, 12), np.float32),
        **fast.output.search_arguments(()),
        "end": 0,
        "width": 2,
        "steps": 3,
        "scored": True,
        "count": 2,
        "slots": state.past.peek(16, state.ancestors_NS, state.lengths_N),
        "token": longs + PIECES,
        "sentence": np.array([0, 1, 0, 0]),
        "origin": np.arange(4),
        "length": ints.copy(),
        "ancestors": np.zeros((4, 4), np.int32),
        "memory_first": ints.copy(),
        "memory_length": ints + 1,
        "log_probability": floats.copy(),
        "bar": floats - np.inf,
        "penalty": floats + 1,
        "tokens": np.zeros((4, 3), np.int64),
        "log_probabilities": np.zeros((4, 3)),
        "past": state.past.of_layer,
        "memory": state.memory.of_layer,
    }
    return {"stack": fast.decoder.stack, "longest": 4, **rows, **changed}


def run(stack: Any, longest: int, **given: Any) -> Any:
    return stack.search(longest, **given)


HOSTILE: dict[str, dict[str, Any]] = {
    "too few sentences": {"sentence": np.zeros(1, np.int64)},
    "sentences apart": {"sentence": np.zeros(8, np.int64)[::2]},
    "too wide": {"width": 1 << 62},
    "no width": {"width": 0},
    "more rows of a sentence than its width": {"width": 1, "sentence": np.zeros(4, np.int64)},
    "no room": {"width": 3},
    "more rows than there are": {"count": 5},
    "negative steps": {"steps": -1},
    "steps without slots": {"steps": 4},
    "long rows": {"length": np.full(4, 2, np.int32)},
    "negative lengths": {"length": np.full(4, -1, np.int32)},
    "tokens that are none": {"token": np.full(4, PIECES + 1)},
    "slots that are none": {"slots": np.full(16, 1 << 20, np.int32)},
    "memory that is none": {"memory_first": np.full(4, 1 << 20, np.int32)},
    "a narrow table": {"tokens": np.zeros((4, 2), np.int64)},
    "a table apart": {"tokens": np.zeros((4, 6), np.int64)[:, ::2]},
    "another hidden size": {"hidden": np.zeros((4, 11), np.float32)},
    "more pieces": {"pieces": 1 << 20},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_arrays_that_do_not_fit_are_refused(name: str) -> None:
    run(**given_arrays())
    with pytest.raises(ValueError):
        run(**given_arrays(**HOSTILE[name]))


def test_arrays_that_lie_upon_each_other_stay_inside() -> None:
    """What comes out is not defined; nothing outside of them is read or written (scripts/sanitize)."""
    for one, other in (("token", "sentence"), ("origin", "sentence"), ("length", "memory_first")):
        given = given_arrays()
        given[one] = given[other]
        with suppress(ValueError):
            run(**given)
    given = given_arrays()
    given["length"] = given["ancestors"].reshape(-1)[:4]
    with suppress(ValueError):
        run(**given)


def test_a_beam_wider_than_the_vocabulary() -> None:
    _, fast = pair({})
    given = fast, SOURCES[:1], Decoding(beam=PIECES + 3, max_extra=2), Symbols(PIECES)
    assert same(search(*given, nbest=5), one_by_one(*given, nbest=5))
