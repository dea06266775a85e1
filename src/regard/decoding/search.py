"""Greedy and beam search and sampling over any step [Wu16 §7; Vaswani17 §6.1].

Beam search in one sentence: of all continuations of a sentence's rows the N best survive; those that end in ``</s>``
are finished, the others are the rows of the next step. Greedy search is N = 1. The scheduler does the rest: it keeps
the batch full and drops a row once it can no longer beat the finished hypotheses.

Each draw of a sample is a pure function of (seed, index of the source, number of the sample, step): every row has its
own random number, so a sample depends neither on the other rows (law *refilling*) nor on the order of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.config import Decoding
from regard.decoding.hypotheses import Choice, Choose, Floats, Hypothesis, Ints, Rows, Stop, Symbols
from regard.decoding.scheduler import Scheduler
from regard.decoding.step import Answer, Step
from regard.decoding.strategies import Beam, Greedy, numbers
from regard.decoding.trace import Trace
from regard.system.errors import UsageError
from regard.system.keys import key


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
    scores: bool = True,
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
        scores: whether scores and log-probabilities are wanted. Without them greedy search is faster where an engine
            computes, and they may be NaN; tokens are the same.
    """
    if not 1 <= nbest <= decoding.beam:
        raise UsageError(f"nbest {nbest} must lie between 1 and the beam, {decoding.beam}", "nbest")
    wanted = scores or trace is not None
    choose = Greedy(symbols.without, wanted) if decoding.beam == 1 else Beam(decoding.beam, symbols.without)
    scheduler = Scheduler(step, choose, decoding, symbols, trace)
    enqueue(scheduler, sources, decoding.max_extra, nbest=nbest, firsts=firsts, limits=limits)
    found = {sentence.index: sentence.best.hypotheses for sentence in scheduler.run()}
    return [found[index] for index in range(len(sources))]


def enqueue(
    scheduler: Scheduler,
    sources: Sequence[Ints],
    max_extra: int,
    *,
    nbest: int = 1,
    samples: int = 1,
    firsts: Sequence[int] | None = None,
    limits: Sequence[int] | None = None,
    numbers: Sequence[int] | None = None,
) -> None:
    """Put every source into a scheduler, ``samples`` times, under its number, or its place in the list.

    Longest first: the last rows to run are then short ones, and memory is largest at the start.
    """
    for name, given in (("firsts", firsts), ("limits", limits), ("numbers", numbers)):
        if given is not None and len(given) != len(sources):
            raise UsageError(f"there are {len(given)} for {len(sources)} sources; each source needs its own", name)
    if limits is not None and min(limits, default=1) < 1:
        raise UsageError(f"a limit of {min(limits)} tokens leaves no room for an output", "limits")
    for index in sorted(range(len(sources)), key=lambda i: -len(sources[i])):
        source = sources[index]
        first = None if firsts is None else firsts[index]
        limit = len(source) + max_extra if limits is None else limits[index]
        for number in range(samples):
            scheduler.put(numbers[index] if numbers else index, source, limit, nbest, first=first, sample=number)


def random_sampling(decoding: Decoding, seed: int, without: Sequence[int] = (), scores: bool = True) -> Choose:
    """Each row continues with one random token; at temperature 0 with the most probable one, as in greedy search.

    The log-probabilities noted are those of the model, before temperature, limits and penalty. The repetition penalty
    sees the row's own tokens and its prompt, if any; not a source in another language.

    Args:
        decoding: temperature, limits and penalty.
        seed: another seed, other tokens.
        without: tokens that are never drawn.
        scores: as for :class:`Greedy`, which this is at temperature 0 without a penalty.
    """
    if decoding.temperature == 0.0 and decoding.repetition_penalty == 1.0:
        return Greedy(without, scores)

    def choose(rows: Rows, answer: Answer) -> Choice:
        seen_NS = None if decoding.repetition_penalty == 1.0 else seen_tokens(rows)
        token_N = answer.sample(uniforms(rows, seed), decoding, without, seen_NS)
        log_probability_N = numbers(answer.of(np.maximum(token_N, 0)))
        if token_N.min() >= 0:
            return Choice(None, token_N, log_probability_N)
        row_M = np.flatnonzero(token_N >= 0)
        return Choice(row_M, token_N[row_M], log_probability_N[row_M])

    return choose


def uniforms(rows: Rows, seed: int) -> Floats:
    """A number in [0, 1) for each row, ``uniform_N``: the upper 53 bits of its key."""
    names = [(sentence.index, sentence.sample) for sentence in rows.sentences]
    pairs = zip(rows.sentence_N.tolist(), rows.length_N.tolist(), strict=True)
    return np.array([(key(seed, "sample", *names[place], step) >> 11) * 2.0**-53 for place, step in pairs])


def seen_tokens(rows: Rows) -> Ints:
    """The tokens that each row has already, its prompt's before its own; -1 where it has fewer: ``seen_NS``."""
    prompts = [[] if s.first is None else [*s.source.tolist(), s.first] for s in rows.sentences]
    longest = max((len(prompt) for prompt in prompts), default=0)
    prompt_BS = np.full((len(prompts), longest), -1, np.int64)
    for place, prompt in enumerate(prompts):
        prompt_BS[place, : len(prompt)] = prompt
    tokens_NT = rows.with_histories().tokens_NT
    own_NT = np.where(np.arange(tokens_NT.shape[1]) < rows.length_N[:, None], tokens_NT, -1)
    return np.concatenate([prompt_BS[rows.sentence_N], own_NT], axis=1)


def sample(
    step: Step[Any],
    sources: Sequence[Ints],
    decoding: Decoding,
    symbols: Symbols,
    *,
    seed: int,
    samples: int = 1,
    firsts: Sequence[int] | None = None,
    limits: Sequence[int] | None = None,
    numbers: Sequence[int] | None = None,
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
        limits: the most tokens of each source's outputs, ``</s>`` counted; default: its length + ``max_extra``.
        numbers: of the sources, all different, on which the draws depend; default: their places in the list.
        stop: ends an output before the model does.
        scores: whether log-probabilities are wanted; at temperature 0 they may be NaN where they are not.
    """
    if samples < 1:
        raise UsageError(f"{samples} samples of a text cannot be drawn; at least one can", "samples")
    choose = random_sampling(decoding, seed, symbols.without, scores)
    scheduler = Scheduler(step, choose, decoding.model_copy(update={"beam": 1}), symbols, stop=stop)
    enqueue(scheduler, sources, decoding.max_extra, samples=samples, firsts=firsts, limits=limits, numbers=numbers)
    found = {(sentence.index, sentence.sample): sentence.best.hypotheses[0] for sentence in scheduler.run()}
    indices = range(len(sources)) if numbers is None else numbers
    return [[found[index, number] for number in range(samples)] for index in indices]
