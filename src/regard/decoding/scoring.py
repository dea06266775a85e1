"""Forced decoding: how probable given outputs are, token by token, by the steps that a search takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.decoding.hypotheses import Floats, Ints
from regard.decoding.step import Answer, Step


def score(step: Step[Any], sources: Sequence[Ints], outputs: Sequence[Ints], start: int, room: int) -> list[Floats]:
    """The log-probability of every token of an output, given its source and what stands before the token.

    Args:
        step, sources, outputs, start, room: as :func:`force` has them.

    Returns:
        ``log_probability_T`` for each output; a row does not depend on the others.
    """
    found = [np.zeros(len(output)) for output in outputs]
    for pairs, place, token_N, answer in force(step, sources, outputs, start, room):
        for index, log_probability in zip(pairs, answer.of(token_N).tolist(), strict=True):
            found[index][place] = log_probability
    return found


def attend(
    step: Step[Any], sources: Sequence[Ints], outputs: Sequence[Ints], start: int, room: int
) -> list[NDArray[np.float32]]:
    """What every step of an output attends to in its source.

    Args:
        step: of a model that hands out its weights.
        sources, outputs, start, room: as :func:`force` has them.

    Returns:
        ``weight_HTS`` for each pair: of the step that predicts a token, heads of all layers side by side.
    """
    found = [np.zeros((0, 0, 0), np.float32)] * len(outputs)
    for pairs, place, _, answer in force(step, sources, outputs, start, room):
        weight_NHS = answer.context()
        assert weight_NHS is not None
        for index, weight_HS in zip(pairs, weight_NHS, strict=True):
            if place == 0:
                shape = len(weight_HS), len(outputs[index]), len(sources[index])
                found[index] = np.zeros(shape, np.float32)
            found[index][:, place] = weight_HS[:, : len(sources[index])]
    return found


def force(
    step: Step[Any], sources: Sequence[Ints], outputs: Sequence[Ints], start: int, room: int
) -> Iterator[tuple[list[int], int, Ints, Answer]]:
    """The steps of forced decoding: of which pairs each is, the place in their outputs, their tokens there, the answer.

    Args:
        step: the model.
        sources: ids with ``</s>``.
        outputs: ids of one output of each source, not empty, ``</s>`` last where its probability counts.
        start: the start symbol.
        room: source tokens read at once; a longer source is read alone.
    """
    for group in _groups(sources, outputs, room):
        state, token_N = step.start([sources[index] for index in group]), np.full(len(group), start)
        for place in range(len(outputs[group[0]])):
            live = [index for index in group if len(outputs[index]) > place]  # those that end leave from behind
            if len(live) < len(token_N):
                state, token_N = step.select(state, np.arange(len(live))), token_N[: len(live)]
            state, answer = step.step(state, token_N)
            token_N = np.array([outputs[index][place] for index in live], np.int64)
            yield live, place, token_N, answer


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
