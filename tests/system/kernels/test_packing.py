import numpy as np
import pytest

from regard.system.kernels.packing import LINE, PANEL, aligned_array, pack, pack_side_by_side
from tests.system.kernels.arrays import draw, native

pytestmark = pytest.mark.usefixtures("instruction_set")


def test_panels_hold_biases_then_columns_of_weights() -> None:
    for columns in (1, 31, 32, 33, 64, 70):
        weight, bias = draw(columns, 6), draw(columns, seed=1)
        packed = pack(weight, bias)
        assert packed.shape == (-(-columns // PANEL), 7, PANEL)
        expected = np.zeros(packed.shape, np.float32)
        for column in range(columns):
            panel, place = divmod(column, PANEL)
            expected[panel, 0, place] = bias[column]
            expected[panel, 1:, place] = weight[column]
        assert (packed == expected).all()
        assert (pack(weight)[:, 0] == 0).all()


def test_layers_of_one_input_stand_side_by_side() -> None:
    weights, biases = [draw(5, 7), draw(40, 7, seed=1), draw(3, 7, seed=2)], [None, draw(40, seed=3), draw(3, seed=4)]
    side_by_side = pack_side_by_side(weights, biases)
    together = np.concatenate([np.zeros(5, np.float32), *biases[1:]])
    assert (side_by_side == pack(np.concatenate(weights), together)).all()


def test_columns_that_are_not_there_are_refused() -> None:
    packed = pack(draw(40, 7))
    for weight, column in ((draw(25, 7), 40), (draw(1, 7), -1), (draw(1, 6), 0)):
        with pytest.raises(ValueError):
            native.pack(weight, None, packed, column)


def test_rooms_begin_at_a_cache_line() -> None:
    for shape in ((1,), (3, 5), (2, 3, 4)):
        assert aligned_array(shape).ctypes.data % LINE == 0
        assert aligned_array(shape).shape == shape
