"""Greedy and beam search over any step, and the two entry points [Wu16 §7; Vaswani17 §6.1].

Beam search in one sentence: of all continuations of a sentence's rows the N best survive; those that end in ``</s>``
are finished, the others are the rows of the next step. Greedy search is N = 1. The scheduler does the rest: it keeps
the batch full and drops a row once it can no longer beat the finished hypotheses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from regard.config import Decoding
from regard.decoding.hypotheses import Hypothesis
from regard.decoding.rows import Choice, Choose, Floats, Ints, Rows, Symbols
from regard.decoding.scheduler import Scheduler
from regard.decoding.step import Answer, Step
from regard.decoding.trace import Trace
from regard.system.errors import RegardError, UsageError


def greedy(without: Sequence[int] = ()) -> Choose:
    """Each row continues with its most probable token (ties to the smaller id)."""

    def choose(rows: Rows, answer: Answer) -> Choice:
        ids_Nk, log_probability_Nk = _best(answer, 1, without)
        row_M = np.flatnonzero(log_probability_Nk[:, 0] > -np.inf)
        return Choice(row_M, ids_Nk[row_M, 0], log_probability_Nk[row_M, 0])

    return choose


def beam(width: int, without: Sequence[int] = ()) -> Choose:
    """Keep the ``width`` best continuations of each sentence [Wu16 §7].

    Ties go to the smaller parent row, then to the row's own order (the more probable token, then the smaller id).
    ``width`` candidates a row are enough: the ``width`` best of a sentence hold at most ``width`` of one row, and those
    are the best of that row, since a row adds the same log-probability to all its candidates.
    """

    def choose(rows: Rows, answer: Answer) -> Choice:
        ids_Nk, log_probability_Nk = _best(answer, width, without)
        total_Nk = rows.log_probability_N[:, None] + log_probability_Nk
        first_B = np.searchsorted(rows.sentence_N, np.arange(len(rows.sentences)))
        row_M, column_M = _best_of_sentences(total_Nk, rows.sentence_N, first_B, width)
        return Choice(row_M, ids_Nk[row_M, column_M], log_probability_Nk[row_M, column_M])

    return choose


def _best_of_sentences(total_Nk: Floats, sentence_N: Ints, first_B: Ints, width: int) -> tuple[Ints, Ints]:
    """Row and column of the ``width`` best possible candidates of each sentence, sentence by sentence, best first."""
    k = total_Nk.shape[1]
    place_N = np.arange(len(sentence_N)) - first_B[sentence_N]  # each row's place inside its sentence
    table = np.full((len(first_B), int(place_N.max()) + 1, k), -np.inf)
    table[sentence_N, place_N] = total_Nk
    line = table.reshape(len(first_B), -1)  # a sentence's candidates side by side
    order = np.argsort(-line, axis=1, kind="stable")[:, :width]  # stable: ties to the smaller row, then column
    possible = np.take_along_axis(line, order, axis=1) > -np.inf
    sentence, rank = np.nonzero(possible)
    candidate = order[sentence, rank]
    return first_B[sentence] + candidate // k, candidate % k


def _best(answer: Answer, k: int, without: Sequence[int]) -> tuple[Ints, Floats]:
    ids_Nk, log_probability_Nk = answer.best(k, without)
    if np.isnan(log_probability_Nk).any():
        raise RegardError("the model answered with log-probabilities that are not numbers; are its weights damaged?")
    return ids_Nk, log_probability_Nk


def search(
    step: Step[Any],
    sources: Sequence[Ints],
    decoding: Decoding,
    symbols: Symbols,
    *,
    nbest: int = 1,
    firsts: Sequence[int] | None = None,
    limits: Sequence[int] | None = None,
    trace: Trace | None = None,
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
        limits: the most tokens of each source's outputs, ``</s>`` counted; default: its length + ``max_extra``.
        trace: records every step, if given; it slows the search.
    """
    found: list[list[Hypothesis]] = [[] for _ in sources]
    results = stream(step, sources, decoding, symbols, nbest=nbest, firsts=firsts, limits=limits, trace=trace)
    for index, hypotheses in results:
        found[index] = hypotheses
    return found


def stream(
    step: Step[Any],
    sources: Sequence[Ints],
    decoding: Decoding,
    symbols: Symbols,
    *,
    nbest: int = 1,
    firsts: Sequence[int] | None = None,
    limits: Sequence[int] | None = None,
    trace: Trace | None = None,
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """As :func:`search`, but ``(index, hypotheses)`` of each source as soon as it is done, for progress and pipes."""
    if not 1 <= nbest <= decoding.beam:
        raise UsageError(f"nbest {nbest} must lie between 1 and the beam, {decoding.beam}", "nbest")
    choose = greedy(symbols.without) if decoding.beam == 1 else beam(decoding.beam, symbols.without)
    scheduler = Scheduler(step, choose, decoding, symbols, trace)
    enqueue(scheduler, sources, decoding.max_extra, nbest=nbest, firsts=firsts, limits=limits)
    return ((sentence.index, sentence.best.hypotheses) for sentence in scheduler.run())


def enqueue(
    scheduler: Scheduler,
    sources: Sequence[Ints],
    max_extra: int,
    *,
    nbest: int = 1,
    samples: int = 1,
    firsts: Sequence[int] | None = None,
    limits: Sequence[int] | None = None,
) -> None:
    """Put every source into a scheduler, ``samples`` times, under its place in the list.

    Longest first: the last rows to run are then short ones, and memory is largest at the start.
    """
    for name, given in (("first tokens", firsts), ("limits", limits)):
        if given is not None and len(given) != len(sources):
            raise UsageError(f"{len(sources)} sources but {len(given)} {name}; each source needs its own")
    if limits is not None and min(limits, default=1) < 1:
        raise UsageError(f"a limit of {min(limits)} tokens leaves no room for an output", "limits")
    for index in sorted(range(len(sources)), key=lambda i: -len(sources[i])):
        source = sources[index]
        first = None if firsts is None else firsts[index]
        limit = len(source) + max_extra if limits is None else limits[index]
        for number in range(samples):
            scheduler.put(index, source, limit, nbest, first=first, sample=number)
