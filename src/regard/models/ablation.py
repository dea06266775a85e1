"""Ablations of a model while a context is open: heads, positions, scaling or mask removed; in search too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from regard.config.families import Model
from regard.nn.hooks import intervene
from regard.system.errors import UsageError
from regard.text.counts import counted


@dataclass(frozen=True)
class Head:
    """A head of a model: the use of attention (encoder, decoder, cross, pool), then layer and head, counted from 1."""

    kind: str
    layer: int
    head: int


@dataclass(frozen=True)
class Ablations:
    """What is removed from a model.

    Args:
        off: heads whose context is set to zero.
        positions: positional encodings, added to embeddings or to scores, or turning queries and keys.
        scaling: scores are divided by √d_k.
        mask: a token does not see what comes after it. No effect in search, where later tokens do not exist yet.
    """

    off: tuple[Head, ...] = ()
    positions: bool = True
    scaling: bool = True
    mask: bool = True

    @contextmanager
    def apply(self, section: Model) -> Iterator[None]:
        """While the context is open, models of this section run with these ablations.

        Raises:
            UsageError: there is no such head, or the family has no such part.
        """
        with ExitStack() as stack:
            for point, function in self._replacements(section):
                stack.enter_context(intervene(point, function))
            yield

    def _replacements(self, section: Model) -> Iterator[tuple[str, Callable[[Tensor], Tensor]]]:
        points = section.info.points
        for one in self.off:
            refuse_missing(section, one)
            point = points[one.kind].format(one.layer - 1)
            yield _beside(point, "context"), partial(_silence_head, head=one.head)
        if not self.positions:
            yield from _nowhere()
        if not self.scaling:
            if not section.divides:
                raise UsageError("this model does not divide its scores by √d_k", "scaling")
            for kind, point in points.items():
                yield _beside(point, "score"), partial(torch.mul, other=section.divisor_of(kind))
        if not self.mask:
            for point in points.values():
                yield _beside(point, "mask"), torch.zeros_like


def refuse_missing(section: Model, one: Head) -> None:
    """Raise a UsageError for a head that the model does not have."""
    there = section.attention
    if one.kind not in there:
        raise UsageError(f"this model has no {one.kind} attention, but {' and '.join(there) or 'none'}", "head")
    layers, heads = there[one.kind]
    if not (1 <= one.layer <= layers and 1 <= one.head <= heads):
        sizes = f"{counted(layers, 'layer')} of {counted(heads, 'head')}"
        message = f"there is no head {one.head} in layer {one.layer}; this model has {sizes}"
        raise UsageError(message, "head")


def _beside(point: str, name: str) -> str:
    """Another hook point of the attention whose weights are at ``point``."""
    return point.format("*").removesuffix("weight") + name


def _silence_head(context_HLU: Tensor, head: int) -> Tensor:
    keep_H = torch.ones_like(context_HLU[:, 0, 0])
    keep_H[head - 1] = 0
    return context_HLU * keep_H[:, None, None]


def _nowhere() -> Iterator[tuple[str, Callable[[Tensor], Tensor]]]:
    """Embeddings pass on as they were before positions were added; nothing is added to scores, none turned."""
    before: dict[str, Tensor] = {}

    def keep_input(x_TD: Tensor) -> Tensor:
        before["x_TD"] = x_TD
        return x_TD

    yield "*.input.embedding", keep_input
    yield "*.input.positions", lambda _: before["x_TD"]
    yield "*.bias", torch.zeros_like
    yield "*.places", torch.zeros_like
