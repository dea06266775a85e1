"""Matrices in the order in which kernels read them: panels of columns, each one stream (``native/README.md``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
PANEL = 32
"""Columns of a panel."""
LINE = 64
"""Bytes of a cache line, at which panels begin."""


def pack(weight_NK: Floats, bias_N: Floats | None = None) -> Floats:
    """The matrix of ``x_TK W_KN + b_N``, one linear layer's."""
    return pack_side_by_side([weight_NK], [bias_N])


def pack_side_by_side(weights: Sequence[Floats], biases: Sequence[Floats | None]) -> Floats:
    """The matrices of linear layers of one input as one.

    Args:
        weights: a row for each output, as linear layers store them.
        biases: ``None`` is zero.

    Returns:
        Panels of ``1 + K`` rows of 32 columns each: the biases, then the weights. Columns beyond the last are zero.
    """
    from regard.kernels import _native

    columns = sum(len(weight) for weight in weights)
    panels, inner = -(-columns // PANEL), weights[0].shape[1]
    packed_PKW = aligned_array((panels, 1 + inner, PANEL))
    if columns % PANEL:
        packed_PKW[-1] = 0
    begin = 0
    for weight_NK, bias_N in zip(weights, biases, strict=True):
        _native.pack(weight_NK, bias_N, packed_PKW, begin)
        begin += len(weight_NK)
    return packed_PKW


def aligned_array(shape: tuple[int, ...]) -> Floats:
    """Room for numbers that begins at a cache line; what is in it is not defined."""
    size = int(np.prod(shape))
    room = np.empty(size + LINE // 4, np.float32)
    begin = -room.ctypes.data % LINE // 4
    return room[begin : begin + size].reshape(shape)
