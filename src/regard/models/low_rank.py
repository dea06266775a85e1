"""Adaptation of a model that exists: low-rank factors of its projections [Hu21], and parts that stay as they are."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Self

import torch
from torch import Tensor, nn

from regard.config import Adapt
from regard.nn.ops import Linear
from regard.system.errors import RegardError

_EMBEDDINGS = re.compile(r"\.input\.(tokens|positions|words|segments)\.|^output[._]")
PARTS: Mapping[str, Callable[[str], bool]] = {
    "encoder": lambda name: name.startswith("encoder.") and not _EMBEDDINGS.search(name),
    "decoder": lambda name: name.startswith("decoder.") and not _EMBEDDINGS.search(name),
    "embeddings": lambda name: bool(_EMBEDDINGS.search(name)),
    "norms": lambda name: re.search(r"\.(norm|final)\.", name) is not None,
    "biases": lambda name: name.endswith("bias"),
    "head": lambda name: name.startswith("head."),
}
"""Whether a parameter belongs to a part, by its name."""


class LowRank(Linear):
    """A projection with the weight ``W + (α / r) B A``, of which the factors A and B are learned [Hu21 §4.1].

    The product is of the size of the weight, so that whatever multiplies by the weight stays as it is.
    """

    scale: float
    lora_a: nn.Parameter
    lora_b: nn.Parameter

    @classmethod
    def of(cls, linear: Linear, rank: int, scale: float, generator: torch.Generator | None = None) -> Self:
        """Make one of a projection, in place: A is drawn as PEFT draws it, B is zero, so that nothing changes yet."""
        weight_FD = linear.weight
        if rank > (side := min(weight_FD.shape)):
            raise RegardError(f"{rank} is more than a projection's smaller side, {side}", "adapt.rank")
        linear.__class__ = cls
        assert isinstance(linear, cls)
        factor_RD, factor_FR = weight_FD.new_empty(rank, weight_FD.shape[1]), weight_FD.new_zeros(len(weight_FD), rank)
        if not factor_RD.is_meta:
            nn.init.kaiming_uniform_(factor_RD, a=math.sqrt(5), generator=generator)
        linear.lora_a, linear.lora_b, linear.scale = nn.Parameter(factor_RD), nn.Parameter(factor_FR), scale
        return linear

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """The weight that the input is multiplied by."""
        weight_FD = self._parameters["weight"]
        assert weight_FD is not None
        return torch.addmm(weight_FD, self.lora_b, self.lora_a, alpha=self.scale)


def adapt(model: nn.Module, section: Adapt, fresh: Collection[str] = (), key: int = 0) -> None:
    """Leave of a model's parameters only those to train that a recipe says.

    Args:
        model: with the weights that it begins from.
        section: of the recipe.
        fresh: names of parameters that it does not have from there, which are always trained.
        key: of the random factors.

    Raises:
        RegardError: the model lacks one of the projections or parts, or the rank is larger than a projection.
    """
    whole = section.whole if section.rank else section.freeze
    names = [name for name, _ in model.named_parameters()]
    if empty := [part for part in whole if not any(map(PARTS[part], names))]:
        raise RegardError(
            f"this model has no {empty[0]}; leave it out", f"adapt.{'whole' if section.rank else 'freeze'}"
        )
    if section.rank or section.freeze:
        for name, parameter in model.named_parameters():
            named = any(PARTS[part](name) for part in whole)
            parameter.requires_grad_(name in fresh or named == bool(section.rank))
    if section.rank:
        add_factors(model, section, torch.Generator().manual_seed(key & 0x7FFF_FFFF_FFFF_FFFF))


def add_factors(model: nn.Module, section: Adapt, generator: torch.Generator | None = None) -> None:
    """Give a model's projections their factors.

    Raises:
        RegardError: it lacks one of these projections.
    """
    linears = [(_role(name), one) for name, one in model.named_modules() if isinstance(one, Linear)]
    if absent := [role for role in section.projections if role not in dict(linears)]:
        raise RegardError(f"this model has no {' or '.join(absent)}; leave it out", "adapt.projections")
    for role, linear in linears:
        if role in section.projections:
            LowRank.of(linear, section.rank, section.scale, generator)


def _role(name: str) -> str:
    """What a projection is in its layer, as a recipe names it: its own name in attention, else that of its part."""
    above, _, own = name.rpartition(".")
    kind = above.rpartition(".")[2]
    return own if kind in ("attention", "cross") else kind
