"""Greedy and beam search and sampling over any step, in a batch that stays full [Wu16 §7; Vaswani17 §6.1].

Beam search in one sentence: of all continuations of a sentence's rows the N best survive; those that end in ``</s>``
are finished, the others are the rows of the next step. Greedy search is N = 1.

The scheduler batches continuously: finished rows leave, waiting sentences enter, and a row is dropped once it can no
longer beat the finished hypotheses. A sentence's result never depends on the rest of the batch (law *refilling*): rows
interact only within their sentence.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from regard.config import Decoding
from regard.decoding.constraints import Constraints, forbidden_tokens
from regard.decoding.hypotheses import (
    NO_ROWS,
    Choice,
    Choose,
    Floats,
    Hypothesis,
    Ints,
    Length,
    NBest,
    Rows,
    Sentence,
    Stop,
    Symbols,
    Trace,
    length_penalty,
)
from regard.decoding.step import Answer, DraftStep, MultiStep, MultiStepRequest, State, Step
from regard.decoding.strategies import Beam, Greedy, RandomSampling, random_sampling
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.decoding.terms import Terms


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
        groups: of a diverse beam, the copies of a sentence. They enter together, and a group goes on with all its rows
            as long as one of them may still lead to a better output of this group.
    """

    refill: ClassVar[float] = 0.25
    """Sentences enter when this share of the budget is free (or nothing runs): encoding them one at a time would waste
    the encoder, waiting for half of the budget would waste the step."""

    most_rows: ClassVar[int] = 32
    """With more rows than this steps are taken one by one: NumPy then takes little time beside the model."""
    most_steps: ClassVar[int] = 32
    """Steps that are taken at once at most."""
    most_drafted: ClassVar[int] = 4
    """With more rows than this drafts are no faster: a pass of many rows takes as long for each of them."""
    most_verified: ClassVar[int] = 24
    """Tokens of one pass that verifies drafts, at most."""

    step: Step[Any] | MultiStep[Any]
    choose: Choose
    decoding: Decoding
    symbols: Symbols
    trace: Trace | None = None
    stop: Stop | None = None
    groups: int = 1

    def __post_init__(self) -> None:
        self._waiting: deque[Sentence] = deque()
        self._rows, self._taken = NO_ROWS, 0
        self._state: Any = None
        if self.decoding.coverage_penalty:
            from regard.decoding.coverage import CoverageStep

            self.step = CoverageStep(self.step)
        self._multi_step: Any = getattr(self.step, "multi_step", None) if self.groups == 1 else None
        verifies = isinstance(self.choose, Greedy) and getattr(self.step, "verifies", False)
        self._verifier = cast("DraftStep[Any]", self.step) if verifies else None
        self._reach = getattr(self.choose, "reach", None)  # where a log-probability may rise as a row grows
        searches = not isinstance(self.choose, RandomSampling)
        self._constraints = Constraints.of(self.decoding, self.symbols.end, searches)

    def put(
        self,
        index: int,
        source: Ints,
        limit: int | None = None,
        nbest: int = 1,
        *,
        first: int | None = None,
        sample: int = 0,
        prefix: Sequence[int] | None = None,
        terms: Terms | None = None,
        copies: int = 1,
        forbidden: tuple[tuple[int, ...], ...] = (),
        draft: Sequence[int] = (),
    ) -> None:
        """Queue a sentence; ``index`` is its name, ``limit`` the most tokens (``</s>`` counted) of its outputs.

        ``first`` is the last token of a prompt whose others are ``source`` (which may be empty); the start symbol if it
        is not given. ``sample`` numbers the samples of one source, of which there are ``copies`` from this number on.
        Outputs begin with the tokens of ``prefix``, or where there is none with those of the symbols. Without a limit
        it is that of :func:`lengths`, and more by what ``terms`` need, which have room in any case. ``forbidden`` are
        sequences of tokens. ``draft`` is what the output of a greedy search may be like, its prefix included: where it
        is right, search is faster; the output is the same. A beam makes no use of it: which rows survive a step depends
        on all of them, so a draft would have to have every row, and a pass of so many tokens is no faster.
        """
        if forbidden and forbidden_tokens not in self._constraints.given:
            given = (*self._constraints.given, forbidden_tokens)
            self._constraints = replace(self._constraints, given=given)
        begin = self.symbols.prefix if prefix is None else tuple(prefix)
        least, most = lengths(self.decoding, len(source) if first is None else 0)
        need = 0 if terms is None else terms.banks - 1
        limit = (most if limit is None else limit) + need
        limit = max(len(begin) + need + 1, min(limit, self.decoding.max_length or limit))
        least = min(least, limit - 1)  # an output can end
        followed = None
        if self._verifier is not None and len(draft):
            from regard.decoding.draft import Draft

            followed = Draft(list(takewhile(lambda token: token != self.symbols.end, draft[:limit])))
        own = (least, terms, copies, forbidden, followed)
        sentence = Sentence(index, source, limit, NBest(nbest), first, sample, begin, *own)
        self._waiting.extend([sentence] if copies == 1 else self._divide(sentence))

    def _divide(self, sentence: Sentence) -> Iterator[Sentence]:
        """The copies of a sentence, as many together as the budget has room for."""
        room = max(self.groups, self.decoding.tokens // (self.decoding.beam * max(1, sentence.tokens)))
        for number in range(0, sentence.copies, room):
            copies, best = min(room, sentence.copies - number), NBest(sentence.best.size)
            yield replace(sentence, best=best, sample=sentence.sample + number, copies=copies)

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return not self._waiting and not self._rows.count

    @property
    def room(self) -> int:
        """Tokens of the budget for which sentences would enter now; 0 where too few are free."""
        free = self.decoding.tokens - self._taken - sum(map(self._cost, self._waiting))
        return max(0, free) if not self._rows.count or free >= self.refill * self.decoding.tokens else 0

    def drop(self, indices: Container[int]) -> None:
        """Leave out sentences, wherever they are: their rows go at once, and nobody hears of them."""
        self._waiting = deque(one for one in self._waiting if one.index not in indices)
        sentences = self._rows.sentences
        gone_B = np.array([sentence.index in indices for sentence in sentences], np.bool_)
        if gone_B.any():
            self._taken -= sum(self._cost(one) for one, gone in zip(sentences, gone_B, strict=True) if gone)
            live_N = ~gone_B[self._rows.sentence_N]
            self._continue(self._rows.keep(live_N), np.flatnonzero(live_N))

    def run(self) -> Iterator[Sentence]:
        """Sentences as they close, until all are done."""
        while not self.idle:
            yield from self.advance(several=True)[1]

    def tokens(self) -> Iterator[int]:
        """Every token of one sentence as it is chosen.

        Raises:
            UsageError: a beam is wider; which of its tokens are the output's is known only at the end.
        """
        if self.decoding.beam > 1:
            raise UsageError("a beam's tokens are known at its end only; a beam of 1 can be followed", "decoding.beam")
        while not self.idle:
            grown, _ = self.advance()
            yield from grown.token_N.tolist()

    def advance(self, several: bool = False) -> tuple[Rows, list[Sentence]]:
        """The rows after the step, the ended ones too, and the sentences that it closed.

        Args:
            several: steps that end no row may come before it.
        """
        self.admit()
        if not self._rows.count:
            return NO_ROWS, []
        choice, answer = (self._choose_by_drafts() if several else None) or self._choose(several)
        grown = self._rows.extend(choice)
        ended_M = grown.token_N == self.symbols.end
        if self._ends_nothing(choice, grown, ended_M):
            self._continue(grown, choice.parent_M)
            return grown, []
        grown = grown.with_histories()
        over_M = ended_M
        if self.stop is not None:
            rows = zip(grown.tokens_NT, grown.length_N.tolist(), strict=True)
            over_M = ended_M | np.array([self.stop(token_T[:length]) for token_T, length in rows], np.bool_)
        added_M = np.zeros(grown.count)
        if self.decoding.coverage_penalty:
            added_M = self._state.penalty(self.decoding.coverage_penalty)[choice.parents()]
        for row in np.flatnonzero(over_M).tolist():
            self._end(grown, row, added_M, bool(ended_M[row]))
        live_M = ~over_M & self._can_improve(grown)
        if self.groups > 1:
            able_B = np.bincount(grown.sentence_N[live_M], minlength=len(grown.sentences)) > 0
            live_M = ~over_M & able_B[grown.sentence_N]
        if self.trace is not None:
            self.trace.record(self._rows, answer, choice, ended_M, live_M)
        closed = self._close(grown, live_M, added_M)
        self._taken -= sum(map(self._cost, closed))
        self._continue(grown.keep(live_M), choice.parents()[live_M])
        return grown, closed

    def _choose(self, several: bool) -> tuple[Choice, Answer]:
        """The choice of the next step, or of the last of several, and what it was made by."""
        asked = self._multi_step_request() if several else None
        if asked is None:
            self._state, answer = self.step.step(self._state, self._rows.token_N)
        else:
            self._state, found, answer = self._multi_step(self._state, asked)
            self._rows = self._rows.advance(found)
        if self._constraints:
            answer = self._constraints(self._rows, answer)
        return self._rows.force(self.choose(self._rows, answer)), answer

    def _is_plain(self) -> bool:
        """Whether the model's scores alone choose the next tokens, and nothing else looks at them."""
        return not (self.stop or self.trace or self._constraints) and bool((self._rows.given() < 0).all())

    def _choose_by_drafts(self) -> tuple[Choice, Answer] | None:
        """The choice behind what is right of the drafts, which the rows then have; None where none says anything."""
        rows, found = self._rows, [sentence.draft for sentence in self._rows.sentences]
        if self._verifier is None or rows.count > self.most_drafted or not any(found) or not self._is_plain():
            return None
        rows, most = rows.with_histories(), self.most_verified // rows.count - 1
        tokens = [[token] for token in rows.token_N.tolist()]
        for row, (sentence, length) in enumerate(zip(rows.sentences, rows.length_N.tolist(), strict=True)):
            if sentence.draft is not None:
                output = rows.tokens_NT[row, :length].tolist()
                tokens[row] += sentence.draft.ahead(output, min(most, sentence.limit - 1 - length))
        if max(map(len, tokens)) == 1:
            return None
        self._state, counts, answer = self._verifier.verify(self._state, tokens)
        chosen, token_T, log_probability_T = self.choose(rows, answer), np.full(sum(counts), -1), np.zeros(sum(counts))
        token_T[chosen.parents()] = chosen.token_M
        log_probability_T[chosen.parents()] = chosen.token_log_probability_M
        count_N = np.array(counts)
        begin_N = count_N.cumsum() - count_N
        spans = zip(tokens, begin_N.tolist(), counts, strict=True)
        right_N = np.array([count_same(some[1:n], token_T[begin : begin + n].tolist()) for some, begin, n in spans])
        self._rows = rows.append(token_T, log_probability_T, begin_N, right_N)
        self._state = self._verifier.crop(self._state, count_N - 1 - right_N)
        last_N = begin_N + right_N
        kept_M = np.flatnonzero(token_T[last_N] >= 0)
        last_M = last_N[kept_M]
        choice = Choice(None if len(kept_M) == rows.count else kept_M, token_T[last_M], log_probability_T[last_M])
        return choice, answer

    def _multi_step_request(self) -> MultiStepRequest | None:
        """What a model is asked that takes several steps at once; None where it does not, or with many rows."""
        rows, choose = self._rows, self.choose
        if self._multi_step is None or not isinstance(choose, Greedy | Beam) or not self._is_plain():
            return None
        limit_B = [sentence.limit for sentence in rows.sentences]
        steps = min(min(limit_B) - 1 - rows.longest, self.most_steps)
        if rows.count <= self.most_drafted:
            steps = min([steps, *(one.draft.wait(steps) for one in rows.sentences if one.draft)])
        if steps < 1 or len(limit_B) * choose.width > self.most_rows:
            return None
        penalty_B = self._penalty(np.array(limit_B, np.float64))
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

    def admit(self) -> bool:
        """Open a row for as many waiting sentences as fit, if enough of the budget is free; whether some entered."""
        budget = self.decoding.tokens
        free = budget - self._taken
        if not self._waiting or (self._rows.count and free < self.refill * budget):
            return False
        entering: list[Sentence] = []
        while self._waiting:
            cost = self._cost(self._waiting[0])
            if cost > free and (entering or self._rows.count):
                break
            entering.append(self._waiting.popleft())
            free -= cost
        self._taken = budget - free
        if not entering:
            return False
        sources = [sentence.source for sentence in entering]
        self._state = self.step.admit(self._state, sources) if self._rows.count else self.step.start(sources)
        if any(sentence.copies > 1 for sentence in entering):
            entering = self._copy(entering)
        self._rows = self._rows.open(entering, self.symbols.start)
        return True

    def _cost(self, sentence: Sentence) -> int:
        """What a sentence and its copies take of the budget."""
        return sentence.copies * sentence.width(self.decoding.beam) * sentence.tokens

    def _copy(self, entering: list[Sentence]) -> list[Sentence]:
        """The copies of sentences, each with a row of its own in the state."""
        before, copies_B = self._rows.count, [sentence.copies for sentence in entering]
        row_M = np.append(np.arange(before), before + np.arange(len(entering)).repeat(copies_B))
        self._state = self.step.select(self._state, row_M)
        return [
            replace(sentence, best=NBest(sentence.best.size), sample=sentence.sample + number, copies=1)
            for sentence in entering
            for number in range(sentence.copies)
        ]

    def _end(self, rows: Rows, row: int, added_N: Floats, finished: bool) -> None:
        """A row becomes a hypothesis of its sentence, if it is good enough."""
        best, added = rows.sentences[rows.sentence_N[row]].best, float(added_N[row])
        penalty = self._penalty(max(1.0, float(rows.length_N[row])))
        if float(rows.log_probability_N[row]) / penalty + added > best.bar or len(best.hypotheses) < best.size:
            best.add(rows.hypothesis(row, penalty, finished, added))

    def _penalty(self, length: Length) -> Length:
        """The length penalty of the recipe."""
        return length_penalty(length, self.decoding.length_penalty, self.decoding.length_penalty_by)

    def _can_improve(self, grown: Rows) -> NDArray[np.bool_]:
        """Which rows may still lead to a hypothesis among the n best of their sentence [Wu16 §7]: a mask over rows.

        A log-probability only falls as a row grows, and the length penalty is largest at the limit; so
        ``log_probability / penalty(limit)`` bounds every score a row can still reach. A row whose bound does not exceed
        the worst of the n best finished ones can leave alone and change nothing: all rows of a sentence are equally
        long, so whatever it would crowd out of the beam, or let in, has a smaller bound still. A coverage penalty is
        at most 0, and rises as attention comes; so it does not move the bound.
        """
        limit_B = np.array([sentence.limit for sentence in grown.sentences], np.float64)
        within_M = grown.length_N < limit_B.take(grown.sentence_N)
        if not any(sentence.best.hypotheses for sentence in grown.sentences):
            return within_M
        bar_B = np.array([sentence.best.bar for sentence in grown.sentences])
        if self.decoding.stopping == "first":
            within_M &= bar_B[grown.sentence_N] == -np.inf
        penalty_B = self._penalty(limit_B)
        most_M = grown.log_probability_N if self._reach is None else self._reach(grown)
        bound_M = most_M / penalty_B[grown.sentence_N]
        bar_M = bar_B[grown.sentence_N]
        return within_M & ((bound_M > bar_M) | (bar_M == -np.inf))

    def _close(self, grown: Rows, live_M: NDArray[np.bool_], added_M: Floats) -> list[Sentence]:
        """The sentences without a live row; one that finished nothing gets its rows, cut off as they are."""
        live_B = np.bincount(grown.sentence_N[live_M], minlength=len(grown.sentences))
        closed: list[Sentence] = []
        for place in (live_B == 0).nonzero()[0].tolist():
            sentence = grown.sentences[place]
            if not sentence.best.hypotheses:
                # Without any continuation (all of them excluded) the rows before this step are what there is.
                rows, added_N = grown, added_M
                if not (grown.sentence_N == place).any():
                    rows, added_N = self._rows.with_histories(), np.zeros(self._rows.count)
                for row in np.flatnonzero(rows.sentence_N == place).tolist():
                    self._end(rows, row, added_N, False)
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


def count_same(some: Sequence[int], others: Sequence[int]) -> int:
    """How many tokens from the first on are the same."""
    return next((n for n, (one, other) in enumerate(zip(some, others, strict=False)) if one != other), len(some))


def lengths(decoding: Decoding, source: int) -> tuple[int, int]:
    """The least tokens of the outputs of a source of so many, and the most, ``</s>`` counted; the most wins."""
    least = max(decoding.min_length, math.ceil(decoding.min_share * source))
    most = [source + decoding.max_extra]
    if decoding.max_length is not None:
        most.append(decoding.max_length)
    if decoding.max_share is not None:
        most.append(math.ceil(decoding.max_share * source))
    return least, max(1, min(most))


def search(
    step: Step[State],
    sources: Sequence[Ints],
    decoding: Decoding,
    symbols: Symbols,
    *,
    nbest: int = 1,
    firsts: Sequence[int] | None = None,
    limits: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    trace: Trace | None = None,
    scores: bool = True,
    terms: Sequence[Terms | None] | None = None,
    forbidden: Sequence[tuple[tuple[int, ...], ...]] | None = None,
    drafts: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """The n best hypotheses of each source, best first, in the order of the sources.

    Args:
        step: the model.
        sources: ids with ``</s>``; where ``firsts`` are given, prompts without their last token (maybe empty).
        decoding: the recipe's section: beam, length penalty, limit, budget.
        symbols: start, ``</s>``, and what is never produced.
        nbest: at most the beam. Fewer come back where fewer finished before the limit; never none: if nothing
            finished, the rows cut off by the limit are returned, marked ``finished=False``.
        firsts: the last token of each prompt; without them every row begins with the start symbol.
        limits: the most tokens of each source's outputs, ``</s>`` counted; default: as ``decoding`` has it.
        prefixes: tokens that each source's outputs begin with; default: those of the symbols.
        trace: records every step, if given; it slows the search.
        scores: whether scores and log-probabilities are wanted. Without them greedy search is faster where an engine
            computes, and they may be NaN; tokens are the same.
        terms: what the outputs of each source contain, ``None`` where nothing is asked for.
        forbidden: sequences of tokens that the outputs of each source do not have.
        drafts: what each source's output may be like, its prefix included, or nothing; greedy search is then faster
            where it is right (:meth:`Scheduler.put`), and outputs are the same.
    """
    if not 1 <= nbest <= decoding.beam:
        raise UsageError(f"nbest {nbest} must lie between 1 and the beam, {decoding.beam}", "nbest")
    given: dict[str, Any] = {"firsts": firsts, "limits": limits, "prefixes": prefixes}
    if decoding.groups > 1:
        if trace is not None or forbidden or any(terms or ()):
            message = "groups go neither with terms and forbidden words nor with a trace; set decoding.groups=1"
            raise UsageError(message, "decoding.groups")
        return _search_groups(step, sources, decoding, symbols, nbest, **given)
    choose = strategy(decoding, symbols, scores or trace is not None, terms or ())
    scheduler = Scheduler(step, choose, decoding, symbols, trace)
    enqueue(scheduler, sources, nbest=nbest, terms=terms, forbidden=forbidden, drafts=drafts, **given)
    plain = getattr(choose, "without_bonus", lambda one, _: one)
    found = {sentence.index: [plain(one, sentence) for one in sentence.best.hypotheses] for sentence in scheduler.run()}
    return [found[index] for index in range(len(sources))]


def strategy(decoding: Decoding, symbols: Symbols, scores: bool, terms: Sequence[Terms | None]) -> Choose:
    """The search for the best outputs."""
    if some := next(filter(None, terms), None):
        from regard.decoding.term_beam import TermBeam, TermBonusBeam

        return (TermBonusBeam if decoding.term_bonus else TermBeam)(decoding, symbols, some.letters)
    if decoding.beam == 1:
        return Greedy(symbols.without, scores)
    return Beam(decoding.beam, symbols.without, symbols.end if decoding.refill else None)


def _search_groups(
    step: Step[State], sources: Sequence[Ints], decoding: Decoding, symbols: Symbols, nbest: int, **given: Any
) -> list[list[Hypothesis]]:
    """The same by groups of a beam, each of which keeps as many outputs as it is wide: fewer are the first of more."""
    from regard.decoding.diverse import best_of_groups, diverse_beam

    choose, groups = diverse_beam(decoding, symbols), decoding.groups
    own = decoding.model_copy(update={"beam": choose.width})
    scheduler = Scheduler(step, choose, own, symbols, groups=groups)
    enqueue(scheduler, sources, nbest=choose.width, samples=groups, **given)
    found = {(sentence.index, sentence.sample): sentence.best.hypotheses for sentence in scheduler.run()}
    return [best_of_groups([found[index, group] for group in range(groups)], nbest) for index in range(len(sources))]


def enqueue(
    scheduler: Scheduler,
    sources: Sequence[Ints],
    *,
    nbest: int = 1,
    samples: int = 1,
    firsts: Sequence[int] | None = None,
    limits: Sequence[int] | None = None,
    numbers: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    terms: Sequence[Terms | None] | None = None,
    forbidden: Sequence[tuple[tuple[int, ...], ...]] | None = None,
    drafts: Sequence[Sequence[int]] | None = None,
) -> None:
    """Put every source into a scheduler, ``samples`` times, under its number, or its place in the list.

    Longest first: the last rows to run are then short ones, and memory is largest at the start.
    """
    each = {"firsts": firsts, "limits": limits, "numbers": numbers, "prefixes": prefixes}
    for name, given in {**each, "terms": terms, "forbidden": forbidden, "drafts": drafts}.items():
        if given is not None and len(given) != len(sources):
            raise UsageError(f"there are {len(given)} for {len(sources)} sources; each source needs its own", name)
    if limits is not None and min(limits, default=1) < 1:
        raise UsageError(f"a limit of {min(limits)} tokens leaves no room for an output", "limits")
    for index in sorted(range(len(sources)), key=lambda i: -len(sources[i])):
        source = sources[index]
        first = None if firsts is None else firsts[index]
        limit = None if limits is None else limits[index]
        prefix = prefixes[index] if prefixes else None
        key = numbers[index] if numbers else index
        rules: dict[str, Any] = {
            "terms": terms[index] if terms else None,
            "forbidden": forbidden[index] if forbidden else (),
            "draft": drafts[index] if drafts else (),
        }
        scheduler.put(key, source, limit, nbest, first=first, prefix=prefix, copies=samples, **rules)


def sample(
    step: Step[State],
    sources: Sequence[Ints],
    decoding: Decoding,
    symbols: Symbols,
    *,
    seed: int,
    samples: int = 1,
    firsts: Sequence[int] | None = None,
    limits: Sequence[int] | None = None,
    numbers: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    stop: Stop | None = None,
    scores: bool = True,
) -> list[list[Hypothesis]]:
    """The samples of each source by number, in the order of the sources; each output is a sentence of its own.

    Args:
        step: the model.
        sources: ids with ``</s>``; where ``firsts`` are given, prompts without their last token (maybe empty).
        decoding: how to draw, and the budget; the beam plays no part.
        symbols: start, ``</s>``, and what is never produced.
        seed: another seed, other samples.
        samples: outputs of each source.
        firsts: the last token of each prompt; without them every row begins with the start symbol.
        limits: the most tokens of each source's outputs, ``</s>`` counted; default: as ``decoding`` has it.
        numbers: of the sources, all different, on which the draws depend; default: their places in the list.
        prefixes: tokens that each source's outputs begin with; default: those of the symbols.
        stop: ends an output before the model does.
        scores: whether log-probabilities are wanted; at temperature 0 they may be NaN where they are not.
    """
    if samples < 1:
        raise UsageError(f"{samples} samples of a text cannot be drawn; at least one can", "samples")
    choose = random_sampling(decoding, seed, symbols.without, scores)
    scheduler = Scheduler(step, choose, decoding.model_copy(update={"beam": 1}), symbols, stop=stop)
    enqueue(scheduler, sources, samples=samples, firsts=firsts, limits=limits, numbers=numbers, prefixes=prefixes)
    found = {(sentence.index, sentence.sample): sentence.best.hypotheses[0] for sentence in scheduler.run()}
    indices = range(len(sources)) if numbers is None else numbers
    return [[found[index, number] for number in range(samples)] for index in indices]
