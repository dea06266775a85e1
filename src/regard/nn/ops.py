"""Matrix products: the one module that chooses how a product is computed (later: native kernels).

A product computes ``y = x Wᵀ + b``. Paths:

* ``exact``: torch's own, any precision, any device.
* ``onednn``: the same fp32 arithmetic through oneDNN, twice as fast on processors where torch's default library uses
  half of their width. Its switch is named "bf16" and does round to bf16 on some processors, and set globally it slows
  attention's small products; so it is set only inside a product, and only after :func:`is_accurate` measured its error.
* ``bf16``: factors rounded to bf16, sums in fp32 within a product; the weights themselves stay fp32 (mixed precision).

``use(model, path)`` sets the path from outside; the model's own code does not mention it.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.autograd.products import Bf16Linear, OnednnLinear, onednn
from regard.nn.init import draw

Path = Literal["exact", "onednn", "bf16"]
Precision = Literal["auto", "fp32", "mixed"]
_LINEAR: dict[Path, type[torch.autograd.Function]] = {"onednn": OnednnLinear, "bf16": Bf16Linear}


def product(x_TD: Tensor, weight_FD: Tensor, bias_F: Tensor | None, path: Path) -> Tensor:
    """``x Wᵀ + b``, or without ``b``, by the given path; those but ``exact`` leave float64 to it."""
    if x_TD.dtype == torch.float64 or path == "exact":
        return F.linear(x_TD, weight_FD, bias_F)
    return _LINEAR[path].apply(x_TD, weight_FD, bias_F)


def matmul(left: Tensor, right: Tensor, path: Path, out: Tensor | None = None) -> Tensor:
    """``left @ right`` of 2-d tensors by the given path, no gradient; the caller casts them to bf16 for ``bf16``."""
    if path != "onednn":
        return torch.mm(left, right, out=out)
    with onednn():
        return torch.mm(left, right, out=out)


class Linear(nn.Linear):
    """``x Wᵀ + b``: a learned linear projection whose product path is chosen from outside."""

    product: Path = "exact"

    def __init__(self, d_in: int, d_out: int, bias: bool = True, gain: float = 1.0) -> None:
        super().__init__(d_in, d_out, bias)
        self.gain = gain
        draw(self)

    def reset_parameters(self) -> None:
        """Nothing: torch's own initial weights are not used."""

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Xavier-uniform weights, times ``gain``; zero biases."""
        nn.init.xavier_uniform_(self.weight, generator=generator)
        if self.gain != 1.0:
            with torch.no_grad():
                self.weight *= self.gain
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x_TD: Tensor) -> Tensor:
        """``x Wᵀ + b`` for every token."""
        return product(x_TD, self.weight, self.bias, self.product)


def project(x_TD: Tensor, linears: Sequence[Linear]) -> tuple[Tensor, ...]:
    """Several projections of the same tokens, all or none with biases, in one wide product: equal and faster."""
    weight_FD = torch.cat([linear.weight for linear in linears])
    biases: list[Tensor] = [linear.bias for linear in linears if linear.bias is not None]
    bias_F = torch.cat(biases) if biases else None
    y_TF = product(x_TD, weight_FD, bias_F, linears[0].product)
    return y_TF.split([linear.out_features for linear in linears], dim=-1)


def use(model: nn.Module, path: Path) -> None:
    """Make every part of ``model`` that multiplies take this path."""
    for module in model.modules():
        if hasattr(module, "product"):
            module.product = path  # type: ignore[assignment]  # a plain string attribute


def is_accurate(size: int = 256, tolerance: float = 4.0) -> bool:
    """Whether the ``onednn`` path's error against float64 is at most ``tolerance`` times that of torch's default."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(size, size, generator=generator)
    weight = torch.randn(size, size, generator=generator)
    true = x.double() @ weight.double().t()
    default = (F.linear(x, weight).double() - true).abs().max()
    with onednn():
        ours = (F.linear(x, weight).double() - true).abs().max()
    return bool(ours <= tolerance * default)


@contextmanager
def using(model: nn.Module, path: Path) -> Iterator[None]:
    """For a while another path, e.g. full precision while validating a model that trains in mixed."""
    before = {module: module.product for module in model.modules() if hasattr(module, "product")}
    use(model, path)
    try:
        yield
    finally:
        for module, product in before.items():
            module.product = product


def native_bf16(device: torch.device | str = "cpu") -> bool:
    """Whether the processor multiplies bf16 itself; elsewhere it is imitated, and slow."""
    if torch.device(device).type != "cpu":
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    known = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name, lambda: False)() for name in known)


def has_narrow_vectors(cpuinfo: str = "/proc/cpuinfo") -> bool:
    """Whether torch's default library uses half of the processor's width: it does on AMD's."""
    try:
        lines = pathlib.Path(cpuinfo).read_text(errors="replace").splitlines()
    except OSError:
        return False
    vendors = {line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")}
    return vendors == {"AuthenticAMD"}


def full_paths(device: str = "cpu") -> tuple[Path, ...]:
    """The paths of full precision that this machine has, the simplest first."""
    if torch.device(device).type != "cpu":
        return ("exact",)
    return ("exact", "onednn") if is_accurate() else ("exact",)


def paths(precision: Precision, device: str = "cpu") -> tuple[Path, ...]:
    """The paths that a precision can take on this machine, the simplest first: to be timed (``training/measure.py``).

    On a GPU nothing is timed: there is what :func:`choose` chooses.
    """
    if torch.device(device).type != "cpu":
        return (choose(precision, device),)
    mixed: tuple[Path, ...] = ("bf16",) if precision == "mixed" or native_bf16(device) else ()
    return {"fp32": full_paths(device), "mixed": mixed, "auto": (*full_paths(device), *mixed)}[precision]


@functools.cache
def full(device: str = "cpu") -> Path:
    """The path of full precision: ``onednn`` where torch's default is slow and oneDNN is faithful, else ``exact``.

    For models whose folder says nothing of this processor, and where nothing can be timed.
    """
    return "onednn" if torch.device(device).type == "cpu" and has_narrow_vectors() and is_accurate() else "exact"


def choose(precision: Precision, device: str = "cpu") -> Path:
    """The path of a precision by what the hardware is, where nothing is timed; ``auto``: mixed where bf16 is native."""
    return "bf16" if precision == "mixed" or (precision == "auto" and native_bf16(device)) else full(device)
