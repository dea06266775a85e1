"""Hypotheses of a search: one a row of its batch, n-best lists, scores with the length penalty [Wu16 §7], a trace.

Rows of a sentence are adjacent.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.decoding.step import Answer, MultiStepOutput
from regard.text.confidence import confidence_of

if TYPE_CHECKING:
    from regard.decoding.draft import Draft
    from regard.decoding.terms import Terms

Number = TypeVar("Number", np.int64, np.float64)
Length = TypeVar("Length", float, NDArray[np.float64])
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Stop = Callable[[Ints], bool]
"""A stopping criterion beyond ``</s>``: called after each step with the tokens of a row."""


@dataclass(frozen=True)
class Hypothesis:
    """One output of a search. ``tokens`` come without ``</s>``; log-probabilities are natural logarithms.

    Score and log-probabilities are NaN where a greedy search was not asked for them.
    """

    tokens: tuple[int, ...]
    score: float
    """``log_probability / length_penalty``: what hypotheses are compared by, larger is better."""
    log_probability: float
    """Of the whole output, ``</s>`` included: the sum of ``token_log_probabilities``."""
    token_log_probabilities: tuple[float, ...]
    """One for each token, and a last one for ``</s>`` if it is finished."""
    finished: bool
    """``</s>`` was produced; otherwise the output was cut off by the limit."""

    @property
    def confidence(self) -> float:
        """The geometric mean of the tokens' probabilities, 0 to 1."""
        return confidence_of(self.log_probability, len(self.token_log_probabilities))


def length_penalty(length: Length, alpha: float, by: Literal["gnmt", "power"] = "gnmt") -> Length:
    """``((5 + length) / 6) ** alpha``, by which a log-probability is divided [Wu16 §7, eq. 14; Vaswani17 §6.1].

    ``length`` counts ``</s>``. It is at least 1 at ``length`` 1, never falls as ``length`` grows (``alpha`` >= 0), and
    ``alpha`` 0 gives plain log-probabilities.
    """
    return (length if by == "power" else (5.0 + length) / 6.0) ** alpha


