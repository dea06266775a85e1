"""Numbers for a page: plain values as JSON, and arrays behind them as they lie in memory, small ones for many heads.

A payload is the length of the JSON as four bytes (little-endian), the JSON, zeros up to a multiple of eight, then the
arrays, each from a multiple of eight on. The JSON's ``arrays`` name each array's type, shape and first byte, counted
from where the first array lies. So a page lays typed arrays over the bytes, and copies nothing.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

NO_NUMBERS = "what the model computes are no numbers; are its weights damaged?"
ALIGNED = 8
"""Bytes; what every array begins at a multiple of."""
TYPES = {np.dtype(kind): kind for kind in ("float32", "uint8", "uint16", "int32")}
"""What a page can lay over bytes."""

Answer = tuple[Mapping[str, Any], Mapping[str, NDArray[Any]]]
"""What :func:`packed` takes."""


def packed(values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """One payload.

    Args:
        values: what JSON can hold; ``arrays`` is taken.
        arrays: of a type in :data:`TYPES`.

    Raises:
        RegardError: a value is a number that is none.
    """
    places, body, place = {}, list[bytes](), 0
    for name, array in arrays.items():
        content = np.ascontiguousarray(array).tobytes()
        places[name] = {"type": TYPES[array.dtype], "shape": list(array.shape), "begin": place}
        body += [content, _filling(len(content))]
        place += len(content) + len(body[-1])
    try:
        head = json.dumps({**values, "arrays": places}, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        raise RegardError(NO_NUMBERS) from None
    return b"".join([struct.pack("<I", len(head)), head, _filling(4 + len(head)), *body])


def refuse_no_numbers(*arrays: NDArray[Any]) -> None:
    """Raise a RegardError where a number is none, or is not finite."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise RegardError(NO_NUMBERS)


def unpacked(payload: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The values and the arrays of a payload."""
    (length,) = struct.unpack_from("<I", payload)
    values = json.loads(payload[4 : 4 + length])
    first = 4 + length + len(_filling(4 + length))
    arrays = {}
    for name, each in values.pop("arrays").items():
        count = int(np.prod(each["shape"]))
        found = np.frombuffer(payload, each["type"], count, first + each["begin"])
        arrays[name] = found.reshape(each["shape"])
    return values, arrays


def _filling(length: int) -> bytes:
    return b"\0" * (-length % ALIGNED)


def bytes_of(weight: NDArray[Any]) -> NDArray[np.uint8]:
    """Weights from 0 to 1 as 0 to 255, for pictures: half a 255th is the error at most."""
    return np.rint(np.clip(weight, 0, 1) * 255).astype(np.uint8)


def small(weight_HQK: NDArray[Any], most: int) -> NDArray[Any]:
    """Pictures of heads with at most so many rows and columns.

    A cell holds what its queries give to its keys, on average: rows still sum to one, and a query that looks at one key
    alone is seen at any size.
    """
    rows, columns = (_edges(size, most) for size in weight_HQK.shape[1:])
    summed = np.add.reduceat(np.add.reduceat(weight_HQK, rows, axis=1), columns, axis=2)
    heights = np.diff([*rows, weight_HQK.shape[1]])
    found: NDArray[Any] = summed / heights[:, None]
    return found


def _edges(size: int, most: int) -> NDArray[np.int64]:
    """Where each of at most ``most`` parts of as equal size as can be begins."""
    parts = min(size, most)
    return np.arange(parts) * size // parts
