"""Answers of the page: payloads decoded as it does, and what tests ask for them."""

import json
import re
import struct
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Answer = tuple[dict[str, Any], dict[str, NDArray[Any]]]
Ask = Callable[..., Answer]
Number = Callable[[str], int]
TaskOf = Callable[[str], Any]
KEPT = re.compile(r'<script type="application/octet-stream" id="payload">([A-Za-z0-9+/=]*)</script>')
"""What a page that works alone holds."""


def unpack(payload: bytes) -> Answer:
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


def held(page: str) -> Answer:
    """The values and arrays in a page that works alone."""
    (numbers,) = KEPT.findall(page)
    return unpack(b64decode(numbers))


def check_same(one: Answer, other: Answer) -> None:
    """All numbers of two answers, and all that is said but which part of a text it is of."""
    assert {**one[0], "window": None} == {**other[0], "window": None}
    assert one[1].keys() == other[1].keys()
    for name, array in one[1].items():
        np.testing.assert_array_equal(array, other[1][name])
