import math

import numpy as np
import pytest

from regard.kernels import ACTIVATIONS
from regard.kernels.packing import pack
from tests.kernels.arrays import SHAPES, apart, draw

pytestmark = pytest.mark.usefixtures("instruction_set")

FUNCTIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "swish": lambda x: x / (1 + np.exp(-x)),
}


def multiplied(x, weight, bias, activation="none"):
    from regard.kernels import _native

    room = np.full((len(x), len(weight) + 3), 7.0, np.float32)
    _native.product(x, pack(weight, bias), room[:, : len(weight)], ACTIVATIONS[activation])
    assert (room[:, len(weight) :] == 7).all(), "it wrote beyond its columns"
    return room[:, : len(weight)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_product_is_that_of_numpy(shape: tuple[int, int, int], biased: bool) -> None:
    rows, inner, columns = shape
    x, weight = apart(draw(rows, inner)), draw(columns, inner, seed=1)
    bias = draw(columns, seed=2) if biased else None
    expected = x.astype(np.float64) @ weight.T.astype(np.float64) + (0 if bias is None else bias)
    np.testing.assert_allclose(multiplied(x, weight, bias), expected, atol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("rows", [1, 9])
def test_activations_are_their_equations(activation: str, rows: int) -> None:
    x = np.linspace(-9, 9, rows * 37, dtype=np.float32).reshape(rows, 37)
    expected = FUNCTIONS[activation](x.astype(np.float64))
    np.testing.assert_allclose(multiplied(x, np.eye(37, dtype=np.float32), None, activation), expected, atol=2e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_of_the_largest_numbers_are_finite_and_not_a_number_stays(activation: str) -> None:
    x = np.array([[3e38, -3e38, 1e4, -1e4, 0, np.nan, -0.0]], np.float32)
    found = applied(x, activation)
    assert np.isnan(found[0, 5])
    assert np.isfinite(np.delete(found[0], 5)).all()
    assert found[0, 2] == pytest.approx(1e4)
    assert found[0, 4] == 0


def applied(x, activation):
    """An activation of each entry on its own: ones beside it, of which the gate is made."""
    from regard.kernels import _native

    out = np.empty_like(x)
    _native.gate(np.concatenate([x, np.ones_like(x)], axis=1), out, ACTIVATIONS[activation])
    return out


def test_gate_is_the_activated_half_times_the_other() -> None:
    from regard.kernels import _native

    x, out = draw(5, 2 * 21), np.empty((5, 21), np.float32)
    _native.gate(x, out, ACTIVATIONS["swish"])
    np.testing.assert_allclose(out, FUNCTIONS["swish"](x[:, :21].astype(np.float64)) * x[:, 21:], atol=1e-5)


@pytest.mark.parametrize("inner", [48, 800, 1000])  # one part of K or two, of 144 rows or 108
def test_a_row_has_the_same_bits_alone_and_among_others(inner: int) -> None:
    x, weight, bias = draw(200, inner), draw(70, inner, seed=1), draw(70, seed=2)
    together = multiplied(x, weight, bias)
    for rows in (1, 2, 3, 4, 5, 11, 73, 109, 145):
        assert (multiplied(x[:rows], weight, bias) == together[:rows]).all(), rows


def test_without_rows_nothing_happens() -> None:
    assert multiplied(draw(0, 5), draw(4, 5), None).shape == (0, 4)


def test_a_number_that_is_none_stays_in_its_row() -> None:
    x, weight = draw(7, 9), draw(33, 9, seed=1)
    x[3, 2] = np.nan
    found = multiplied(x, weight, None)
    assert np.isnan(found[3]).all()
    assert np.isfinite(np.delete(found, 3, axis=0)).all()


def test_shapes_that_do_not_fit_are_refused() -> None:
    from regard.kernels import _native

    packed, out = pack(draw(40, 8)), np.empty((3, 40), np.float32)
    for x, into in ((draw(3, 9), out), (draw(2, 8), out), (draw(3, 8), np.empty((3, 65), np.float32))):
        with pytest.raises(ValueError):
            _native.product(x, packed, into, 0)
    with pytest.raises(ValueError):
        _native.product(draw(3, 8), packed, out, 5)
    with pytest.raises(ValueError):
        _native.product(draw(8, 3).T, packed, out, 0)
    with pytest.raises(TypeError):
        _native.product(draw(3, 8).astype(np.float64), packed, out, 0)
    with pytest.raises(ValueError):
        _native.product(draw(3, 8), packed[:, :, ::-1], out, 0)
    frozen = out.copy()
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        _native.product(draw(3, 8), packed, frozen, 0)
