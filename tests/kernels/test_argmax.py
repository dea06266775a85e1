"""The largest score of each row: by screening in int8 the same as of all scores, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.kernels.packing import Precision, pack
from tests.kernels.arrays import apart, draw

pytestmark = pytest.mark.usefixtures("instruction_set")


def argmax(hidden, weight, without=(), precision: Precision = "fp32"):
    """The id of each row, by screening where the precision is fp32."""
    from regard.kernels import _native

    found, packed = np.full(len(hidden), -2, np.int32), pack(weight, None, precision)
    screen = pack(weight, None, "int8") if precision == "fp32" else packed
    mask = None
    if without:
        mask = np.zeros(len(weight), np.uint8)
        mask[list(without)] = 1
    _native.argmax(hidden, screen, packed, len(weight), mask, found)
    return found.tolist()


def first_of_all(hidden, weight, without=(), precision: Precision = "fp32"):
    """The same of all scores, which a product computes."""
    from regard.kernels import _native

    score = np.empty((len(hidden), len(weight)), np.float32)
    _native.product(hidden, pack(weight, None, precision), score, 0)
    score[:, list(without)] = -np.inf
    return [int(line.argmax()) if len(line) and line.max() > -np.inf else -1 for line in score]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("pieces", [1, 31, 33, 513, 1200])
@pytest.mark.parametrize("rows", [0, 1, 3, 9, 40])
def test_it_is_that_of_all_scores(rows: int, pieces: int, precision: Precision) -> None:
    hidden, weight = apart(draw(rows, 24)), draw(pieces, 24, seed=1)
    best = first_of_all(hidden, weight, (), precision)
    assert argmax(hidden, weight, (), precision) == best
    without = tuple({*best, 0})
    assert argmax(hidden, weight, without, precision) == first_of_all(hidden, weight, without, precision)


SIZES = [1e-38, 1e-30, 1e-26, 1e-23, 1e-21, 1e-18, 1e-3, 1.0, 1e6, 1e15]


@given(st.integers(0, 2**32 - 1), st.sampled_from(SIZES), st.sampled_from([1e-21, 1e-15, 1.0]), st.integers(1, 70))
@example(0, 1e-38, 1.0, 64)
def test_nearly_equal_scores_are_told_apart(seed: int, size: float, scale: float, inner: int) -> None:
    """Pieces that differ in the last bits, which bytes cannot tell; also where squares or scales are denormal."""
    random = np.random.default_rng(seed)
    weight = np.repeat(random.normal(size=(9, inner)), 40, axis=0)
    weight = (weight * scale * (1 + random.integers(-4, 5, weight.shape) * 2.0 ** -random.integers(9, 23))).astype(
        np.float32
    )
    hidden = (random.normal(size=(12, inner)) * size).astype(np.float32)
    hidden[1] = 3 * size  # all alike, for which a row of bytes has no steps
    assert argmax(hidden, weight) == first_of_all(hidden, weight)


@pytest.mark.parametrize("inner", range(1, 40))
def test_rows_whose_squares_are_zero(inner: int) -> None:
    random = np.random.default_rng(1)
    weight = np.repeat(random.normal(size=(9, inner)), 40, axis=0)
    weight = (weight * (1 + random.integers(-4, 5, weight.shape) * 2.0**-9)).astype(np.float32)
    hidden = np.full((1, inner), 1e-23, np.float32)
    assert argmax(hidden, weight) == first_of_all(hidden, weight)


def test_ties_go_to_the_smaller_id() -> None:
    weight = np.zeros((700, 2), np.float32)
    weight[[69, 80, 600, 699]] = 1
    assert argmax(np.array([[1, 1], [-1, -1], [0, 0]], np.float32), weight) == [69, 0, 0]


def test_where_every_token_is_left_out_there_is_none() -> None:
    assert argmax(draw(2, 3), draw(40, 3), range(40)) == [-1, -1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_give_none(bad: float) -> None:
    hidden, weight = draw(3, 8), draw(600, 8, seed=1)
    hidden[1, 2] = bad
    found = argmax(hidden, weight)
    assert found[1] == -1
    assert [found[0], found[2]] == first_of_all(hidden[[0, 2]], weight)
    weight[333, 3] = bad
    assert argmax(draw(2, 8), weight) == [-1, -1]


def test_shapes_that_do_not_fit_are_refused() -> None:
    from regard.kernels import _native

    hidden, weight = draw(2, 8), draw(40, 8)
    exact, screen, ids = pack(weight), pack(weight, None, "int8"), np.empty(2, np.int32)
    _native.argmax(hidden, screen, exact, 40, None, ids)
    memory = np.zeros(4096, np.uint8)
    as_int8, as_bf16 = memory[:1536].view(np.int8).reshape(2, 6, 128), memory[:1280].view(np.uint16).reshape(2, 10, 32)
    for given_ in (
        (draw(2, 9), screen, exact, 40, None, ids),
        (hidden, screen, pack(draw(40, 7)), 40, None, ids),
        (hidden, exact, screen, 40, None, ids),
        (hidden, pack(weight), exact, 40, None, ids),
        (hidden, pack(weight, None, "bf16"), exact, 40, None, ids),
        (hidden, screen, exact, 65, None, ids),
        (hidden, screen, exact, 40, np.zeros(39, np.uint8), ids),
        (hidden, screen, exact, 40, None, ids[:1]),
        (hidden, as_int8, as_bf16, 40, None, ids),
    ):
        with pytest.raises(ValueError):
            _native.argmax(*given_)
