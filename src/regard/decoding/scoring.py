"""Forced decoding: the model's log-probability of given targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.config import Decoding
from regard.decoding.hypotheses import Hypothesis
from regard.decoding.rows import Choice, Choose, Ints, Rows, Symbols
from regard.decoding.scheduler import Scheduler
from regard.decoding.step import Answer, Step
from regard.system.errors import UsageError


def forced_decoding(targets: Sequence[Ints]) -> Choose:
    """Forced decoding: each row continues with the next token of its sentence's target."""

    def choose(rows: Rows, answer: Answer) -> Choice:
        pairs = zip(rows.sentences, rows.length_N.tolist(), strict=True)
        token_N = np.array([targets[sentence.index][length] for sentence, length in pairs], np.int64)
        return Choice(np.arange(rows.count), token_N, answer.of(token_N))

    return choose


def score(
    step: Step[Any], sources: Sequence[Ints], targets: Sequence[Ints], decoding: Decoding, symbols: Symbols
) -> list[Hypothesis]:
    """Each target (ids without ``</s>``) as the hypothesis a search would have made of it, ``</s>`` scored too.

    Ignores beam, limit and ``symbols.without``: the given tokens are scored, whatever they are.
    """
    if len(sources) != len(targets):
        raise UsageError(f"{len(sources)} sources but {len(targets)} targets; scoring needs one target a source")
    whole = [np.append(np.asarray(target, np.int64), symbols.end) for target in targets]
    if any((target[:-1] == symbols.end).any() for target in whole):
        raise UsageError("a target holds </s>; give it without, scoring adds it")
    scheduler = Scheduler(step, forced_decoding(whole), decoding.model_copy(update={"beam": 1}), symbols)
    for index in sorted(range(len(sources)), key=lambda i: -len(sources[i])):
        scheduler.put(index, sources[index], len(whole[index]))
    found = {sentence.index: sentence.best.hypotheses[0] for sentence in scheduler.run()}
    return [found[index] for index in range(len(sources))]
