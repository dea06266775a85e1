"""Matrices in the order in which kernels read them: panels of columns, each one stream (``native/README.md``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
PANEL = 32
"""Columns of a panel."""
LINE = 64
"""Bytes of a cache line, at which panels begin."""


def pack(weight_NK: Floats, bias_N: Floats | None = None) -> Floats:
    """The matrix of ``x_TK W_KN + b_N`` for :func:`regard.kernels._native.product`.

    Args:
        weight_NK: a row for each output, as linear layers store it.
        bias_N: default zero.

    Returns:
        Panels of ``1 + K`` rows of 32 columns each: the biases, then the weights. Columns beyond N are zero.
    """
    columns, inner = weight_NK.shape
    panels = -(-columns // PANEL)
    packed = aligned((panels, 1 + inner, PANEL))
    whole = columns // PANEL
    packed[:whole, 1:] = weight_NK[: whole * PANEL].reshape(whole, PANEL, inner).transpose(0, 2, 1)
    packed[:, 0] = 0
    if whole < panels:
        packed[whole] = 0
        packed[whole, 1:, : columns - whole * PANEL] = weight_NK[whole * PANEL :].T
    if bias_N is not None:
        packed[:, 0].flat[:columns] = bias_N
    return packed


def aligned(shape: tuple[int, ...]) -> Floats:
    """Room for numbers that begins at a cache line; what is in it is not defined."""
    size = int(np.prod(shape))
    room = np.empty(size + LINE // 4, np.float32)
    begin = -room.ctypes.data % LINE // 4
    return room[begin : begin + size].reshape(shape)
