"""Forced decoding: how probable given outputs are, token by token, by the steps that a search takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from regard.decoding.hypotheses import Floats, Ints
from regard.decoding.step import Step


def score(step: Step[Any], sources: Sequence[Ints], outputs: Sequence[Ints], start: int, room: int) -> list[Floats]:
    """The log-probability of every token of an output, given its source and what stands before the token.

    Args:
        step: the model.
        sources: ids with ``</s>``.
        outputs: ids of one output of each source, not empty, ``</s>`` last where its probability counts.
        start: the start symbol.
        room: source tokens read at once; a longer source is read alone.

    Returns:
        ``log_probability_T`` for each output; a row does not depend on the others.
    """
    found: list[Floats] = [np.zeros(0)] * len(sources)
    for group in _groups(sources, outputs, room):
        for index, log_probability_T in zip(group, _of_group(step, sources, outputs, start, group), strict=True):
            found[index] = log_probability_T
    return found


def _groups(sources: Sequence[Ints], outputs: Sequence[Ints], room: int) -> Iterator[list[int]]:
    """Indices of pairs that are read together, outputs of about the same length beside each other, longest first."""
    group, read = list[int](), 0
    for index in sorted(range(len(sources)), key=lambda i: (-len(outputs[i]), -len(sources[i]))):
        if group and read + len(sources[index]) > room:
            yield group
            group, read = [], 0
        group.append(index)
        read += len(sources[index])
    if group:
        yield group


def _of_group(
    step: Step[Any], sources: Sequence[Ints], outputs: Sequence[Ints], start: int, group: Sequence[int]
) -> list[Floats]:
    """The same of some pairs, whose outputs only become shorter: those that end leave from behind."""
    lengths = np.array([len(outputs[index]) for index in group])
    found = [np.zeros(length) for length in lengths.tolist()]
    state, token_N = step.start([sources[index] for index in group]), np.full(len(group), start)
    for place in range(int(lengths.max())):
        live = int((lengths > place).sum())
        if live < len(token_N):
            state, token_N = step.select(state, np.arange(live)), token_N[:live]
        state, answer = step.step(state, token_N)
        token_N = np.array([outputs[index][place] for index in group[:live]], np.int64)
        for row, log_probability in zip(found, answer.of(token_N).tolist(), strict=False):
            row[place] = log_probability
    return found
