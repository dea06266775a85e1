"""The coverage penalty against its rule over all outputs of small Markov chains, and the law neighbours."""

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from regard.config import Decoding, recipe_from
from regard.decoding.coverage import CoverageStep
from regard.decoding.ensemble import EnsembleStep
from regard.decoding.hypotheses import Hypothesis, Symbols, length_penalty
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


def rule(source: Sequence[int], output: Sequence[int], decoding: Decoding, *tables: Table) -> float:
    """The score of an output, ``</s>`` its last token, by the equation; of several models by their means."""
    covered, total = [0.0] * len(source), 0.0
    for place, token in enumerate(output):
        every = [table.log_probabilities(source, output[:place])[token] for table in tables]
        total += math.log(sum(map(math.exp, every)) / len(tables))
        for head in (head for table in tables for head in weights(table.seed, source, output[:place]).tolist()):
            covered = [one + weight / HEADS / len(tables) for one, weight in zip(covered, head, strict=True)]
    coverage = sum(math.log(min(one, 1.0)) for one in covered)
    return total / length_penalty(len(output), decoding.length_penalty) + decoding.coverage_penalty * coverage


def outputs(limit: int) -> list[tuple[int, ...]]:
    """Every output that ends within a limit."""
    words = range(1, SIZE)
    return [(*said, END) for length in range(limit) for said in itertools.product(words, repeat=length)]


def sources(count: int, seed: int) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.integers(1, SIZE, draw.integers(1, 4)) for _ in range(count)]


def tokens(found: list[list[Hypothesis]]) -> list[list[tuple[Any, ...]]]:
    return [[(one.tokens, one.score, one.finished) for one in line] for line in found]


def allowed(output: tuple[int, ...], changes: dict[str, Any]) -> bool:
    said = output[:-1]
    return len(said) >= changes.get("min_length", 0) and ("no_repeat_ngram" not in changes or len({*said}) == len(said))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("changes", [{}, {"no_repeat_ngram": 1}, {"min_length": 1}, {"refill": True}])
def test_a_beam_of_everything_finds_the_best_by_the_rule(seed: int, models: int, changes: dict[str, Any]) -> None:
    """So pruning is exact: a penalty is at most 0, which bounds what a row may still get."""
    tables, given = [Table(SIZE, seed + 10 * model, end=0.0) for model in range(models)], sources(6, seed)
    step = EnsembleStep([Attentive(table) for table in tables])
    decoding = DECODING.model_copy(update={"beam": 100, "max_extra": 1, "coverage_penalty": 2.0, **changes})
    changed = 0
    for source, line in zip(given, search(step, given, decoding, SYMBOLS, nbest=3), strict=True):
        every = [one for one in outputs(len(source) + 1) if allowed(one, changes)]
        scores = {output: rule(source.tolist(), output, decoding, *tables) for output in every}
        best = sorted(scores, key=scores.__getitem__, reverse=True)[: len(line)]
        assert [(*one.tokens, END) for one in line] == best
        assert [one.score for one in line] == pytest.approx([scores[one] for one in best], rel=1e-12)
        plain = decoding.model_copy(update={"coverage_penalty": 0.0})
        changed += best[0] != max(every, key=lambda one: rule(source.tolist(), one, plain, *tables))
    assert changed


@pytest.mark.parametrize("changes", [{}, {"no_repeat_ngram": 2}, {"stopping": "first"}, {"refill": True}])
def test_an_output_does_not_depend_on_its_batch(changes: dict[str, Any]) -> None:
    table, given = Table(SIZE, 7), sources(24, 3)
    decoding = DECODING.model_copy(update={"tokens": 30, **changes})
    together = tokens(search(Attentive(table), given, decoding, SYMBOLS, nbest=2))
    alone = [tokens(search(Attentive(table), [source], decoding, SYMBOLS, nbest=2))[0] for source in given]
    assert together == alone
    for source, line in zip(given, together, strict=True):
        for said, score, finished in line:
            if finished:
                assert score == pytest.approx(rule(source.tolist(), (*said, END), decoding, table), rel=1e-12)


def test_without_it_nothing_is_summed_and_without_attention_it_is_refused() -> None:
    table, given = Table(SIZE, 1), sources(3, 1)
    plain = DECODING.model_copy(update={"coverage_penalty": 0.0})
    search(TableStep(table), given, plain, SYMBOLS)
    with refused(UsageError, "decoding.coverage_penalty", "attention"):
        search(TableStep(table), given, DECODING, SYMBOLS)
    assert not hasattr(CoverageStep(TableStep(table)), "multi_step")
    with refused(UsageError, "recipe", "term_bonus", "coverage_penalty"):
        recipe_from({"task": "translation", "decoding": {"coverage_penalty": 0.4, "term_bonus": 1.0}})
