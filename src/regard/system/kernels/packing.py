"""Matrices in the order in which kernels read them: panels of columns, each one stream (``native/README.md``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Panels = NDArray[Any]
"""A packed matrix; the type of its numbers says which precision it has."""
Precision = Literal["fp32", "bf16", "int8"]
"""How weights are stored; sums and results are fp32. With int8 a column of W has a scale, and so has a row of x."""
PANEL = 32
"""Columns of a panel."""
LINE = 64
"""Bytes of a cache line, at which panels begin."""
LAYOUT = "3"
"""Of panels, raised whenever ``native/kernels/packing.cpp`` packs otherwise: files of packed matrices name it."""


class Packer:
    """Packs the matrices of a model, one after another.

    Args:
        precision: of the weights.
    """

    def __init__(self, precision: Precision = "fp32") -> None:
        self.precision = precision

    def __call__(
        self, weights: Sequence[Floats], biases: Sequence[Floats | None], precision: Precision | None = None
    ) -> Panels:
        """The matrices of linear layers of one input as one; see :func:`pack_side_by_side`.

        Args:
            weights, biases: of the layers.
            precision: another one than the model's.
        """
        return pack_side_by_side(weights, biases, precision or self.precision)


class SharingPacker(Packer):
    """Gives a matrix that was packed before of the very same arrays, as of a model and of its adapters.

    Args:
        precision: of the weights.
        known: what was packed, with the arrays, which stay as they are and in memory.
    """

    def __init__(self, precision: Precision, known: dict[object, tuple[Panels, object]]) -> None:
        super().__init__(precision)
        self._known = known

    def __call__(
        self, weights: Sequence[Floats], biases: Sequence[Floats | None], precision: Precision | None = None
    ) -> Panels:
        """The matrices of linear layers of one input as one."""
        arrays = (*weights, *biases)
        places = [None if one is None else (one.ctypes.data, one.shape, one.strides) for one in arrays]
        key = (precision or self.precision, *places)
        if key not in self._known:
            self._known[key] = super().__call__(weights, biases, precision), arrays
        return self._known[key][0]


FP32 = Packer()
"""Of matrices that are fp32 in every engine."""


def pack(weight_NK: Floats, bias_N: Floats | None = None, precision: Precision = "fp32") -> Panels:
    """The matrix of ``x_TK W_KN + b_N``, one linear layer's."""
    return pack_side_by_side([weight_NK], [bias_N], precision)


def pack_side_by_side(
    weights: Sequence[Floats], biases: Sequence[Floats | None], precision: Precision = "fp32"
) -> Panels:
    """The matrices of linear layers of one input as one.

    Args:
        weights: a row for each output, as linear layers store them.
        biases: ``None`` is zero.
        precision: of the weights.

    Returns:
        Panels of 32 columns each: what belongs to the columns, such as the biases, then the weights. Columns beyond the
        last are zero.
    """
    from regard.system.kernels import _native

    packed = aligned_array(*form(weights, precision))
    if sum(len(weight) for weight in weights) % PANEL:
        packed[-1] = 0
    begin = 0
    for weight_NK, bias_N in zip(weights, biases, strict=True):
        _native.pack(weight_NK, bias_N, packed, begin)
        begin += len(weight_NK)
    return packed


def form(weights: Sequence[Floats], precision: Precision) -> tuple[tuple[int, int, int], type[np.generic]]:
    """Shape and type of what :func:`pack_side_by_side` makes of weights."""
    panels, inner = -(-sum(len(weight) for weight in weights) // PANEL), weights[0].shape[1]
    if precision == "fp32":
        return (panels, 1 + inner, PANEL), np.float32
    if precision == "bf16":
        return (panels, 2 + inner, PANEL), np.uint16
    return (panels, 4 + 2 * -(-inner // 8), 4 * PANEL), np.int8


def aligned_array(shape: tuple[int, ...], dtype: type[np.generic] = np.float32) -> NDArray[Any]:
    """Room for numbers that begins at a cache line; what is in it is not defined."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.empty(size + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    return room[begin : begin + size].view(dtype).reshape(shape)
