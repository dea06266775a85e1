"""A model that is a table: next-token distributions drawn by a hash of (source, prefix), in float64.

It fits ``regard.decoding.step`` and is stricter than any real one: a state handed in twice, rows of a sentence that do
not lie side by side, a row that goes on after ``</s>``, all are errors.
"""

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from regard.config import Decoding

END = 0


@functools.lru_cache(maxsize=200_000)
def _draw(seed: int, vocabulary: int, sharpness: float, end: float, text: str) -> np.ndarray:
    digest = hashlib.sha256(f"{seed} {text}".encode()).digest()
    logits = np.random.default_rng(int.from_bytes(digest[:8], "little")).normal(size=vocabulary) * sharpness
    logits[END] += end
    return logits - np.log(np.exp(logits).sum())


@dataclass(frozen=True)
class Table:
    """``log_probabilities(source, prefix)``; ``end`` is added to the logit of ``</s>``."""

    vocabulary: int = 8
    seed: int = 0
    sharpness: float = 1.5
    end: float = 0.5

    @property
    def start(self) -> int:
        return self.vocabulary

    def log_probabilities(self, source: Sequence[int], prefix: Sequence[int]) -> np.ndarray:
        text = f"{[int(i) for i in source]} {[int(i) for i in prefix]}"
        return _draw(self.seed, self.vocabulary, self.sharpness, self.end, text)

    def answered(self, source: Sequence[int], given: Sequence[int]) -> np.ndarray:
        """After the tokens a step was given: a prompt's last one belongs to the source, the start symbol does not."""
        first = () if given[0] == self.start else (given[0],)
        return self.log_probabilities((*source, *first), given[1:])


class TableAnswer:
    def __init__(self, table_NV: np.ndarray) -> None:
        self._table_NV = table_NV

    def best(self, k: int, without: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray]:
        allowed = [token for token in range(self._table_NV.shape[1]) if token not in without]
        lines = [sorted(allowed, key=lambda token, line=line: (-line[token], token))[:k] for line in self._table_NV]
        ids_Nk = np.array(lines, np.int64)
        return ids_Nk, np.take_along_axis(self._table_NV, ids_Nk, axis=1)

    def most_probable(self, without: Sequence[int] = ()) -> np.ndarray:
        ids_Nk, log_probability_Nk = self.best(1, without)
        if not ids_Nk.shape[1]:
            return np.full(len(ids_Nk), -1)
        return np.where(log_probability_Nk > -np.inf, ids_Nk, -1)[:, 0]

    def of(self, tokens_N: np.ndarray) -> np.ndarray:
        return np.array([line[token] for line, token in zip(self._table_NV, tokens_N, strict=True)])

    def sample(self, uniform_N, decoding, without=(), seen_NS=None, banned_NF=None) -> np.ndarray:
        """By the books, one row at a time."""
        none = [()] * len(self._table_NV)
        seen, banned = none if seen_NS is None else seen_NS, none if banned_NF is None else banned_NF
        rows = zip(self._table_NV, uniform_N, seen, banned, strict=True)
        found = [_sampled(line, u, decoding, (*without, *no), had) for line, u, had, no in rows]
        return np.array(found, np.int64)

    def all(self) -> np.ndarray:
        return self._table_NV

    def rows(self, row_M: np.ndarray) -> "TableAnswer":
        return TableAnswer(self._table_NV[row_M])

    def context(self) -> None:
        return None


def _sampled(line: np.ndarray, uniform: float, decoding: Decoding, without: Sequence[int], seen: Sequence[int]) -> int:
    odds = chances(line, decoding, without, seen)
    tokens = sorted(odds, key=lambda token: (-odds[token], token))
    running = 0.0
    for token in tokens:
        running += odds[token]
        if uniform < running:
            return token
    return tokens[-1] if tokens else -1


