"""Tensor name tables: our names ↔ theirs, with transposing, reshaping and reordering."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from regard.system.errors import RegardError


class Form(Protocol):
    """Mapping between a tensor of theirs and one or several of ours."""

    def inward(self, theirs: Tensor) -> list[Tensor]:
        """Ours, from theirs."""
        ...

    def outward(self, ours: list[Tensor]) -> Tensor:
        """Theirs, from ours."""
        ...


@dataclass(frozen=True)
class Transposed:
    """GPT-2's linears: the matrix the other way round, and queries, keys and values side by side in one."""

    parts: int = 1

    def inward(self, theirs: Tensor) -> list[Tensor]:
        return [part.t() if part.dim() > 1 else part for part in theirs.chunk(self.parts, -1)]

    def outward(self, ours: list[Tensor]) -> Tensor:
        return torch.cat([part.t() if part.dim() > 1 else part for part in ours], -1)


@dataclass(frozen=True)
class Shaped:
    """The same numbers in another shape, e.g. the matrix of a patch's pixels as the kernel of a convolution."""

    ours: tuple[int, ...]
    theirs: tuple[int, ...]

    def inward(self, theirs: Tensor) -> list[Tensor]:
        if tuple(theirs.shape) != self.theirs:
            raise ValueError(f"has the shape {list(theirs.shape)}, where {list(self.theirs)} is expected")
        return [theirs.reshape(self.ours)]

    def outward(self, ours: list[Tensor]) -> Tensor:
        return ours[0].reshape(self.theirs)


@dataclass(frozen=True)
class InitialTensor:
    """A table of embeddings to which we add a row for the start symbol: a copy of the row that starts a text there.

    Args:
        row: that row; ``None``: there too it is the last one, with nothing added.
        copies: tables of ours that are one there.
    """

    row: int | None
    copies: int = 1

    def inward(self, theirs: Tensor) -> list[Tensor]:
        added = [] if self.row is None else [theirs[self.row : self.row + 1]]
        return [torch.cat([theirs, *added])] * self.copies

    def outward(self, ours: list[Tensor]) -> Tensor:
        tables = ours if self.row is None else [table[:-1] for table in ours]
        if any(not torch.equal(tables[0], other) for other in tables[1:]):
            raise ValueError("stands for several tables of this model, which have become different")
        return tables[0]


@dataclass(frozen=True)
class Reordered:
    """The entries of the residual stream in another order along one axis; ``order[i]`` is ours that is their i-th."""

    order: tuple[int, ...]
    axis: int

    def inward(self, theirs: Tensor) -> list[Tensor]:
        place = torch.tensor(self.order).argsort()
        return [theirs.index_select(self.axis, place)]

    def outward(self, ours: list[Tensor]) -> Tensor:
        return ours[0].index_select(self.axis, torch.tensor(self.order))


@dataclass(frozen=True)
class Row:
    """One tensor of theirs, the tensors of ours that it holds, and its form; ``None``: one tensor, as it is."""

    theirs: str
    ours: tuple[str, ...]
    form: Form | None = None


def row(theirs: str, *ours: str, form: Form | None = None) -> Row:
    """A row of a table."""
    return Row(theirs, ours, form)


def affine(theirs: str, *ours: str, form: Form | None = None, bias: bool = True) -> list[Row]:
    """The rows of a linear layer or a norm: its weight and, if it has one, its bias."""
    parts = ("weight", "bias") if bias else ("weight",)
    return [row(f"{theirs}.{part}", *(f"{name}.{part}" for name in ours), form=form) for part in parts]


def inward(rows: Iterable[Row], theirs: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    """Our tensors, in float32 (float64 stays), from theirs.

    Raises:
        RegardError: a tensor is missing, has not the form it should have, or holds a number that is not finite;
            ``where`` is the file.
    """
    found: dict[str, Tensor] = {}
    for each in rows:
        if each.theirs not in theirs:
            raise RegardError(f"lacks {each.theirs!r}, which its config.json says it has", where)
        held = theirs[each.theirs]
        if not held.is_floating_point():
            raise RegardError(f"{each.theirs!r} holds {held.dtype}, not numbers with fractions", where)
        try:
            numbers = held if held.dtype == torch.float64 else held.float()
            parts = each.form.inward(numbers) if each.form else [numbers]
        except (ValueError, RuntimeError, IndexError) as error:
            raise RegardError(f"{each.theirs!r} {error}", where) from None
        _refuse_infinite(each.theirs, parts, where)
        found.update(zip(each.ours, (part.contiguous() for part in parts), strict=True))
    return found


def outward(rows: Iterable[Row], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their tensors from ours.

    Raises:
        RegardError: what is one tensor there are different ones here, or one holds a number that is not finite.
    """
    found: dict[str, Tensor] = {}
    for each in rows:
        for name in each.ours:
            _refuse_infinite(name, [ours[name]], "model.safetensors")
        try:
            parts = [ours[name] for name in each.ours]
            found[each.theirs] = (each.form.outward(parts) if each.form else parts[0]).contiguous()
        except ValueError as error:
            raise RegardError(f"{each.theirs!r} {error}", "model.safetensors") from None
    return found


def _refuse_infinite(name: str, tensors: Iterable[Tensor], where: str) -> None:
    """Raise a RegardError if a tensor has values that are not finite in float32."""
    if not all(tensor.float().isfinite().all() for tensor in tensors):
        message = f"{name!r} holds numbers that are not finite, with which a model says nothing; take other weights"
        raise RegardError(message, where)


def refuse_surplus(rows: Iterable[Row], theirs: Iterable[str], spare: re.Pattern[str], where: str) -> None:
    """Refuse tensors that no row of the table tells what to do with: left out, they would change what is computed.

    Args:
        spare: names that may be left over.

    Raises:
        RegardError: names the first such tensor.
    """
    left = set(theirs) - {each.theirs for each in rows}
    if surplus := sorted(name for name in left if not spare.fullmatch(name)):
        raise RegardError(f"has {surplus[0]!r}, which a model of this kind has not", where)
