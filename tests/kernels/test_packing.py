import numpy as np

from regard.kernels.packing import LINE, PANEL, aligned, pack
from tests.kernels.arrays import draw


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


def test_rooms_begin_at_a_cache_line() -> None:
    for shape in ((1,), (3, 5), (2, 3, 4)):
        assert aligned(shape).ctypes.data % LINE == 0
        assert aligned(shape).shape == shape