def chances(
    line: np.ndarray, decoding: Decoding, without: Sequence[int] = (), seen: Sequence[int] = ()
) -> dict[int, float]:
    """What each token that may be drawn is drawn with: the definitions in plain loops."""
    scores = {token: float(score) for token, score in enumerate(line) if token not in without and score > -np.inf}
    for token in set(map(int, seen)) & set(scores):
        factor = decoding.repetition_penalty
        scores[token] = scores[token] * factor if scores[token] < 0 else scores[token] / factor
    if decoding.temperature == 0.0 or not scores:
        return {max(scores, key=lambda token: (scores[token], -token)): 1.0} if scores else {}
    highest = max(scores.values())
    odds = _shares({token: math.exp((score - highest) / decoding.temperature) for token, score in scores.items()})
    order = sorted(odds, key=lambda token: (-odds[token], token))
    if decoding.top_k:
        odds = _shares({token: odds[token] for token in order[: decoding.top_k]})
    if decoding.top_p < 1.0:
        odds = _fewest(odds, sorted(odds, key=lambda token: (-odds[token], token)), decoding.top_p)
    if decoding.min_p:
        odds = _shares({t: p for t, p in odds.items() if p >= decoding.min_p * max(odds.values())})
    if decoding.typical < 1.0:
        entropy = -sum(p * math.log(p) for p in odds.values() if p)
        surprise = {token: abs(-math.log(p) - entropy) for token, p in odds.items() if p}
        odds = _fewest(odds, sorted(surprise, key=lambda token: (surprise[token], token)), decoding.typical)
    return odds


def _shares(odds: dict[int, float]) -> dict[int, float]:
    total = sum(odds.values())
    return {token: p / total for token, p in odds.items()}


def _fewest(odds: dict[int, float], order: Sequence[int], share: float) -> dict[int, float]:
    kept: dict[int, float] = {}
    for token in order:
        if sum(kept.values()) < share:
            kept[token] = odds[token]
    return _shares(kept)


@dataclass
class _State:
    """Each row is (the sentence's number, its source, its tokens so far)."""

    rows: list[tuple[int, tuple[int, ...], tuple[int, ...]]]
    consumed: bool = False


@dataclass
class TableStep:
    """A step over a table, with what a test may want to know about its use."""

    table: Table
    calls: list[str] = field(default_factory=list)
    fullest: int = 0
    """The most source tokens remembered at once."""
    rows: list[int] = field(default_factory=list)
    """How many rows each step had."""
    sentences: int = 0
    opened: list[int] = field(default_factory=list)
    """The lengths of the sources in the order they were opened."""

    def start(self, sources: Sequence[np.ndarray]) -> _State:
        self.calls.append("start")
        return self._open([], sources)

    def admit(self, state: _State, sources: Sequence[np.ndarray]) -> _State:
        self.calls.append("admit")
        return self._open(self._consume(state), sources)

    def step(self, state: _State, tokens_N: np.ndarray) -> tuple[_State, TableAnswer]:
        self.calls.append("step")
        rows = []
        for (number, source, prefix), token in zip(self._consume(state), tokens_N.tolist(), strict=True):
            assert token != self.table.start or not prefix, "the start symbol comes first and only first"
            assert token != END or not prefix, "a finished row must leave"
            rows.append((number, source, (*prefix, token)))
        self.rows.append(len(rows))
        lines = [self.table.answered(source, prefix) for _, source, prefix in rows]
        return self._checked(rows), TableAnswer(np.array(lines))

    def select(self, state: _State, rows_M: np.ndarray) -> _State:
        self.calls.append("select")
        rows = self._consume(state)
        return self._checked([rows[row] for row in rows_M.tolist()])

    def _open(self, rows: list, sources: Sequence[np.ndarray]) -> _State:
        assert len(sources) > 0, "opening no row at all is a wasted call"
        for source in sources:
            rows.append((self.sentences, tuple(np.asarray(source).tolist()), ()))
            self.sentences += 1
            self.opened.append(len(source))
        return self._checked(rows)

    def _consume(self, state: _State) -> list:
        assert not state.consumed, "this state was handed in before"
        state.consumed = True
        return list(state.rows)

    def _checked(self, rows: list) -> _State:
        assert rows, "a state without rows"
        numbers = [number for number, _, _ in rows]
        blocks = [number for i, number in enumerate(numbers) if i == 0 or numbers[i - 1] != number]
        assert len(blocks) == len(set(blocks)), "rows of one sentence must lie side by side"
        remembered = {number: len(source) for number, source, _ in rows}
        self.fullest = max(self.fullest, sum(remembered.values()))
        return _State(rows)
