"""What a model says of pairs that it was given: the steps of a search that is told what to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from regard.decoding.scoring import force
from regard.decoding.step import with_weights
from regard.tasks.engine import own_step_of
from regard.tasks.translation.guard import ForcedPass
from regard.text.tags import Place

if TYPE_CHECKING:
    from regard.tasks.protocols import Read, TargetWriter

Pair = tuple[str, str, ForcedPass | None]


def forced_passes(task: TargetWriter, sources: Sequence[str], outputs: Sequence[str]) -> list[Pair]:
    """Sources and outputs as the tokenizers have them, and what a translator says of each pair.

    Returns:
        Nothing of the model where there is no source, or a text is longer than it reads at once.
    """
    reads, writes = list(map(task.reads, sources)), list(map(task.reads_target, outputs))
    most, extra = task.recipe.data.max_tokens, task.recipe.decoding.max_extra
    found: list[Pair] = [(source, output, None) for (source, _), (output, _) in zip(reads, writes, strict=True)]
    able = [
        place
        for place, (source, output, _) in enumerate(found)
        if source.strip() and len(reads[place][1]) <= most + 1 and len(writes[place][1]) <= most + extra
    ]
    passes = _read(task, [reads[place][1] for place in able], [writes[place][1] for place in able])
    for place, forced in zip(able, passes, strict=True):
        found[place] = (*found[place][:2], forced)
    return found


def _read(task: TargetWriter, reads: Sequence[list[Read]], writes: Sequence[list[Read]]) -> list[ForcedPass]:
    sources = [np.array([id for id, _, _ in read]) for read in reads]
    outputs = [np.array([*(id for id, _, _ in written), task.symbols.end]) for written in writes]
    coverage, own = [np.zeros(len(ids)) for ids in sources], [np.zeros(len(ids)) for ids in outputs]
    step, skip = with_weights(own_step_of(task)), len(task.symbols.prefix)
    for pairs, place, token_N, answer in force(step, sources, outputs, task.symbols.start, task.recipe.decoding.tokens):
        weight_NHS, log_probability_N = answer.context(), answer.of(token_N)
        mean_NS = np.full((len(pairs), 1), np.nan) if weight_NHS is None else weight_NHS.mean(1)
        for index, mean_S, log_probability in zip(pairs, mean_NS, log_probability_N.tolist(), strict=True):
            coverage[index] += mean_S[: len(coverage[index])]
            own[index][place] = log_probability
    return [
        ForcedPass(_places(read), _places(written[skip:]), coverage_S, own_T[skip:-1], float(own_T[skip:].mean()))
        for read, written, coverage_S, own_T in zip(reads, writes, coverage, own, strict=True)
    ]


def _places(read: Sequence[Read]) -> list[Place]:
    return [(begin, end) for _, begin, end in read]
