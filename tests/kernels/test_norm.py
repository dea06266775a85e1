import numpy as np
import pytest

from regard.kernels import NORMS
from tests.kernels.arrays import apart, draw

pytestmark = pytest.mark.usefixtures("instruction_set")


def normalised(s, kind, groups, gain, bias, epsilon):
    """The equations, in float64."""
    s = s.astype(np.float64)
    if kind != "affine":
        parts = s.reshape(len(s), groups, -1)
        if kind == "layer":
            parts = parts - parts.mean(-1, keepdims=True)
        s = (parts / np.sqrt((parts**2).mean(-1, keepdims=True) + epsilon)).reshape(s.shape)
    return s * gain + (0 if bias is None else bias)


@pytest.mark.parametrize("columns", [1, 3, 16, 24, 100])
@pytest.mark.parametrize(("kind", "groups"), [("layer", 1), ("layer", 0), ("rms", 1), ("affine", 1)])
@pytest.mark.parametrize("biased", [False, True])
def test_norm_of_the_sum_is_its_equation(columns: int, kind: str, groups: int, biased: bool) -> None:
    from regard.kernels import _native

    groups = groups or (4 if columns % 4 == 0 else columns)
    x, y, gain = apart(draw(5, columns)), draw(5, columns, seed=1), draw(columns, seed=2)
    bias = draw(columns, seed=3) if biased else None
    total, out = np.empty_like(y), np.empty_like(y)
    expected = normalised(x + y, kind, groups, gain, bias, 1e-3)
    _native.norm(x, y, total, out, gain, bias, NORMS[kind], groups, 1e-3)
    np.testing.assert_allclose(total, x + y)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    alone = np.empty_like(y)
    _native.norm(total, None, None, alone, gain, bias, NORMS[kind], groups, 1e-3)
    assert (alone == out).all()


def test_it_can_be_computed_in_place() -> None:
    from regard.kernels import _native

    x, y, gain = draw(3, 20), draw(3, 20, seed=1), draw(20, seed=2)
    expected = normalised(x + y, "layer", 1, gain, None, 1e-5)
    stream = x.copy()
    _native.norm(stream, y, None, stream, gain, None, NORMS["layer"], 1, 1e-5)
    np.testing.assert_allclose(stream, expected, atol=1e-5)
    stream, out = x.copy(), np.empty_like(x)
    _native.norm(stream, y, stream, out, gain, None, NORMS["layer"], 1, 1e-5)
    np.testing.assert_allclose(stream, x + y)
    np.testing.assert_allclose(out, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_rows_of_zeros_far_numbers_and_what_is_none(kind: str) -> None:
    from regard.kernels import _native

    x, gain = np.zeros((4, 18), np.float32), np.ones(18, np.float32)
    x[1], x[2, 0], x[3] = 1e4, np.nan, 1e15 * draw(18)
    out = np.empty_like(x)
    _native.norm(x, None, None, out, gain, None, NORMS[kind], 1, 1e-5)
    assert (out[0] == 0).all()
    np.testing.assert_allclose(out[1], 0 if kind == "layer" else 1, atol=1e-6)
    assert np.isnan(out[2]).all()
    np.testing.assert_allclose(out[3], normalised(x[3:], kind, 1, gain, None, 1e-5)[0], atol=1e-5)


def test_shapes_that_do_not_fit_are_refused() -> None:
    from regard.kernels import _native

    x, gain = draw(3, 8), draw(8)
    for out, y, groups in (
        (draw(3, 9), None, 1),
        (draw(2, 8), None, 1),
        (draw(3, 8), draw(3, 7), 1),
        (draw(3, 8), x, 3),
    ):
        with pytest.raises(ValueError):
            _native.norm(x, y, None, out, gain, None, 0, groups, 1e-5)
    for kind in (-1, 3):
        with pytest.raises(ValueError):
            _native.norm(x, None, None, draw(3, 8), gain, None, kind, 1, 1e-5)
