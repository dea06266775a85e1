"""Rows in bf16, against rounding by whole numbers in NumPy."""

import numpy as np
import pytest

from tests.kernels.arrays import apart, draw, halved, widened

pytestmark = pytest.mark.usefixtures("instruction_set")


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (3, 16), (4, 37), (2, 200)], ids=str)
def test_rows_are_rounded_to_the_nearest(shape: tuple[int, int]) -> None:
    from regard.kernels import _native

    x = apart(draw(*shape) * np.exp(8 * draw(*shape, seed=1)))
    room = np.full((shape[0], shape[1] + 3), 7, np.uint16)
    _native.halve(x, room[:, : shape[1]])
    assert (room[:, shape[1] :] == 7).all(), "it wrote beyond its columns"
    assert (np.abs(widened(room[:, : shape[1]]) - x) <= np.abs(x) * 2.0**-8).all()
    assert (room[:, : shape[1]] == halved(x)).all()


def test_ties_are_even_and_what_is_no_number_stays_none() -> None:
    from regard.kernels import _native

    x = np.uint32([[0x3F808000, 0x3F818000, 0x3F808001, 0xBF808000, 0x7F800000, 0x80000000]])
    out = np.empty(x.shape, np.uint16)
    _native.halve(x.view(np.float32), out)
    assert out.tolist() == [[0x3F80, 0x3F82, 0x3F81, 0xBF80, 0x7F80, 0x8000]]
    none = np.uint32([[0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFF8000]])
    _native.halve(none.view(np.float32), out)
    assert np.isnan(widened(out)).all()


def test_other_shapes_and_types_are_refused() -> None:
    from regard.kernels import _native

    with pytest.raises(ValueError, match="shapes"):
        _native.halve(draw(2, 3), np.empty((2, 4), np.uint16))
    key, query, none = halved(draw(4, 8)), draw(1, 8), np.zeros(1, np.int32)
    for one, other in ((key, draw(4, 8)), (key.astype(np.int32), key.astype(np.int32))):
        with pytest.raises(ValueError, match="keys and values"):
            _native.attention(query, one, other, np.empty_like(query), 1, 1.0, none, none, None, None, None)
