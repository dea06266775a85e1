"""Binary payloads for the page: JSON values followed by aligned raw arrays; downsampling of attention maps.

A payload is the length of the JSON as four bytes (little-endian), the JSON, zeros to a multiple of eight, then the
arrays, each at a multiple of eight. The JSON's ``arrays`` name each array's type, shape and first byte, counted
from the start of the first array. The page maps typed arrays onto these bytes without copying.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.system.errors import RegardError

NO_NUMBERS = "what it computes are no numbers; are its weights damaged?"
ALIGNED = 8
"""Alignment of every array, in bytes."""
TYPES = {np.dtype(kind): kind for kind in ("float32", "uint8", "uint16", "int32")}
"""Types for which the page has typed arrays."""

Answer = tuple[Mapping[str, Any], Mapping[str, NDArray[Any]]]
"""Values and arrays: the arguments of :func:`pack`."""


def pack(values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Encode values and arrays as one payload.

    Args:
        values: what JSON can hold; ``arrays`` is taken.
        arrays: of a type in :data:`TYPES`.

    Raises:
        RegardError: a value is NaN or infinite.
    """
    places, body, place = {}, list[bytes](), 0
    for name, array in arrays.items():
        content = np.ascontiguousarray(array).tobytes()
        places[name] = {"type": TYPES[array.dtype], "shape": list(array.shape), "begin": place}
        body += [content, _padding(len(content))]
        place += len(content) + len(body[-1])
    try:
        head = json.dumps({**values, "arrays": places}, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        raise RegardError(NO_NUMBERS, "model") from None
    return b"".join([struct.pack("<I", len(head)), head, _padding(4 + len(head)), *body])


def check_finite(*arrays: NDArray[Any]) -> None:
    """Raise a RegardError for a NaN or infinite number."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise RegardError(NO_NUMBERS, "model")


def _padding(length: int) -> bytes:
    return b"\0" * (-length % ALIGNED)


def bytes_of(weight: NDArray[Any]) -> NDArray[np.uint8]:
    """Weights from 0 to 1 quantised to 0 to 255, for pictures; the error is at most half a step."""
    return np.rint(np.clip(weight, 0, 1) * 255).astype(np.uint8)


def downsample(weight_HQK: NDArray[Any], most: int) -> NDArray[Any]:
    """Downsample attention maps to at most ``most`` rows and columns.

    A cell holds what its queries give to its keys, on average: rows still sum to one, and a query that looks at one key
    alone is seen at any size.
    """
    rows, columns = (_edges(size, most) for size in weight_HQK.shape[1:])
    summed = np.add.reduceat(np.add.reduceat(weight_HQK, rows, axis=1), columns, axis=2)
    heights = np.diff([*rows, weight_HQK.shape[1]])
    return np.asarray(summed / heights[:, None])


def _edges(size: int, most: int) -> NDArray[np.int64]:
    """Start indices of at most ``most`` parts of nearly equal size."""
    parts = min(size, most)
    return np.arange(parts) * size // parts
