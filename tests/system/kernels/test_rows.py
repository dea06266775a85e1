"""Kernels that take rows on their own, against plain NumPy: norms, rotation, rounding to bf16."""

import numpy as np
import pytest

from regard.system.kernels import NORMS
from tests.system.kernels.arrays import apart, draw, halved, native, widened

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


@pytest.mark.one_of(4)
@pytest.mark.parametrize("columns", [1, 3, 16, 24, 100])
@pytest.mark.parametrize(("kind", "groups"), [("layer", 1), ("layer", 0), ("rms", 1), ("affine", 1)])
@pytest.mark.parametrize("biased", [False, True])
def test_norm_of_the_sum_is_its_equation(columns: int, kind: str, groups: int, biased: bool) -> None:
    groups = groups or (4 if columns % 4 == 0 else columns)
    x, y, gain = apart(draw(5, columns)), draw(5, columns, seed=1), draw(columns, seed=2)
    bias = draw(columns, seed=3) if biased else None
    total, out = np.empty_like(y), np.empty_like(y)
    expected = normalised(x + y, kind, groups, gain, bias, 1e-3)
    native.norm(x, y, total, out, gain, bias, NORMS[kind], groups, 1e-3)
    np.testing.assert_allclose(total, x + y)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    alone = np.empty_like(y)
    native.norm(total, None, None, alone, gain, bias, NORMS[kind], groups, 1e-3)
    assert (alone == out).all()


def test_it_can_be_computed_in_place() -> None:
    x, y, gain = draw(3, 20), draw(3, 20, seed=1), draw(20, seed=2)
    expected = normalised(x + y, "layer", 1, gain, None, 1e-5)
    stream = x.copy()
    native.norm(stream, y, None, stream, gain, None, NORMS["layer"], 1, 1e-5)
    np.testing.assert_allclose(stream, expected, atol=1e-5)
    stream, out = x.copy(), np.empty_like(x)
    native.norm(stream, y, stream, out, gain, None, NORMS["layer"], 1, 1e-5)
    np.testing.assert_allclose(stream, x + y)
    np.testing.assert_allclose(out, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_rows_of_zeros_far_numbers_and_what_is_none(kind: str) -> None:
    x, gain = np.zeros((4, 18), np.float32), np.ones(18, np.float32)
    x[1], x[2, 0], x[3] = 1e4, np.nan, 1e15 * draw(18)
    out = np.empty_like(x)
    native.norm(x, None, None, out, gain, None, NORMS[kind], 1, 1e-5)
    assert (out[0] == 0).all()
    np.testing.assert_allclose(out[1], 0 if kind == "layer" else 1, atol=1e-6)
    assert np.isnan(out[2]).all()
    np.testing.assert_allclose(out[3], normalised(x[3:], kind, 1, gain, None, 1e-5)[0], atol=1e-5)


def test_norms_of_shapes_that_do_not_fit_are_refused() -> None:
    x, gain = draw(3, 8), draw(8)
    for out, y, kind, groups in (
        (draw(3, 9), None, 0, 1),
        (draw(2, 8), None, 0, 1),
        (draw(3, 8), draw(3, 7), 0, 1),
        (draw(3, 8), x, 0, 3),
        (draw(3, 8), None, -1, 1),
        (draw(3, 8), None, 3, 1),
    ):
        with pytest.raises(ValueError):
            native.norm(x, y, None, out, gain, None, kind, groups, 1e-5)


@pytest.mark.parametrize(("heads", "size"), [(1, 2), (3, 6), (2, 64), (1, 40)])
def test_pairs_are_turned_by_the_angle_of_their_place(heads: int, size: int) -> None:
    angle = draw(9, size // 2)
    x, place = apart(draw(4, heads * size, seed=1)), np.array([0, 8, 3, 3], np.int32)
    pairs = x.astype(np.float64).reshape(4, heads, 2, size // 2)
    turned = (pairs[:, :, 0] + 1j * pairs[:, :, 1]) * np.exp(1j * angle.astype(np.float64))[place][:, None]
    expected = np.stack([turned.real, turned.imag], axis=2).reshape(4, -1)
    native.rotation(x, heads, np.cos(angle), np.sin(angle), place)
    np.testing.assert_allclose(x, expected, atol=1e-5)


def test_a_place_without_angles_is_refused() -> None:
    angle = draw(9, 2)
    for heads, size, place in ((1, 4, 9), (1, 4, -1), (2, 4, 0), (1, 6, 0)):
        with pytest.raises(ValueError):
            native.rotation(draw(1, size), heads, angle, angle, np.array([place], np.int32))


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (3, 16), (4, 37), (2, 200)], ids=str)
def test_rows_are_rounded_to_the_nearest(shape: tuple[int, int]) -> None:
    x = apart(draw(*shape) * np.exp(8 * draw(*shape, seed=1)))
    room = np.full((shape[0], shape[1] + 3), 7, np.uint16)
    native.halve(x, room[:, : shape[1]])
    assert (room[:, shape[1] :] == 7).all(), "it wrote beyond its columns"
    assert (np.abs(widened(room[:, : shape[1]]) - x) <= np.abs(x) * 2.0**-8).all()
    assert (room[:, : shape[1]] == halved(x)).all()


def test_ties_are_even_and_what_is_no_number_stays_none() -> None:
    x = np.uint32([[0x3F808000, 0x3F818000, 0x3F808001, 0xBF808000, 0x7F800000, 0x80000000]])
    out = np.empty(x.shape, np.uint16)
    native.halve(x.view(np.float32), out)
    assert out.tolist() == [[0x3F80, 0x3F82, 0x3F81, 0xBF80, 0x7F80, 0x8000]]
    none = np.uint32([[0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFF8000]])
    native.halve(none.view(np.float32), out)
    assert np.isnan(widened(out)).all()


def test_halves_of_other_shapes_and_types_are_refused() -> None:
    with pytest.raises(ValueError, match="shapes"):
        native.halve(draw(2, 3), np.empty((2, 4), np.uint16))
    key, query, none = halved(draw(4, 8)), draw(1, 8), np.zeros(1, np.int32)
    for one, other in ((key, draw(4, 8)), (key.astype(np.int32), key.astype(np.int32))):
        with pytest.raises(ValueError, match="keys and values"):
            native.attention(query, one, other, np.empty_like(query), 1, 1.0, none, none, None, None, None)