class NBest:
    """The n best hypotheses of one sentence so far, best first; ties keep the earlier one first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.hypotheses: list[Hypothesis] = []

    def add(self, hypothesis: Hypothesis) -> None:
        """Put it in its place; the worst one leaves if there are more than n."""
        bisect.insort_right(self.hypotheses, hypothesis, key=lambda h: -h.score)
        del self.hypotheses[self.size :]

    @property
    def bar(self) -> float:
        """The score that a further hypothesis has to exceed; minus infinity while there are fewer than n."""
        return self.hypotheses[-1].score if len(self.hypotheses) == self.size else -np.inf


@dataclass(frozen=True)
class Symbols:
    """Special ids for search. ``without`` are never produced; ``start`` lies outside the output vocabulary."""

    start: int
    end: int = 0
    without: tuple[int, ...] = (1,)
    prefix: tuple[int, ...] = ()
    """What outputs begin with."""


MORE_ROWS = 3
"""Rows of a sentence with terms beyond the beam: better outputs for less than twice the time of a beam of 5."""


@dataclass(frozen=True)
class Sentence:
    """A sentence under search, named by ``index``, and by ``sample`` where several are drawn of one source."""

    index: int
    source: Ints
    limit: int
    """The most tokens an output may have, ``</s>`` counted."""
    best: NBest
    first: int | None = None
    """The last token of a prompt, whose other tokens are ``source``: the first that a language model is stepped with.

    None: the start symbol, after a source that is not part of the output (translation).
    """
    sample: int = 0
    prefix: tuple[int, ...] = ()
    """What its outputs begin with."""
    least: int = 0
    """The least tokens of an output, ``</s>`` not counted."""
    terms: Terms | None = None
    """What its outputs contain."""
    copies: int = 1
    """Samples that enter together, numbered from ``sample``."""
    forbidden: tuple[tuple[int, ...], ...] = ()
    """Sequences of tokens that its outputs do not have."""
    draft: Draft | None = None
    """What its output may be like."""

    @property
    def tokens(self) -> int:
        """Tokens a row keeps in memory: the source; for language models also the output."""
        own = self.limit if self.first is not None or not len(self.source) else 0
        return len(self.source) + own

    def width(self, beam: int) -> int:
        """Its rows at most: of one with terms a few more than the beam, if their progress tells so many apart."""
        return beam if self.terms is None else max(beam, min(self.terms.banks, beam + MORE_ROWS))


@dataclass(frozen=True)
class Choice:
    """The choice of a step: new row ``i`` is old row ``parent_M[i]`` and one more token.

    Rows of one sentence stay adjacent, sentences in order; within a sentence the best row comes first.
    """

    parent_M: Ints | None
    """None: every row continues, in order."""
    token_M: Ints
    token_log_probability_M: Floats

    def parents(self) -> Ints:
        """``parent_M``, as numbers also where every row continues."""
        return np.arange(len(self.token_M)) if self.parent_M is None else self.parent_M


RECENT = 16
"""Steps that are kept as choices at most before they are written to the histories."""


@dataclass(frozen=True)
class Rows:
    """N live rows of B sentences. ``sentence_N`` points into ``sentences`` and never falls.

    A step only notes its choice, since most steps of a search end nothing; :meth:`with_histories` writes choices to the
    histories, whose rows are those before the ``recent`` steps. After a row's length a history holds anything.
    """

    sentences: list[Sentence]
    sentence_N: Ints
    length_N: Ints
    token_N: Ints
    """The last token of each row: the next input of the step (the start symbol or the prompt's last at first)."""
    log_probability_N: Floats
    tokens_NT: Ints
    token_log_probability_NT: Floats
    longest: int = 0
    """Length of the longest row."""
    recent: tuple[Choice, ...] = ()

    @property
    def count(self) -> int:
        """N, the rows there are."""
        return len(self.sentence_N)

    def given(self) -> Ints:
        """``token_N``: what each row continues with as long as it is within its sentence's prefix, else -1."""
        if not any(sentence.prefix for sentence in self.sentences):
            return np.full(self.count, -1)
        places = zip(self.sentence_N.tolist(), self.length_N.tolist(), strict=True)
        left = (self.sentences[sentence].prefix[length:] for sentence, length in places)
        return np.array([tokens[0] if tokens else -1 for tokens in left], np.int64)

    def force(self, choice: Choice) -> Choice:
        """The choice of a step; a row that is within its sentence's prefix continues with that, as if it were certain.

        A row within it is the only one of its sentence.
        """
        given_N = self.given()
        row_M = np.flatnonzero(given_N >= 0)
        if not len(row_M):
            return choice
        parent_M = choice.parents()
        free_M = given_N[parent_M] < 0
        every_M = np.append(parent_M[free_M], row_M)
        order_M = self.sentence_N[every_M].argsort(kind="stable")
        token_M = np.append(choice.token_M[free_M], given_N[row_M])
        log_probability_M = np.append(choice.token_log_probability_M[free_M], np.zeros(len(row_M)))
        return Choice(every_M[order_M], token_M[order_M], log_probability_M[order_M])

    def all_sentences_live(self) -> bool:
        """Whether each sentence has a row."""
        sentence_N = self.sentence_N
        changes = np.count_nonzero(sentence_N[1:] != sentence_N[:-1]) if len(self.sentences) > 1 else 0
        return self.count > 0 and changes + 1 == len(self.sentences)

    def extend(self, choice: Choice) -> Rows:
        """The rows after a step: each parent's tokens plus the chosen token."""
        if len(self.recent) == RECENT:
            return self.with_histories().extend(choice)
        sentence_M, length_M, log_probability_M = self.sentence_N, self.length_N, self.log_probability_N
        longest = self.longest
        if choice.parent_M is not None:
            sentence_M, length_M = sentence_M.take(choice.parent_M), length_M.take(choice.parent_M)
            log_probability_M = log_probability_M.take(choice.parent_M)
            longest = int(length_M.max(initial=0))  # less when a long sentence has left
        return Rows(
            self.sentences,
            sentence_M,
            length_M + 1,
            choice.token_M,
            log_probability_M + choice.token_log_probability_M,
            self.tokens_NT,
            self.token_log_probability_NT,
            longest + 1,
            (*self.recent, choice),
        )

    def with_histories(self) -> Rows:
        """The same rows with all their tokens in the histories."""
        if not self.recent:
            return self
        steps = len(self.recent)
        tokens_NS = np.empty((self.count, steps), np.int64)
        token_log_probability_NS = np.empty((self.count, steps))
        before_N = np.arange(self.count)
        for step, choice in zip(range(steps - 1, -1, -1), reversed(self.recent), strict=True):
            tokens_NS[:, step] = choice.token_M.take(before_N)
            token_log_probability_NS[:, step] = choice.token_log_probability_M.take(before_N)
            before_N = before_N if choice.parent_M is None else choice.parent_M.take(before_N)
        places = (self.length_N - steps)[:, None] + np.arange(steps)
        return Rows(
            self.sentences,
            self.sentence_N,
            self.length_N,
            self.token_N,
            self.log_probability_N,
            _extend_history(self.tokens_NT, before_N, places, tokens_NS, self.longest),
            _extend_history(self.token_log_probability_NT, before_N, places, token_log_probability_NS, self.longest),
            self.longest,
        )

    def advance(self, found: MultiStepOutput) -> Rows:
        """The rows after steps that were taken at once."""
        steps = found.tokens_MS.shape[1]
        if not steps:
            return self
        rows = self.with_histories()
        length_M = rows.length_N.take(found.parent_M)
        places, longest = length_M[:, None] + np.arange(steps), int(length_M.max()) + steps
        own = found.parent_M, places
        return Rows(
            rows.sentences,
            rows.sentence_N.take(found.parent_M),
            length_M + steps,
            found.tokens_MS[:, -1],
            found.log_probability_M,
            _extend_history(rows.tokens_NT, *own, found.tokens_MS, longest),
            _extend_history(rows.token_log_probability_NT, *own, found.token_log_probability_MS, longest),
            longest,
        )

    def append(self, token_T: Ints, token_log_probability_T: Floats, begin_N: Ints, count_N: Ints) -> Rows:
        """The rows, whose histories are written, each with ``count_N`` further tokens, which begin at ``begin_N``."""
        if not count_N.any():
            return self
        length_N = self.length_N + count_N
        longest, all_N, none = int(length_N.max()), np.arange(self.count), np.zeros((self.count, 0), np.int64)
        tokens_NT = _extend_history(self.tokens_NT, all_N, none, none, longest)
        each_NT = _extend_history(self.token_log_probability_NT, all_N, none, none.astype(np.float64), longest)
        token_N, log_probability_N = self.token_N.copy(), self.log_probability_N.copy()
        rows = zip(self.length_N.tolist(), begin_N.tolist(), count_N.tolist(), strict=True)
        for row, (length, begin, count) in enumerate(rows):
            tokens_NT[row, length : length + count] = token_T[begin : begin + count]
            each_NT[row, length : length + count] = token_log_probability_T[begin : begin + count]
            for place in range(begin, begin + count):  # in the order of single steps
                log_probability_N[row] += token_log_probability_T[place]
                token_N[row] = token_T[place]
        return Rows(self.sentences, self.sentence_N, length_N, token_N, log_probability_N, tokens_NT, each_NT, longest)

    def keep(self, live_N: NDArray[np.bool_]) -> Rows:
        """Only the rows marked, and only the sentences that still have one."""
        if live_N.all():
            return self
        rows = self.with_histories()
        used_B = np.bincount(rows.sentence_N[live_N], minlength=len(rows.sentences)) > 0
        length_M = rows.length_N[live_N]
        return Rows(
            [sentence for sentence, used in zip(rows.sentences, used_B, strict=True) if used],
            (np.cumsum(used_B) - 1)[rows.sentence_N[live_N]],
            length_M,
            rows.token_N[live_N],
            rows.log_probability_N[live_N],
            rows.tokens_NT[live_N],
            rows.token_log_probability_NT[live_N],
            int(length_M.max(initial=0)),
        )

    def open(self, sentences: list[Sentence], start: int) -> Rows:
        """These rows, followed by one empty row for each new sentence, before its ``first`` token or ``start``."""
        rows, more = self.with_histories(), len(sentences)
        wide = rows.tokens_NT.shape[1]
        first = [start if sentence.first is None else sentence.first for sentence in sentences]
        return Rows(
            rows.sentences + sentences,
            np.append(rows.sentence_N, len(rows.sentences) + np.arange(more)),
            np.append(rows.length_N, np.zeros(more, np.int64)),
            np.append(rows.token_N, np.array(first, np.int64)),
            np.append(rows.log_probability_N, np.zeros(more)),
            np.concatenate([rows.tokens_NT, np.zeros((more, wide), np.int64)]),
            np.concatenate([rows.token_log_probability_NT, np.zeros((more, wide))]),
            rows.longest,
        )

    def hypothesis(self, row: int, penalty: float, finished: bool, added: float) -> Hypothesis:
        """Row ``row``, whose histories are written, as a hypothesis; ``</s>`` at its end is not among its tokens.

        ``added`` to its score is what its coverage counts.
        """
        length, log_probability = int(self.length_N[row]), float(self.log_probability_N[row])
        return Hypothesis(
            tokens=tuple(self.tokens_NT[row, : length - finished].tolist()),
            score=log_probability / penalty + added,
            log_probability=log_probability,
            token_log_probabilities=tuple(self.token_log_probability_NT[row, :length].tolist()),
            finished=finished,
        )


def _extend_history(
    history_NT: NDArray[Number], row_M: Ints, places_MS: Ints, entries_MS: NDArray[Number], longest: int
) -> NDArray[Number]:
    """The histories of some rows, ``longest`` entries each, with further entries at their places."""
    longer_ML = np.empty((len(row_M), longest), history_NT.dtype)
    wide = min(longest, history_NT.shape[1])
    longer_ML[:, :wide] = history_NT[:, :wide].take(row_M, axis=0)
    longer_ML[np.arange(len(row_M))[:, None], places_MS] = entries_MS
    return longer_ML


NO_ROWS = Rows(
    [],
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0),
    np.zeros((0, 0), np.int64),
    np.zeros((0, 0)),
)

