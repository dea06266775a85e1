"""Payloads decoded as the page does."""

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray


def unpack(payload: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Decode the values and arrays of a payload."""
    (length,) = struct.unpack_from("<I", payload)
    values = json.loads(payload[4 : 4 + length])
    first = 4 + length + -(4 + length) % 8
    arrays = {}
    for name, each in values.pop("arrays").items():
        count = int(np.prod(each["shape"]))
        found = np.frombuffer(payload, each["type"], count, first + each["begin"])
        arrays[name] = found.reshape(each["shape"])
    return values, arrays


def check_same(one: tuple[dict[str, Any], Any], other: tuple[dict[str, Any], Any]) -> None:
    """All numbers of two answers, and all that is said but which part of a text it is of."""
    assert {**one[0], "window": None} == {**other[0], "window": None}
    assert one[1].keys() == other[1].keys()
    for name, array in one[1].items():
        np.testing.assert_array_equal(array, other[1][name])
