"""A table that hands out attention, and the law neighbours of the coverage penalty; its rule is in ``test_pairs``."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from regard.config import Decoding, recipe_from
from regard.decoding.coverage import CoverageStep
from regard.decoding.hypotheses import Hypothesis, Symbols
from regard.decoding.search import search
from regard.system.errors import UsageError
from tests.decoding.table_step import END, Table, TableAnswer, TableStep
from tests.refusals import refused

HEADS = 2
SIZE = 4
DECODING = Decoding(beam=3, max_extra=2, length_penalty=0.6, coverage_penalty=0.4)
SYMBOLS = Symbols(SIZE, END, ())


def weights(seed: int, source: Sequence[int], prefix: Sequence[int]) -> np.ndarray:
    """``weight_HS``: what the last token of a prefix attends to, a pure function of both."""
    digest = hashlib.sha256(f"{seed} {list(map(int, source))} {list(map(int, prefix))}".encode()).digest()
    drawn_HS = np.random.default_rng(int.from_bytes(digest[:8], "little")).exponential(size=(HEADS, len(source))) ** 3
    return drawn_HS / drawn_HS.sum(1, keepdims=True)


@dataclass
class Attentive(TableStep):
    """A table that also hands out attention."""

    def step(self, state: Any, tokens_N: np.ndarray) -> tuple[Any, Any]:
        state, answer = super().step(state, tokens_N)
        longest = max(len(source) for _, source, _ in state.rows)
        weight_NHS = np.zeros((len(state.rows), HEADS, longest))
        for row, (_, source, prefix) in enumerate(state.rows):
            weight_NHS[row, :, : len(source)] = weights(self.table.seed, source, prefix[1:])
        return state, AttentiveAnswer(answer.all(), weight_NHS)


class AttentiveAnswer(TableAnswer):
    def __init__(self, table_NV: np.ndarray, weight_NHS: np.ndarray) -> None:
        super().__init__(table_NV)
        self._weight_NHS = weight_NHS

    def context(self) -> np.ndarray:  # type: ignore[override]
        return self._weight_NHS


def sources(count: int, seed: int) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.integers(1, SIZE, draw.integers(1, 4)) for _ in range(count)]


def tokens(found: list[list[Hypothesis]]) -> list[list[tuple[Any, ...]]]:
    return [[(one.tokens, one.score, one.finished) for one in line] for line in found]


@pytest.mark.parametrize("changes", [{}, {"no_repeat_ngram": 2}, {"stopping": "first"}, {"refill": True}])
def test_an_output_does_not_depend_on_its_batch(changes: dict[str, Any]) -> None:
    table, given = Table(SIZE, 7), sources(24, 3)
    decoding = DECODING.model_copy(update={"tokens": 30, **changes})
    together = tokens(search(Attentive(table), given, decoding, SYMBOLS, nbest=2))
    alone = [tokens(search(Attentive(table), [source], decoding, SYMBOLS, nbest=2))[0] for source in given]
    assert together == alone


def test_without_it_nothing_is_summed_and_without_attention_it_is_refused() -> None:
    table, given = Table(SIZE, 1), sources(3, 1)
    plain = DECODING.model_copy(update={"coverage_penalty": 0.0})
    search(TableStep(table), given, plain, SYMBOLS)
    with refused(UsageError, "decoding.coverage_penalty", "attention"):
        search(TableStep(table), given, DECODING, SYMBOLS)
    assert not hasattr(CoverageStep(TableStep(table)), "multi_step")
    with refused(UsageError, "recipe", "term_bonus", "coverage_penalty"):
        recipe_from({"task": "translation", "decoding": {"coverage_penalty": 0.4, "term_bonus": 1.0}})
