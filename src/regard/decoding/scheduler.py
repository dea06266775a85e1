"""Continuous batching: finished rows leave, waiting sentences enter, the batch stays full.

A sentence's result never depends on the rest of the batch (law *refilling*): rows interact only within their sentence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regard.config import Decoding
from regard.decoding.hypotheses import (
    NO_ROWS,
    Choice,
    Choose,
    Chosen,
    Ints,
    NBest,
    Rows,
    Sentence,
    Stop,
    Symbols,
    length_penalty,
)
from regard.decoding.step import MultiStep, MultiStepOutput, MultiStepRequest, Step
from regard.decoding.strategies import Beam, Greedy
from regard.decoding.trace import Trace
from regard.system.errors import UsageError


@dataclass
class Scheduler:
    """Searches sentences side by side, one step for all rows at a time; sentences may be added at any time.

    Args:
        choose: how to search; :class:`regard.decoding.strategies.Beam`, for one.
        decoding: ``tokens`` is the budget: source tokens (a prompt's limit counts too) times beam under search at
            once. A sentence above it runs alone.
        trace: records every step, if given.
        stop: ends outputs that the model would continue, e.g. at a stop string; such an output
            is not ``finished``, and keeps all its tokens.
    """

    refill: ClassVar[float] = 0.25
    """Sentences enter when this share of the budget is free (or nothing runs): encoding them one at a time would waste
    the encoder, waiting for half of the budget would waste the step."""

    most_rows: ClassVar[int] = 32
    """With more rows than this steps are taken one by one: NumPy then takes little time beside the model."""
    most_steps: ClassVar[int] = 32
    """Steps that are taken at once at most."""

    step: Step[Any] | MultiStep[Any]
    choose: Choose
    decoding: Decoding
    symbols: Symbols
    trace: Trace | None = None
    stop: Stop | None = None
    _waiting: deque[Sentence] = field(default_factory=deque, init=False)
    _rows: Rows = field(default=NO_ROWS, init=False)
    _state: Any = field(default=None, init=False)
    _multi_step: Callable[..., tuple[Any, MultiStepOutput, Any]] | None = field(init=False)

    def __post_init__(self) -> None:
        self._multi_step = getattr(self.step, "multi_step", None)

    def put(
        self, index: int, source: Ints, limit: int, nbest: int = 1, *, first: int | None = None, sample: int = 0
    ) -> None:
        """Queue a sentence; ``index`` is its name, ``limit`` the most tokens (``</s>`` counted) of its outputs.

        ``first`` is the last token of a prompt whose others are ``source`` (which may be empty); the start symbol if it
        is not given. ``sample`` numbers the samples of one source.
        """
        self._waiting.append(Sentence(index, source, limit, NBest(nbest), first, sample))

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return not self._waiting and not self._rows.count

    def run(self) -> Iterator[Sentence]:
        """Sentences as they close, until all are done."""
        while not self.idle:
            yield from self._advance(several=True)[1]

    def tokens(self) -> Iterator[Chosen]:
        """Every token as it is chosen, until all sentences are done: for what has one row a sentence.

        Raises:
            UsageError: a beam is wider; which of its tokens are the output's is known only at the end.
        """
        if self.decoding.beam > 1:
            raise UsageError("a beam's tokens are known at its end only; a beam of 1 can be followed", "decoding.beam")
        while not self.idle:
            grown, closed = self._advance()
            done = {(sentence.index, sentence.sample) for sentence in closed}
            for place, token in zip(grown.sentence_N.tolist(), grown.token_N.tolist(), strict=True):
                sentence = grown.sentences[place]
                name = (sentence.index, sentence.sample)
                yield Chosen(sentence, token, name in done)
                done.discard(name)
            for sentence in closed:
                if (sentence.index, sentence.sample) in done:
                    yield Chosen(sentence, None, True)

    def advance(self) -> list[Sentence]:
        """One step for every row, after letting waiting sentences in; the sentences that this step closed."""
        return self._advance()[1]

    def _advance(self, several: bool = False) -> tuple[Rows, list[Sentence]]:
        """The rows after the step, the ended ones too, and the sentences that it closed.

        Args:
            several: steps that end no row may come before it.
        """
        self._admit()
        if not self._rows.count:
            return NO_ROWS, []
        asked = self._multi_step_request() if several else None
        if asked is None or self._multi_step is None:
            self._state, answer = self.step.step(self._state, self._rows.token_N)
        else:
            self._state, found, answer = self._multi_step(self._state, asked)
            self._rows = self._rows.advance(found)
        choice = self.choose(self._rows, answer)
        grown = self._rows.extend(choice)
        ended_M = grown.token_N == self.symbols.end
        if self._ends_nothing(choice, grown, ended_M):
            self._continue(grown, choice.parent_M)
            return grown, []
        grown = grown.with_histories()
        over_M = ended_M if self.stop is None else ended_M | self._hits_stop_string(grown)
        self._finish(grown, ended_M, over_M)
        live_M = ~over_M & self._can_improve(grown)
        if self.trace is not None:
            self.trace.record(self._rows, answer, choice, ended_M, live_M)
        closed = self._close(grown, live_M)
        self._continue(grown.keep(live_M), choice.parents()[live_M])
        return grown, closed

    def _multi_step_request(self) -> MultiStepRequest | None:
        """What a model is asked that takes several steps at once; None where it does not, or with many rows."""
        rows, choose = self._rows, self.choose
        if self._multi_step is None or not isinstance(choose, Greedy | Beam) or self.stop or self.trace:
            return None
        limit_B = [sentence.limit for sentence in rows.sentences]
        steps = min(min(limit_B) - 1 - rows.longest, self.most_steps)
        if steps < 1 or len(limit_B) * choose.width > self.most_rows:
            return None
        penalty_B = length_penalty(np.array(limit_B, np.float64), self.decoding.length_penalty)
        bar_B = np.array([sentence.best.bar for sentence in rows.sentences])
        given = rows.token_N, rows.sentence_N, rows.log_probability_N
        own = bar_B[rows.sentence_N], penalty_B[rows.sentence_N]
        return MultiStepRequest(*given, *own, choose.width, choose.without, self.symbols.end, choose.scores, steps)

    def _ends_nothing(self, choice: Choice, grown: Rows, ended_M: NDArray[np.bool_]) -> bool:
        """Whether a step, as most do, clearly left all rows alive; otherwise they are looked at one by one."""
        if self.stop is not None or self.trace is not None or np.count_nonzero(ended_M):
            return False
        if choice.parent_M is not None and not grown.all_sentences_live():
            return False
        return all(grown.longest < one.limit and not one.best.hypotheses for one in grown.sentences)

    def _hits_stop_string(self, grown: Rows) -> NDArray[np.bool_]:
        assert self.stop is not None
        rows = zip(grown.tokens_NT, grown.length_N.tolist(), strict=True)
        return np.array([self.stop(token_T[:length]) for token_T, length in rows], np.bool_)

    def _admit(self) -> None:
        """Open a row for as many waiting sentences as fit, if enough of the budget is free."""
        if not self._waiting:
            return
        budget, beam = self.decoding.tokens, self.decoding.beam
        free = budget - beam * sum(sentence.tokens for sentence in self._rows.sentences)
        if self._rows.count and free < self.refill * budget:
            return
        entering: list[Sentence] = []
        while self._waiting:
            cost = beam * self._waiting[0].tokens
            if cost > free and (entering or self._rows.count):
                break
            entering.append(self._waiting.popleft())
            free -= cost
        if not entering:
            return
        sources = [sentence.source for sentence in entering]
        self._state = self.step.admit(self._state, sources) if self._rows.count else self.step.start(sources)
        self._rows = self._rows.open(entering, self.symbols.start)

    def _finish(self, grown: Rows, ended_M: NDArray[np.bool_], over_M: NDArray[np.bool_]) -> None:
        """Rows that ended in ``</s>`` or were stopped, and are good enough, become hypotheses of their sentence."""
        alpha = self.decoding.length_penalty
        for row in over_M.nonzero()[0].tolist():
            best = grown.sentences[grown.sentence_N[row]].best
            score = float(grown.log_probability_N[row]) / length_penalty(float(grown.length_N[row]), alpha)
            if score > best.bar or len(best.hypotheses) < best.size:
                best.add(grown.hypothesis(row, alpha, finished=bool(ended_M[row])))

    def _can_improve(self, grown: Rows) -> NDArray[np.bool_]:
        """Which rows may still lead to a hypothesis among the n best of their sentence [Wu16 §7]: a mask over rows.

        A log-probability only falls as a row grows, and the length penalty is largest at the limit; so
        ``log_probability / penalty(limit)`` bounds every score a row can still reach. A row whose bound does not exceed
        the worst of the n best finished ones can leave alone and change nothing: all rows of a sentence are equally
        long, so whatever it would crowd out of the beam, or let in, has a smaller bound still.
        """
        limit_B = np.array([sentence.limit for sentence in grown.sentences], np.float64)
        within_M = grown.length_N < limit_B.take(grown.sentence_N)
        if not any(sentence.best.hypotheses for sentence in grown.sentences):
            return within_M
        bar_B = np.array([sentence.best.bar for sentence in grown.sentences])
        penalty_B = length_penalty(limit_B, self.decoding.length_penalty)
        bound_M = grown.log_probability_N / penalty_B[grown.sentence_N]
        bar_M = bar_B[grown.sentence_N]
        return within_M & ((bound_M > bar_M) | (bar_M == -np.inf))

    def _close(self, grown: Rows, live_M: NDArray[np.bool_]) -> list[Sentence]:
        """The sentences without a live row; one that finished nothing gets its rows, cut off as they are."""
        live_B = np.bincount(grown.sentence_N[live_M], minlength=len(grown.sentences))
        closed: list[Sentence] = []
        for place in (live_B == 0).nonzero()[0].tolist():
            sentence = grown.sentences[place]
            if not sentence.best.hypotheses:
                # Without any continuation (all of them excluded) the rows before this step are what there is.
                rows = grown if (grown.sentence_N == place).any() else self._rows.with_histories()
                for row in np.flatnonzero(rows.sentence_N == place).tolist():
                    sentence.best.add(rows.hypothesis(row, self.decoding.length_penalty, finished=False))
            closed.append(sentence)
        return closed

    def _continue(self, rows: Rows, parent_M: Ints | None) -> None:
        """The rows of the next step, and their parents; the step's state is reordered only if the rows changed."""
        if not rows.count:
            self._state = None
        elif parent_M is not None and not (
            len(parent_M) == self._rows.count and (parent_M == np.arange(len(parent_M))).all()
        ):
            self._state = self.step.select(self._state, parent_M)
        self._rows = rows