Choose = Callable[[Rows, Answer], Choice]
"""A search strategy: which rows continue with which token (greedy, beam, sampling)."""


Fate = Literal["live", "finished", "left"]
"""live: a row of the next step; finished: it ended in ``</s>``; left: cut off by the limit, or unable to improve."""


@dataclass(frozen=True)
class TraceStep:
    """One step of one sentence.

    ``candidates`` belong to the rows that entered the step, the rest to the rows it chose, best first. The rows that
    enter the next step are those of fate ``live``, in order; the first step enters with one empty row.
    """

    candidates: tuple[tuple[int, ...], ...]
    """For each entering row its k most probable next tokens."""
    candidate_log_probabilities: tuple[tuple[float, ...], ...]
    rows: tuple[int, ...]
    """For each chosen row its number among the rows of the next step; -1 if it is not live."""
    parents: tuple[int, ...]
    """For each chosen row the number of the entering row that it continues."""
    tokens: tuple[int, ...]
    token_log_probabilities: tuple[float, ...]
    log_probabilities: tuple[float, ...]
    """Of the whole row, the chosen token included."""
    fates: tuple[Fate, ...]


@dataclass
class Trace:
    """Give one to a search; afterwards ``trace[index]`` are the steps of that sentence, with ``k`` candidates a row."""

    k: int = 5
    without: tuple[int, ...] = ()
    _steps: dict[int, list[TraceStep]] = field(default_factory=dict, init=False)

    def __getitem__(self, index: int) -> tuple[TraceStep, ...]:
        return tuple(self._steps[index])

    def record(
        self, rows: Rows, answer: Answer, choice: Choice, ended_M: NDArray[np.bool_], live_M: NDArray[np.bool_]
    ) -> None:
        """Record one step of every sentence: its rows, their candidates, and the choice."""
        ids_Nk, log_probability_Nk = answer.best(self.k, self.without)
        parent_M = choice.parents()
        total_M = rows.log_probability_N[parent_M] + choice.token_log_probability_M
        for place, sentence in enumerate(rows.sentences):
            entering = np.flatnonzero(rows.sentence_N == place)
            chosen = np.flatnonzero(rows.sentence_N[parent_M] == place)
            live = live_M[chosen]
            ends = zip(ended_M[chosen].tolist(), live.tolist(), strict=True)
            fates: list[Fate] = ["finished" if ended else "live" if lives else "left" for ended, lives in ends]
            step = TraceStep(
                candidates=tuple(tuple(line) for line in ids_Nk[entering].tolist()),
                candidate_log_probabilities=tuple(tuple(line) for line in log_probability_Nk[entering].tolist()),
                rows=tuple(np.where(live, np.cumsum(live) - 1, -1).tolist()),
                parents=tuple((parent_M[chosen] - entering[0]).tolist()),
                tokens=tuple(choice.token_M[chosen].tolist()),
                token_log_probabilities=tuple(choice.token_log_probability_M[chosen].tolist()),
                log_probabilities=tuple(total_M[chosen].tolist()),
                fates=tuple(fates),
            )
            self._steps.setdefault(sentence.index, []).append(step)
