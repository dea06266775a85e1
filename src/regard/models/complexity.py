"""Cost of a sequence by formula: operations, sequential operations and maximum path length.

The paper's Table 1 for each kind of layer, and the same figures for a whole encoder-decoder [Vaswani17 §4].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regard.config import Model, RnnSection, TransformerSection


@dataclass(frozen=True)
class Count:
    """A number and its formula, e.g. ``n·d²``, in the letters of the paper.

    ``n`` source tokens, ``m`` target tokens, ``d`` entries of a vector, ``k`` tokens that a kernel covers, ``r`` tokens
    of a restricted neighbourhood.
    """

    formula: str
    value: int


@dataclass(frozen=True)
class LayerCosts:
    """A row of Table 1 [Vaswani17 §4].

    Args:
        name: the kind of layer.
        operations: multiplications, up to a constant factor.
        sequential: the minimum number of sequential operations.
        path: maximum path length between two positions, in layers or steps.
    """

    name: str
    operations: Count
    sequential: Count
    path: Count


@dataclass(frozen=True)
class ModelCosts:
    """The same for a whole encoder-decoder, in units of one layer at one position.

    Args:
        layer: the row of Table 1 of the layers it is made of.
        sequential: how many such operations wait for each other while it learns from one pair of sentences, all target
            tokens known (teacher forcing).
        within: the longest of the shortest ways between two source tokens, embedding to encoder output.
        across: the same from a source token to the output at a target token.
    """

    layer: LayerCosts
    sequential: Count
    within: Count
    across: Count


def self_attention(n: int, d: int) -> LayerCosts:
    """Every position attends to every one [Vaswani17 Table 1, row 1]."""
    return LayerCosts("self-attention", Count("n²·d", n * n * d), Count("1", 1), Count("1", 1))


def recurrent(n: int, d: int) -> LayerCosts:
    """A state passes from position to position [Vaswani17 Table 1, row 2]."""
    return LayerCosts("recurrent", Count("n·d²", n * d * d), Count("n", n), Count("n", n))


def convolutional(n: int, d: int, k: int = 3) -> LayerCosts:
    """Each position sees ``k`` neighbours; a stack of dilated kernels joins all [Vaswani17 Table 1, row 3]."""
    if k < 2:
        raise ValueError(f"a kernel of {k} tokens joins nothing; k is 2 or more")
    path = Count(f"log_{k} n", max(1, _logarithm(n, k)))
    return LayerCosts("convolutional", Count("k·n·d²", k * n * d * d), Count("1", 1), path)


def restricted_attention(n: int, d: int, r: int) -> LayerCosts:
    """Self-attention to the ``r`` nearest positions only [Vaswani17 Table 1, row 4]."""
    return LayerCosts(
        "self-attention (restricted)", Count("r·n·d", r * n * d), Count("1", 1), Count("n/r", max(1, math.ceil(n / r)))
    )


def table_one(n: int, d: int, k: int = 3, r: int = 8) -> tuple[LayerCosts, ...]:
    """The paper's Table 1 for sequences of ``n`` vectors of ``d`` entries, in its order."""
    return self_attention(n, d), recurrent(n, d), convolutional(n, d, k), restricted_attention(n, d, r)


def _logarithm(n: int, k: int) -> int:
    """The smallest depth ``x`` with ``k**x >= n``, counted in whole numbers."""
    depth, reach = 0, 1
    while reach < n:
        depth, reach = depth + 1, reach * k
    return depth


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


def _of_transformer(model: TransformerSection, n: int, m: int) -> ModelCosts:
    """Layer waits for layer, and no position for another; the last of the decoder's looks at the source itself."""
    read, write = model.encoder_layers, model.decoder_layers
    sequential, across = Count(f"{read} + {write}", read + write), Count(f"{read} + 1", read + 1)
    return ModelCosts(self_attention(n, model.d_model), sequential, Count(str(read), read), across)


def _of_recurrent(model: RnnSection, n: int, m: int) -> ModelCosts:
    """A token waits for the one before it, and the decoder for the whole encoder; attention is done for all at once."""
    read, write, attends = model.encoder_layers, model.decoder_layers, model.score != "none"
    # layers that read one way follow each other one token later; two-way ones wait for each other's last token
    reading = _sum(0, (read, "n", n)) if model.two_way else _sum(read - 1, (1, "n", n))
    writing = _sum(write - 1 + attends, (1, "m", m))
    if model.input_feeding:  # the next token waits for what was attended to
        writing = _sum(0, (write + 1, "m", m))
    sequential = Count(f"{reading.formula} + {writing.formula}", reading.value + writing.value)
    across = Count(f"{read} + 1", read + 1) if attends else _through_the_bottleneck(model, n, m)
    return ModelCosts(recurrent(n, model.d_model), sequential, _sum(read - 1, (1, "n", n)), across)


def _through_the_bottleneck(model: RnnSection, n: int, m: int) -> Count:
    """From the source token that lies farthest from the encoder's end, or ends, to the last target token."""
    nearer = (1, "⌈n/2⌉", math.ceil(n / 2)) if model.two_way else (1, "n", n)
    return _sum(model.encoder_layers - 1, nearer, (1, "m", m))


def _sum(constant: int, *terms: tuple[int, str, int]) -> Count:
    """A sum of terms, each a coefficient times a letter with a value, and a constant."""
    said = [letter if times == 1 else f"{times}·{letter}" for times, letter, _ in terms]
    value = constant + sum(times * value for times, _, value in terms)
    return Count(" + ".join([*said, *([str(constant)] if constant else [])]), value)


COSTS: dict[str, Callable[[Any, int, int], ModelCosts]] = {
    "transformer": _of_transformer,
    "rnn": _of_recurrent,
}
"""The families that translate."""
