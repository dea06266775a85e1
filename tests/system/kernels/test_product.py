"""Products of each precision, against plain NumPy in float64 and against what rounding can lose; activations."""

import math
from typing import get_args

import numpy as np
import pytest

from regard.system import kernels
from regard.system.kernels import ACTIVATIONS
from regard.system.kernels.packing import Precision, pack
from tests.system.kernels.arrays import SHAPES, apart, best, draw, native

pytestmark = pytest.mark.usefixtures("instruction_set")
every_precision = pytest.mark.parametrize("precision", get_args(Precision))
rounded = pytest.mark.parametrize("precision", ["bf16", "int8"])
FUNCTIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "swish": lambda x: x / (1 + np.exp(-x)),
}


def multiplied(x, weight, bias=None, precision: Precision = "fp32", activation: str = "none"):
    room = np.full((len(x), len(weight) + 3), 7.0, np.float32)
    native.product(x, pack(weight, bias, precision), room[:, : len(weight)], ACTIVATIONS[activation])
    assert (room[:, len(weight) :] == 7).all(), "it wrote beyond its columns"
    return room[:, : len(weight)]


def row_bytes(x):
    """Lowest entry, step and bytes of each row: 127 steps from the lowest to the highest."""
    low, high = x.min(1, keepdims=True), x.max(1, keepdims=True)
    step = (high - low) / 127
    return low, step, np.floor((x - low) / np.where(step == 0, 1, step) + 0.5)


def column_bytes(weight):
    """Step and bytes of each column: the largest at 127, and the four that one 16-bit number adds up at 256 at most."""
    fours = np.pad(np.abs(weight), ((0, 0), (0, -weight.shape[1] % 8))).reshape(len(weight), -1, 2, 2, 2).sum((2, 4))
    step = np.maximum(np.abs(weight).max(1) / 127, fours.max((1, 2)) / 256)[:, None]
    return step, np.round(weight / np.where(step == 0, 1, step))


@pytest.mark.one_of(5)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_product_is_that_of_numpy(shape: tuple[int, int, int], biased: bool) -> None:
    rows, inner, columns = shape
    x, weight = apart(draw(rows, inner)), draw(columns, inner, seed=1)
    bias = draw(columns, seed=2) if biased else None
    expected = x.astype(np.float64) @ weight.T.astype(np.float64) + (0 if bias is None else bias)
    np.testing.assert_allclose(multiplied(x, weight, bias), expected, atol=1e-5)


@pytest.mark.one_of(5)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@rounded
def test_a_product_loses_what_rounding_its_factors_loses(shape: tuple[int, int, int], precision: Precision) -> None:
    rows, inner, columns = shape
    x, weight, bias = apart(draw(rows, inner)), draw(columns, inner, seed=1), draw(columns, seed=2)
    wide_x, wide_w = x.astype(np.float64), weight.astype(np.float64)
    most = 2.0**-8 * np.abs(wide_x) @ np.abs(wide_w).T  # bf16 keeps 8 bits, the first of them not stored
    if precision == "int8":
        low, step, q = row_bytes(wide_x)
        weight_step, _ = column_bytes(wide_w)
        most = step / 2 * np.abs(wide_w).sum(1) + np.abs(low + step * q).sum(1, keepdims=True) * weight_step.T / 2
    lost = np.abs(multiplied(x, weight, bias, precision) - (wide_x @ wide_w.T + bias))
    assert (lost <= most + 1e-5).all()


