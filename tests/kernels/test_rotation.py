import numpy as np
import pytest

from tests.kernels.arrays import apart, draw

pytestmark = pytest.mark.usefixtures("instruction_set")


@pytest.mark.parametrize(("heads", "size"), [(1, 2), (3, 6), (2, 64), (1, 40)])
def test_pairs_are_turned_by_the_angle_of_their_place(heads: int, size: int) -> None:
    from regard.kernels import _native

    angle = draw(9, size // 2)
    x, place = apart(draw(4, heads * size, seed=1)), np.array([0, 8, 3, 3], np.int32)
    pairs = x.astype(np.float64).reshape(4, heads, 2, size // 2)
    turned = (pairs[:, :, 0] + 1j * pairs[:, :, 1]) * np.exp(1j * angle.astype(np.float64))[place][:, None]
    expected = np.stack([turned.real, turned.imag], axis=2).reshape(4, -1)
    _native.rotation(x, heads, np.cos(angle), np.sin(angle), place)
    np.testing.assert_allclose(x, expected, atol=1e-5)


def test_a_place_without_angles_is_refused() -> None:
    from regard.kernels import _native

    angle = draw(9, 2)
    for heads, size, place in ((1, 4, 9), (1, 4, -1), (2, 4, 0), (1, 6, 0)):
        with pytest.raises(ValueError):
            _native.rotation(draw(1, size), heads, angle, angle, np.array([place], np.int32))
