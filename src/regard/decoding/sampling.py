"""Random sampling from the model's distribution, after the recipe's logits filters.

Each draw is a pure function of (seed, index of the source, number of the sample, step): every row has its own random
number, so a sample depends neither on the other rows (law *refilling*) nor on the order of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.config import Decoding
from regard.decoding.hypotheses import Hypothesis
from regard.decoding.rows import Choice, Choose, Floats, Ints, Rows, Stop, Symbols
from regard.decoding.scheduler import Scheduler
from regard.decoding.search import enqueue
from regard.decoding.step import Answer, Step
from regard.system.errors import RegardError, UsageError
from regard.system.keys import key


def random_sampling(decoding: Decoding, seed: int, without: Sequence[int] = ()) -> Choose:
    """Each row continues with one random token; at temperature 0 with the most probable one, as in greedy search.

    The log-probabilities noted are those of the model, before temperature, limits and penalty. The repetition penalty
    sees the row's own tokens and its prompt, if any; not a source in another language.
    """

    def choose(rows: Rows, answer: Answer) -> Choice:
        seen_NS = None if decoding.repetition_penalty == 1.0 else seen_tokens(rows)
        token_N = answer.sample(uniforms(rows, seed), decoding, without, seen_NS)
        log_probability_N = answer.of(np.maximum(token_N, 0))
        if np.isnan(log_probability_N).any():
            raise RegardError(
                "the model answered with log-probabilities that are not numbers; are its weights damaged?"
            )
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
    own_NT = np.where(np.arange(rows.tokens_NT.shape[1]) < rows.length_N[:, None], rows.tokens_NT, -1)
    return np.concatenate([prompt_BS[rows.sentence_N], own_NT], axis=1)


def sampler(
    step: Step[Any],
    sources: Sequence[Ints],
    decoding: Decoding,
    symbols: Symbols,
    *,
    seed: int,
    samples: int = 1,
    firsts: Sequence[int] | None = None,
    limits: Sequence[int] | None = None,
    stop: Stop | None = None,
) -> Scheduler:
    """A scheduler that draws ``samples`` outputs of each source; each output is a sentence of its own.

    Its ``run()`` gives sentences as they close, its ``tokens()`` every token as it is drawn.

    Args:
        step: the model.
        sources: ids with ``</s>``; where ``firsts`` are given, prompts without their last token (maybe empty).
        decoding: how to draw, and the budget; the beam plays no part.
        symbols: start, ``</s>``, and what is never produced.
        seed: another seed, other samples.
        firsts: the last token of each prompt; without them every row begins with the start symbol.
        limits: the most tokens of each source's outputs, ``</s>`` counted; default: its length + ``max_extra``.
        stop: ends an output before the model does.
    """
    if samples < 1:
        raise UsageError(f"{samples} samples of a text cannot be drawn; at least one can", "samples")
    choose = random_sampling(decoding, seed, symbols.without)
    scheduler = Scheduler(step, choose, decoding.model_copy(update={"beam": 1}), symbols, stop=stop)
    enqueue(scheduler, sources, decoding.max_extra, samples=samples, firsts=firsts, limits=limits)
    return scheduler


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
    stop: Stop | None = None,
) -> list[list[Hypothesis]]:
    """As :func:`sampler`, run to its end: the samples of each source by number, in the order of the sources."""
    scheduler = sampler(
        step, sources, decoding, symbols, seed=seed, samples=samples, firsts=firsts, limits=limits, stop=stop
    )
    found = {(sentence.index, sentence.sample): sentence.best.hypotheses[0] for sentence in scheduler.run()}
    return [[found[index, number] for number in range(samples)] for index in range(len(sources))]