def test_whole_numbers_multiply_exactly_and_never_saturate() -> None:
    """A row from 0 to 127 and a column to 127 whose fours come to 256 are their own bytes; sums are the largest."""
    random = np.random.default_rng(3)
    for rows, inner, columns in ((1, 1000, 40), (5, 403, 33), (14, 64, 70)):
        x = random.choice([0, 1, 63, 126, 127], (rows, inner)).astype(np.float32)
        weight = random.choice([-64, -63, 1, 63, 64], (columns, inner)).astype(np.float32)
        x[: rows // 2 + 1], weight[::2], weight[1::4] = 127, 64, -64
        x[:, 0], x[:, 1], weight[:, 2:10] = 0, 127, [127, 1, 64, -64, -127, -1, -64, 64]
        assert (multiplied(x, weight, None, "int8") == x.astype(np.int64) @ weight.astype(np.int64).T).all()


def test_a_four_that_rounds_up_does_not_saturate() -> None:
    """127 times 258, and a little more elsewhere."""
    weight = np.float32([[63.5, 64.5, 1, 1, 63.5, 64.5, 1, 1]])
    assert multiplied(np.float32([[127] * 7 + [0]]), weight, None, "int8").tolist() == [[127 * (258 + 3)]]


def test_bytes_are_the_steps_of_their_row_and_column() -> None:
    x, weight, bias = draw(9, 50), draw(37, 50, seed=1), draw(37, seed=2)
    low, step, q = row_bytes(x.astype(np.float64))
    weight_step, v = column_bytes(weight.astype(np.float64))
    expected = (step * (q @ v.T) + low * v.sum(1)) * weight_step.T + bias
    np.testing.assert_allclose(multiplied(x, weight, bias, "int8"), expected, atol=1e-4)


def test_halved_weights_are_rounded_to_the_nearest_with_ties_to_even() -> None:
    bits = np.uint32([0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0xBF808000, 0x7F7FFFFF, 0x80000000, 0x7F800000])
    upper = [0x3F80, 0x3F82, 0x3F81, 0x3F80, 0xBF80, 0x7F80, 0x8000, 0x7F80]
    assert pack(bits.view(np.float32)[:, None], None, "bf16")[0, 2, :8].tolist() == upper
    assert np.isnan(multiplied(np.ones((1, 1), np.float32), np.float32([[np.nan]]), None, "bf16")).all()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("rows", [1, 9])
def test_activations_are_their_equations(activation: str, rows: int) -> None:
    x = np.linspace(-9, 9, rows * 37, dtype=np.float32).reshape(rows, 37)
    expected = FUNCTIONS[activation](x.astype(np.float64))
    np.testing.assert_allclose(
        multiplied(x, np.eye(37, dtype=np.float32), None, "fp32", activation), expected, atol=2e-6
    )
    x, weight, bias = draw(rows, 19), draw(45, 19, seed=1), draw(45, seed=2)
    for precision in ("bf16", "int8"):
        plain = multiplied(x, weight, bias, precision).astype(np.float64)
        found = multiplied(x, weight, bias, precision, activation)
        np.testing.assert_allclose(found, FUNCTIONS[activation](plain), atol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_of_the_largest_numbers_are_finite_and_not_a_number_stays(activation: str) -> None:
    """Of each entry on its own: ones beside it, of which the gate is made."""
    x = np.array([[3e38, -3e38, 1e4, -1e4, 0, np.nan, -0.0]], np.float32)
    found = np.empty_like(x)
    native.gate(np.concatenate([x, np.ones_like(x)], axis=1), found, ACTIVATIONS[activation])
    assert np.isnan(found[0, 5])
    assert np.isfinite(np.delete(found[0], 5)).all()
    assert found[0, 2] == pytest.approx(1e4)
    assert found[0, 4] == 0


def test_gate_is_the_activated_half_times_the_other() -> None:
    x, out = draw(5, 2 * 21), np.empty((5, 21), np.float32)
    native.gate(x, out, ACTIVATIONS["swish"])
    np.testing.assert_allclose(out, FUNCTIONS["swish"](x[:, :21].astype(np.float64)) * x[:, 21:], atol=1e-5)


@pytest.mark.one_of(5)
@every_precision
@pytest.mark.parametrize("inner", [48, 800, 1000])  # one part of K or two, of 144 rows or 108
def test_a_row_has_the_same_bits_alone_and_among_others(precision: Precision, inner: int) -> None:
    x, weight, bias = draw(200, inner), draw(70, inner, seed=1), draw(70, seed=2)
    x *= np.exp(draw(200, 1, seed=3))  # rows of other sizes beside it
    together = multiplied(x, weight, bias, precision)
    for rows in (1, 2, 3, 4, 5, 11, 16, 17, 33, 64, 73, 109, 145):
        assert (multiplied(x[:rows], weight, bias, precision) == together[:rows]).all(), rows


@pytest.mark.parametrize("inner", [19, 256, 330])
def test_every_set_multiplies_bytes_as_the_others_do(inner: int) -> None:
    """Sums are whole numbers; entries made of them have the same bits by words alike, else they are near."""
    here = native.in_use()
    alike = {"amx": "avx512vnni", "avx512vnni": "avx512", "avxvnni": "avx2"}.get(here)
    for rows in (4, 5, 8, 17, 40, 150):
        x, weight, bias = draw(rows, inner), draw(97, inner, seed=1), draw(97, seed=2)
        found = multiplied(x, weight, bias, "int8")
        try:
            kernels.use(alike or "portable")
            other = multiplied(x, weight, bias, "int8")
        finally:
            kernels.use(here)
        np.testing.assert_allclose(found, other, rtol=0, atol=0 if alike else 1e-4)


@every_precision
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_in_its_row_and_column(precision: Precision, wrong: float) -> None:
    x, weight = draw(7, 9), draw(33, 9, seed=1)
    x[3, 2] = weight[20, 4] = wrong
    found = multiplied(x, weight, None, precision)
    assert not np.isfinite(found[3]).any()
    assert not np.isfinite(found[:, 20]).any()
    assert np.isfinite(np.delete(np.delete(found, 3, axis=0), 20, axis=1)).all()


def test_rows_and_columns_of_one_value_and_of_tiny_ones() -> None:
    x = np.float32([[3, 3, 3], [0, 0, 0], [1e-38, -1e-38, 0], [-2, -2, -2], [1, 0, 0]])
    weight = np.float32([[1, 1, 1], [0, 0, 0], [1e-38, 0, 1e-38], [127, 127, 127]])
    found = multiplied(x, weight, None, "int8")
    np.testing.assert_allclose(found, x.astype(np.float64) @ weight.T.astype(np.float64), atol=1e-30, rtol=1e-6)


@every_precision
def test_products_of_nothing_are_the_bias(precision: Precision) -> None:
    bias = draw(40, seed=2)
    for rows in (3, 20):
        assert (multiplied(draw(rows, 0), draw(40, 0), bias, precision) == bias).all()
    assert multiplied(draw(0, 5), draw(4, 5), None, precision).shape == (0, 4)


@rounded
@pytest.mark.parametrize("rows", [1, 3, 90])
def test_the_best_of_a_vocabulary_are_those_of_its_product(precision: Precision, rows: int) -> None:
    hidden, weight, k = apart(draw(rows, 26)), draw(1200, 26, seed=1), 5
    ids, score, log_sum = best(hidden, weight, k, precision=precision)
    every = multiplied(hidden, weight, None, precision)
    order = np.argsort(-every, axis=1, kind="stable")[:, :k]
    assert (ids == order).all()
    assert (score == np.take_along_axis(every, order, axis=1)).all()
    largest = every.max(1).astype(np.float64)
    np.testing.assert_allclose(log_sum, largest + np.log(np.exp(every - largest[:, None]).sum(1)), atol=1e-5)


@rounded
def test_a_program_multiplies_as_the_kernel_does(precision: Precision) -> None:
    table, weights = draw(200, 10), (draw(70, 10, seed=1), draw(6, 70, seed=2))
    one, two = (pack(weight, None, precision) for weight in weights)
    made = native.Program()
    rooms = [made.room(width) for width in (10, 70, 6)]
    made.embed(table, 1.0, rooms[0])
    made.product(rooms[0], one, rooms[1], ACTIVATIONS["relu"])
    made.product(rooms[1], two, rooms[2], 0)
    for rows in (1, 200):
        found, none = np.empty((rows, 6), np.float32), np.zeros(rows, np.int32)
        made.run(rooms[2], found, np.arange(rows), none, none)
        inner = multiplied(table[:rows], weights[0], None, precision, "relu")
        assert (found == multiplied(inner, weights[1], None, precision)).all()


def test_shapes_and_types_that_do_not_fit_are_refused() -> None:
    x, out = draw(3, 8), np.empty((3, 40), np.float32)
    frozen, packed = out.copy(), pack(draw(40, 8))
    frozen.flags.writeable = False
    wrong = [(draw(2, 8), packed, out, 0), (x, packed, np.empty((3, 65), np.float32), 0), (x, packed, out, 5)]
    wrong += [(draw(8, 3).T, packed, out, 0)]
    for precision in get_args(Precision):
        packed = pack(draw(40, 8), None, precision)
        native.product(x, packed, out, 0)
        wrong += [(draw(3, 9), packed, out, 0), (draw(3, 17), packed, out, 0)]
        wrong += [(x, packed[:, :, ::-1], out, 0), (x, packed[:1], out, 0), (x, packed.astype(np.int16), out, 0)]
        with pytest.raises(ValueError):
            native.pack(draw(1, 9), None, packed, 0)
    for given in wrong:
        with pytest.raises(ValueError):
            native.product(*given)
    for given in ((x.astype(np.float64), packed, out, 0), (x, packed, frozen, 0)):
        with pytest.raises(TypeError):
            native.product(*given)
    with pytest.raises(ValueError, match="added up"):
        pack(np.zeros((1, (1 << 17) + 1), np.float32), None, "int8")
