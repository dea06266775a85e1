"""Payloads round-trip, and thumbnails are means of the full maps."""

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from regard.inspection.payload import ALIGNED, TYPES, bytes_of, downsample, pack
from regard.system.errors import RegardError
from tests.inspection.payloads import unpack
from tests.refusals import refused

KINDS = sorted(TYPES.values())


def some(kind: str) -> st.SearchStrategy[Any]:
    """Arrays of a kind, numbers alone."""
    elements = {"allow_nan": False} if kind == "float32" else None
    return arrays(kind, array_shapes(min_side=0), elements=elements)


@given(
    st.dictionaries(st.text(), st.none() | st.integers(-(2**40), 2**40) | st.text(), max_size=4),
    st.dictionaries(st.text(max_size=5), st.sampled_from(KINDS).flatmap(some), max_size=3),
)
def test_what_is_packed_comes_back(values: dict[str, Any], given_arrays: dict[str, Any]) -> None:
    values.pop("arrays", None)
    payload = pack(values, given_arrays)
    found, found_arrays = unpack(payload)
    assert found == values
    assert found_arrays.keys() == given_arrays.keys()
    for name, array in given_arrays.items():
        assert found_arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found_arrays[name], array)
    assert len(payload) % ALIGNED == 0


def test_bytes_lie_as_the_page_says() -> None:
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    payload = pack({"a": "ä"}, {"few": np.array([1, 2, 3], np.uint8), "weight": weight})
    (length,) = struct.unpack("<I", payload[:4])
    first = -(-(4 + length) // 8) * 8
    assert payload[first : first + 3] == b"\1\2\3"
    assert payload[first + 8 : first + 8 + 24] == weight.tobytes()


def test_numbers_that_are_none_are_refused() -> None:
    with refused(RegardError, "model"):
        pack({"a": float("nan")}, {})


def test_bytes_of_weights() -> None:
    assert bytes_of(np.array([-0.1, 0.0, 0.5, 1.0, 1.2])).tolist() == [0, 0, 128, 255, 255]


@pytest.mark.parametrize(("queries", "keys", "most"), [(5, 7, 3), (4, 4, 8), (1, 9, 4), (64, 64, 16)])
def test_small_pictures(queries: int, keys: int, most: int) -> None:
    weight = np.random.default_rng(1).random((2, queries, keys))
    weight /= weight.sum(axis=2, keepdims=True)
    found = downsample(weight, most)
    rows, columns = min(queries, most), min(keys, most)
    assert found.shape == (2, rows, columns)
    for row in range(rows):
        for column in range(columns):
            these = weight[:, row * queries // rows : (row + 1) * queries // rows]
            cells = these[:, :, column * keys // columns : (column + 1) * keys // columns]
            np.testing.assert_allclose(found[:, row, column], cells.sum(axis=2).mean(axis=1))
    np.testing.assert_allclose(found.sum(axis=2), 1.0)
