"""Weight initialisation. Every part that has weights draws them when it is made; a key draws those of a model again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from regard.system.errors import RegardError, UsageError

_DRAWS: ContextVar[bool] = ContextVar("draws", default=True)


@runtime_checkable
class Part(Protocol):
    """A part that draws its own weights, not those of the parts inside it."""

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights; from torch's default generator if none is given."""


@contextmanager
def undrawn() -> Iterator[None]:
    """Within, parts that are made draw nothing: :func:`initialise` will."""
    token = _DRAWS.set(False)
    try:
        yield
    finally:
        _DRAWS.reset(token)


def draw(part: Part) -> None:
    """Draw the weights of a part that was just made; not on the meta device, where that would load torch's compiler."""
    if isinstance(part, nn.Module) and not watch(part) and _DRAWS.get():
        part.initialise()


def watch(part: nn.Module) -> bool:
    """Have a part that was just made on the meta device refuse calls until its weights have values.

    Parts made elsewhere, and those of ``models/build``, get no hook. A part calls this, or :func:`draw`, as it is made.

    Returns:
        Whether it is on the meta device.

    Raises:
        UsageError: a weight has no entry, because a size is 0.
    """
    for name, weight in part.named_parameters():
        if not weight.numel():
            shape = " x ".join(map(str, weight.shape))
            raise UsageError(f"{name} would be of {shape} numbers; sizes are at least 1", type(part).__name__)
    found = any(weight.is_meta for weight in part.parameters())
    if found and _DRAWS.get():
        part.register_forward_pre_hook(_refuse_call, with_kwargs=True)
    return found


def refuse_sizes(part: nn.Module, **sizes: int) -> None:
    """Refuse sizes of a part of which nothing could be made.

    Raises:
        UsageError: one is below 1, or no whole number; ``where`` names it.
    """
    for name, size in sizes.items():
        if not isinstance(size, Integral) or size < 1:
            raise UsageError(f"must be a whole number of at least 1, not {size}", f"{name} of {type(part).__name__}")


def refuse_probabilities(part: nn.Module, **probabilities: float) -> None:
    """Refuse probabilities by which a part cannot drop, or drops all.

    Raises:
        UsageError: one is not in 0 … 1, or 1 itself; ``where`` names it.
    """
    for name, probability in probabilities.items():
        if not 0 <= probability < 1:
            raise UsageError(f"must be a probability below 1, not {probability}", f"{name} of {type(part).__name__}")


def _refuse_call(part: nn.Module, inputs: tuple[object, ...], named: dict[str, object]) -> None:
    """The hook of a part made on the meta device; it goes once the weights have values.

    A call with inputs that are on the meta device too only asks for shapes.
    """
    given = [value for value in (*inputs, *named.values()) if isinstance(value, torch.Tensor)]
    if torch.compiler.is_compiling() or all(value.is_meta for value in given):
        return
    refuse_undrawn(part)
    for number, hook in list(part._forward_pre_hooks.items()):
        if hook is _refuse_call:
            del part._forward_pre_hooks[number], part._forward_pre_hooks_with_kwargs[number]


def initialise(model: nn.Module, key: int) -> None:
    """Draw the weights of a fresh model from a key of 64 bits, part by part in the order of ``model.modules()``.

    Weights that begin as constants (of norms, of the CRF) stay as they were made.

    Projections are Xavier-uniform with zero biases, embeddings have standard deviation d_model^-0.5. With the embedding
    times √d_model, entries that enter the stack have unit variance, like the sinusoids [Vaswani17 §3.4]. The paper does
    not state its initialisation; this is its published code's.
    """
    generator = torch.Generator().manual_seed(key & 0x7FFF_FFFF_FFFF_FFFF)
    for module in model.modules():
        if isinstance(module, Part):
            module.initialise(generator)


def refuse_undrawn(model: nn.Module) -> None:
    """Refuse a model whose weights were never drawn, before it computes NaN.

    Raises:
        RegardError: a weight is on the meta device, or not finite; ``where`` is its name.
    """
    for name, weight in model.named_parameters():
        if weight.is_meta:
            raise RegardError("has no values: the model was made on the meta device; draw or load its weights", name)
        if not bool(weight.isfinite().all()):
            raise RegardError("has values that are not finite: were its weights never drawn or loaded?", name)


class Vectors:
    """Of parts whose own weights are vectors: entries of one of size d begin with standard deviation d^-0.5."""

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Draw the vectors, not those of the parts inside."""
        assert isinstance(self, nn.Module)
        for parameter in self.parameters(recurse=False):
            nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5, generator=generator)
