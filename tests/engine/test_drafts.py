"""Greedy search with a draft finds what it finds without, to the bit, in fewer passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols
from regard.decoding.search import Scheduler, search
from regard.engine import transformer
from regard.engine.transformer import FastTransformer
from regard.system import kernels
from regard.system.kernels.packing import Precision
from tests.engine.engines import both, pair
from tests.laws.families import Family, held
from tests.models.small_models import PIECES, sentences

SOURCES = sentences([3, 9, 5, 1, 7, 2], seed=4)
LONG = Decoding(beam=1, max_extra=30, tokens=10_000)


@pytest.fixture(autouse=True)
def any_size() -> Iterator[None]:
    """Small models verify, too."""
    with patch.object(transformer, "LARGE", 0):
        yield


@contextmanager
def counted() -> Iterator[list[int]]:
    """The tokens of each pass that verifies."""
    passes: list[int] = []
    whole = FastTransformer.verify

    def noted(self: Any, state: Any, tokens: Any) -> Any:
        passes.append(sum(map(len, tokens)))
        return whole(self, state, tokens)

    with patch.object(FastTransformer, "verify", noted):
        yield passes


def drawn(tokens: list[int], random: np.random.Generator) -> list[int]:
    """A draft: right, cut, longer, another word in it, one left out, noise, nothing."""
    kind, place = random.integers(7), int(random.integers(len(tokens) + 1))
    other = random.integers(0, PIECES, 50).tolist()
    drafts = [
        tokens,
        tokens[:place],
        [*tokens, 0, *tokens],
        [*tokens[:place], *other[:2], *tokens[place + 1 :]],
        [*tokens[:place], *tokens[place + 2 :]],
        other,
        [],
    ]
    return drafts[kind]


def assert_same(fast: Any, symbols: Symbols, decoding: Decoding, seed: int, **given: Any) -> None:
    """With drafts of all kinds, alone, among few and among many."""
    random = np.random.default_rng(seed)
    for scores in (True, False):
        wanted = search(fast, SOURCES, decoding, symbols, scores=scores, **given)
        for size in (1, 2, 3, len(SOURCES)):
            for begin in range(0, len(SOURCES), size):
                some = slice(begin, begin + size)
                drafts = [drawn(list(found.tokens), random) for (found,) in wanted[some]]
                asked = {name: each[some] for name, each in given.items()}
                found = search(fast, SOURCES[some], decoding, symbols, scores=scores, drafts=drafts, **asked)
                assert repr(found) == repr(wanted[some]), drafts


@pytest.mark.one_of(5)
@held("transformer", transformer=5)
def test_outputs_are_those_without(family: Family) -> None:
    _, fast = both(family)
    for end in (0, 3, 9):
        with counted() as passes:
            assert_same(fast, Symbols(PIECES, end=end, without=(1, 4)), LONG.model_copy(update={"max_extra": 9}), end)
        assert passes


@pytest.mark.one_of(6)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("choices", [{}, {"decoder_cell": "ssru"}], ids=["attention", "ssru"])
@pytest.mark.parametrize("end", [0, 3, 7, 11, PIECES - 1])
def test_long_outputs_in_every_precision(precision: Precision, choices: dict[str, str], end: int) -> None:
    _, fast = pair(choices, precision=precision)
    symbols = Symbols(PIECES, end=end)
    assert_same(fast, symbols, LONG, end)
    begins = [np.random.default_rng(place).integers(2, PIECES, place % 4).tolist() for place in range(len(SOURCES))]
    assert_same(fast, symbols, LONG, end + 1, prefixes=begins)
    kernels.use_threads(2)
    assert_same(fast, symbols, LONG, end + 2)


def test_those_that_refill_and_those_of_few_pieces() -> None:
    """Sentences enter beside rows that are older; each with pieces of its own."""
    _, fast = pair({})
    for step in (fast, fast.with_shortlist(lambda ids: np.union1d(ids, np.arange(0, PIECES, 3)))):
        with counted() as passes:
            assert_same(step, Symbols(PIECES, end=3), LONG.model_copy(update={"tokens": 12}), 5)
        assert passes


def test_a_right_draft_takes_few_passes() -> None:
    _, fast = pair({})
    wanted = search(fast, SOURCES[:1], LONG, Symbols(PIECES, without=(0, 1)))
    tokens = list(wanted[0][0].tokens)
    assert len(tokens) == len(SOURCES[0]) + 30
    for draft, most in ((tokens, 4), ([*tokens[:9], 2, *tokens[10:]], 6)):
        with counted() as passes:
            assert search(fast, SOURCES[:1], LONG, Symbols(PIECES, without=(0, 1)), drafts=[draft]) == wanted
        assert len(passes) <= most


def test_who_makes_no_use_of_them() -> None:
    """Beams, constrained outputs, many rows, and small models, whose steps take less time."""
    _, fast = pair({})
    right = search(fast, SOURCES, LONG, Symbols(PIECES))
    drafts = [list(one.tokens) for (one,) in right]
    for rules in ({"beam": 2}, {"no_repeat_ngram": 2}, {"min_length": 3}):
        decoding = LONG.model_copy(update=rules)
        with counted() as passes:
            found = search(fast, SOURCES, decoding, Symbols(PIECES), drafts=drafts)
        assert (found, passes) == (search(fast, SOURCES, decoding, Symbols(PIECES)), [])
    with counted() as passes, patch.object(Scheduler, "most_drafted", 0):
        assert search(fast, SOURCES, LONG, Symbols(PIECES), drafts=drafts) == right
    with patch.object(transformer, "LARGE", 1 << 20), counted() as few:
        assert search(fast, SOURCES, LONG, Symbols(PIECES), drafts=drafts) == right
    assert passes == few == []


def test_learned_positions_that_a_search_never_reaches() -> None:
    """A draft may go on behind the last of them."""
    _, fast = pair({"positions": "learned"})
    for end in range(PIECES):
        given = fast, SOURCES[:1], Decoding(beam=1, max_extra=100), Symbols(PIECES, end=end)
        try:
            wanted = search(*given)
        except ValueError:
            continue
        tokens = list(wanted[0][0].tokens)
        with counted() as passes:
            assert search(*given, drafts=[tokens + [5 if end != 5 else 6] * 90]) == wanted
        assert passes
        return
    pytest.fail("no search ended")
