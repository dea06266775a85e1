"""Sequential operations and maximum path length of a whole encoder-decoder, by formula [Vaswani17 §4]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regard.config import Model, RnnSection, TransformerSection


@dataclass(frozen=True)
class Count:
    """A number and its formula, e.g. ``2·n``, in the letters of the paper.

    ``n`` source tokens, ``m`` target tokens.
    """

    formula: str
    value: int


@dataclass(frozen=True)
class ModelCosts:
    """Costs of a whole encoder-decoder, in units of one layer at one position.

    Args:
        source_tokens, target_tokens: of a pair of sentences.
        sequential: how many such operations wait for each other while it learns from one pair of sentences, all target
            tokens known (teacher forcing).
        within: the longest of the shortest ways between two source tokens, embedding to encoder output.
        across: the same from a source token to the output at a target token.
    """

    source_tokens: int
    target_tokens: int
    sequential: Count
    within: Count
    across: Count


def costs(model: Model, n: int, m: int) -> ModelCosts:
    """Table 1's questions put to a whole encoder-decoder, for ``n`` source and ``m`` target tokens.

    Raises:
        ValueError: the model is no encoder-decoder, or a sentence has no token.
    """
    if model.family not in COSTS:
        raise ValueError(f"a model of the family {model.family!r} is no encoder-decoder")
    if min(n, m) < 1:
        raise ValueError(f"{n} source and {m} target tokens: each sentence has one at least, its end")
    return COSTS[model.family](model, n, m)


def transformer_costs(model: TransformerSection, n: int, m: int) -> ModelCosts:
    """Layer waits for layer, and no position for another; the last of the decoder's looks at the source itself.

    In a decoder that is recurrent a position waits for the one before.
    """
    read, write = model.encoder_layers, model.decoder_layers
    writing = _sum(write - 1, (1, "m", m)) if model.decoder_cell else Count(str(write), write)
    sequential, across = Count(f"{read} + {writing.formula}", read + writing.value), Count(f"{read} + 1", read + 1)
    return ModelCosts(n, m, sequential, Count(str(read), read), across)


def recurrent_costs(model: RnnSection, n: int, m: int) -> ModelCosts:
    """A token waits for the one before it, and the decoder for the whole encoder; attention is done for all at once."""
    read, write, attends = model.encoder_layers, model.decoder_layers, model.score != "none"
    # layers that read one way follow each other one token later; two-way ones wait for each other's last token
    reading = _sum(0, (read, "n", n)) if model.two_way else _sum(read - 1, (1, "n", n))
    writing = _sum(write - 1 + attends, (1, "m", m))
    if model.input_feeding:  # the next token waits for what was attended to
        writing = _sum(0, (write + 1, "m", m))
    sequential = Count(f"{reading.formula} + {writing.formula}", reading.value + writing.value)
    across = Count(f"{read} + 1", read + 1)
    if not attends:  # from the source token farthest from the encoder's end, or ends, to the last target token
        nearer = (1, "⌈n/2⌉", math.ceil(n / 2)) if model.two_way else (1, "n", n)
        across = _sum(read - 1, nearer, (1, "m", m))
    return ModelCosts(n, m, sequential, _sum(read - 1, (1, "n", n)), across)


def _sum(constant: int, *terms: tuple[int, str, int]) -> Count:
    """A sum of terms, each a coefficient times a letter with a value, and a constant."""
    said = [letter if times == 1 else f"{times}·{letter}" for times, letter, _ in terms]
    value = constant + sum(times * value for times, _, value in terms)
    return Count(" + ".join([*said, *([str(constant)] if constant else [])]), value)


COSTS: dict[str, Callable[[Any, int, int], ModelCosts]] = {"transformer": transformer_costs, "rnn": recurrent_costs}
"""What whole sentences cost, by the family of an encoder-decoder."""
