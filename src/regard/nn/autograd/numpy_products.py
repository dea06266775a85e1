"""Matrix products by NumPy on torch's memory: by OpenBLAS, which NumPy's wheels contain.

On some processors its kernels are faster than those that torch has. OpenBLAS has a number of threads of its own, for
the whole process; here it follows torch's, so that a core that trains one shard computes with one thread.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.nn.autograd.products import sum_over_tokens

_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads")
"""Of the functions that tell and set OpenBLAS's threads: as NumPy's wheels have it, and as systems do."""


@functools.cache
def _threads() -> tuple[Callable[[], int], Callable[[int], object]] | None:
    """The two functions; ``None`` where NumPy multiplies by another library."""
    core = sys.modules.get("numpy._core._multiarray_umath")
    try:
        library = ctypes.CDLL(str(core.__file__) if core else "")  # names are looked up in what it is linked with, too
    except OSError:
        return None
    for name in _NAMES:
        if hasattr(library, name.format("set")) and hasattr(library, name.format("get")):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


def has_openblas() -> bool:
    """Whether NumPy multiplies by OpenBLAS."""
    return _threads() is not None


def library() -> str:
    """What multiplies: other versions may give other bits."""
    return f"{np.__version__}{'' if has_openblas() else ' without OpenBLAS'}"


def numpy_matmul(left_NK: Tensor, right_KM: Tensor, out_NM: Tensor | None = None) -> Tensor:
    """``left @ right`` of fp32 matrices in the processor's memory, by as many threads as torch has; no gradient.

    Raises:
        ValueError: the shapes do not fit.
    """
    if out_NM is None:
        out_NM = left_NK.new_empty(len(left_NK), right_KM.shape[1])
    if threads := _threads():
        count, set_count = threads
        if count() != torch.get_num_threads():
            set_count(torch.get_num_threads())
    np.matmul(_dense(left_NK), _dense(right_KM), out=out_NM.numpy())
    return out_NM


def _dense(factor_NM: Tensor) -> np.ndarray:
    """A matrix as an array, copied if neither its rows nor its columns lie close together: NumPy is slow with such."""
    rows, columns = factor_NM.stride()
    is_dense = (columns == 1 and rows >= factor_NM.shape[1]) or (rows == 1 and columns >= factor_NM.shape[0])
    return (factor_NM if is_dense else factor_NM.contiguous()).detach().numpy()


class NumpyLinear(torch.autograd.Function):
    """x Wᵀ + b with the three products of forward and backward by NumPy."""

    @staticmethod
    def forward(ctx, x_TD, weight_FD, bias_F):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x_TD, weight_FD)
        y_TF = numpy_matmul(x_TD, weight_FD.t())
        return y_TF if bias_F is None else y_TF.add_(bias_F)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient_TF):  # type: ignore[no-untyped-def]
        x_TD, weight_FD = ctx.saved_tensors
        wants_x, wants_weight, wants_bias = ctx.needs_input_grad
        x_gradient_TD = numpy_matmul(gradient_TF, weight_FD) if wants_x else None
        weight_gradient_FD = numpy_matmul(gradient_TF.t(), x_TD) if wants_weight else None
        return x_gradient_TD, weight_gradient_FD, sum_over_tokens(gradient_TF, wants_bias)
