"""The best of a vocabulary: k of each row with the sum of all, the largest by screening in int8; and the softmax."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.system.kernels.packing import Precision, pack
from tests.system.kernels.arrays import apart, best, draw, masked, native

pytestmark = pytest.mark.usefixtures("instruction_set")


def argmax(hidden, weight, without=(), precision: Precision = "fp32", bias=None):
    """The id of each row, by screening where the precision is fp32."""
    found, packed = np.full(len(hidden), -2, np.int32), pack(weight, bias, precision)
    screen = pack(weight, bias, "int8") if precision == "fp32" else packed
    native.argmax(hidden, screen, packed, len(weight), masked(len(weight), without), found)
    return found.tolist()


def first_of_all(hidden, weight, without=(), precision: Precision = "fp32", bias=None):
    """The same of all scores, which a product computes."""
    score = np.empty((len(hidden), len(weight)), np.float32)
    native.product(hidden, pack(weight, bias, precision), score, 0)
    score[:, list(without)] = -np.inf
    return [int(line.argmax()) if len(line) and line.max() > -np.inf else -1 for line in score]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("pieces", [1, 2, 31, 513, 1200])
@pytest.mark.parametrize("rows", [1, 3, 9])
@pytest.mark.parametrize("k", [1, 4])
def test_best_and_sum_are_those_of_all_scores(pieces: int, rows: int, k: int) -> None:
    hidden, weight = apart(draw(rows, 24)), draw(pieces, 24, seed=1)
    without = (0, pieces // 2) if pieces > 2 else ()
    ids, score, log_sum = best(hidden, weight, k, without)
    every = hidden.astype(np.float64) @ weight.T.astype(np.float64)
    largest = every.max(1)
    np.testing.assert_allclose(log_sum, largest + np.log(np.exp(every - largest[:, None]).sum(1)), atol=1e-5)
    every[:, list(without)] = -np.inf
    order = np.argsort(-every, axis=1, kind="stable")[:, :k]
    wide = min(k, pieces)
    assert (ids[:, :wide] == order).all()
    np.testing.assert_allclose(score[:, :wide], np.take_along_axis(every, order, axis=1), atol=1e-5)
    assert (ids[:, wide:] == -1).all()
    assert (score[:, wide:] == -np.inf).all()


@pytest.mark.one_of(8)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("pieces", [1, 31, 33, 513, 1200])
@pytest.mark.parametrize("rows", [0, 1, 3, 9, 40])
def test_the_largest_is_that_of_all_scores(rows: int, pieces: int, precision: Precision) -> None:
    hidden, weight = apart(draw(rows, 24)), draw(pieces, 24, seed=1)
    largest = first_of_all(hidden, weight, (), precision)
    assert argmax(hidden, weight, (), precision) == largest
    without = tuple({*largest, 0})
    assert argmax(hidden, weight, without, precision) == first_of_all(hidden, weight, without, precision)


SIZES = [1e-38, 1e-30, 1e-26, 1e-23, 1e-21, 1e-18, 1e-3, 1.0, 1e6, 1e15]


@pytest.mark.one_of(3)
@given(st.integers(0, 2**32 - 1), st.sampled_from(SIZES), st.sampled_from([1e-21, 1e-15, 1.0]), st.integers(1, 70))
@example(0, 1e-38, 1.0, 64)
def test_nearly_equal_scores_are_told_apart(seed: int, size: float, scale: float, inner: int) -> None:
    """Pieces that differ in the last bits, which bytes cannot tell; also where squares or scales are denormal."""
    random = np.random.default_rng(seed)
    weight = np.repeat(random.normal(size=(9, inner)), 40, axis=0) * scale
    weight *= 1 + random.integers(-4, 5, weight.shape) * 2.0 ** -random.integers(9, 23)
    hidden = (random.normal(size=(12, inner)) * size).astype(np.float32)
    hidden[1] = 3 * size  # all alike, for which a row of bytes has no steps
    assert argmax(hidden, weight.astype(np.float32)) == first_of_all(hidden, weight.astype(np.float32))
    bias = (random.normal(size=len(weight)) * size * scale * 10).astype(np.float32)
    given = hidden, weight.astype(np.float32)
    assert argmax(*given, bias=bias) == first_of_all(*given, bias=bias)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("inner", range(1, 40))
def test_rows_whose_squares_are_zero(inner: int) -> None:
    random = np.random.default_rng(1)
    weight = np.repeat(random.normal(size=(9, inner)), 40, axis=0)
    weight = (weight * (1 + random.integers(-4, 5, weight.shape) * 2.0**-9)).astype(np.float32)
    hidden = np.full((1, inner), 1e-23, np.float32)
    assert argmax(hidden, weight) == first_of_all(hidden, weight)


def test_ties_go_to_the_smaller_id() -> None:
    weight = np.zeros((700, 2), np.float32)
    weight[[5, 80, 600, 699]] = 1
    hidden = np.array([[1, 1], [-1, -1], [0, 0]], np.float32)
    assert argmax(hidden, weight) == [5, 0, 0]
    ids, score, _ = best(hidden, weight, 6)
    assert ids[0].tolist() == [5, 80, 600, 699, 0, 1]
    assert score[0].tolist() == [2, 2, 2, 2, 0, 0]


def test_where_every_token_is_left_out_there_is_none() -> None:
    ids, score, _ = best(draw(1, 3), draw(2, 3), 2, (0, 1))
    assert ids.tolist() == [[-1, -1]]
    assert (score == -np.inf).all()
    assert argmax(draw(2, 3), draw(40, 3), range(40)) == [-1, -1]


def test_far_scores_and_what_is_none() -> None:
    hidden = np.array([[1e4], [-1e4], [np.nan]], np.float32)
    ids, _, log_sum = best(hidden, np.arange(600, dtype=np.float32)[:, None], 1)
    assert ids[:2].tolist() == [[599], [0]]
    np.testing.assert_allclose(log_sum[:2], [5.99e6, 0])
    assert np.isnan(log_sum[2])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_have_no_largest(bad: float) -> None:
    hidden, weight = draw(3, 8), draw(600, 8, seed=1)
    hidden[1, 2] = bad
    found = argmax(hidden, weight)
    assert found[1] == -1
    assert [found[0], found[2]] == first_of_all(hidden[[0, 2]], weight)
    weight[333, 3] = bad
    assert argmax(draw(2, 8), weight) == [-1, -1]


def test_a_row_has_the_same_bits_alone_and_among_others() -> None:
    hidden, weight = draw(30, 40), draw(777, 40, seed=1)
    together = best(hidden, weight, 5)
    for n in (0, 17):
        for one, all_ in zip(best(hidden[n : n + 1], weight, 5), together, strict=True):
            assert (one[0] == all_[n]).all()


def test_shapes_that_do_not_fit_are_refused() -> None:
    hidden, weight, short = draw(2, 8), draw(40, 8), np.zeros(39, np.uint8)
    exact, screen, low = (pack(weight, None, precision) for precision in ("fp32", "int8", "bf16"))
    ids, score, log_sum = np.empty((2, 3), np.int32), np.empty((2, 3), np.float32), np.empty(2)
    native.vocabulary(hidden, exact, 40, None, ids, score, log_sum)
    for given_ in (
        (draw(2, 9), exact, 40, None, ids, score, log_sum),
        (hidden, exact, 65, None, ids, score, log_sum),
        (hidden, exact, -1, None, ids, score, log_sum),
        (hidden, exact, 40, short, ids, score, log_sum),
        (hidden, exact, 40, None, ids[:1], score, log_sum),
        (hidden, exact, 40, None, ids[:, :2], score, log_sum),
        (hidden, exact, 40, None, ids[:, :0], score[:, :0], log_sum),
        (hidden, exact, 40, None, ids, score, log_sum[:1]),
    ):
        with pytest.raises(ValueError):
            native.vocabulary(*given_)
    memory, id_N = np.zeros(4096, np.uint8), np.empty(2, np.int32)
    as_int8, as_bf16 = memory[:1536].view(np.int8).reshape(2, 6, 128), memory[:1280].view(np.uint16).reshape(2, 10, 32)
    native.argmax(hidden, screen, exact, 40, None, id_N)
    for given_ in (
        (draw(2, 9), screen, exact, 40, None, id_N),
        (hidden, screen, pack(draw(40, 7)), 40, None, id_N),
        (hidden, exact, screen, 40, None, id_N),
        (hidden, pack(weight), exact, 40, None, id_N),
        (hidden, low, exact, 40, None, id_N),
        (hidden, screen, exact, 65, None, id_N),
        (hidden, screen, exact, 40, short, id_N),
        (hidden, screen, exact, 40, None, id_N[:1]),
        (hidden, as_int8, as_bf16, 40, None, id_N),
    ):
        with pytest.raises(ValueError):
            native.argmax(*given_)


def softmax(score):
    """The softmax of each row and its log sum, by the kernel; what lies between rows is not touched."""
    rows, pieces = score.shape
    room, log_sum = np.full((rows, pieces + 7), 7, score.dtype), np.empty(rows, np.float32)
    room[:, :pieces] = score
    native.softmax(room[:, :pieces], log_sum)
    assert (room[:, pieces:] == 7).all()
    return room[:, :pieces], log_sum


@pytest.mark.parametrize("pieces", [1, 2, 7, 8, 31, 513, 8000])
def test_softmax_is_that_in_float64(pieces: int) -> None:
    score = draw(5, pieces) * 8
    found, log_sum = softmax(score)
    wide = score.astype(np.float64)
    wanted = np.log(np.exp(wide).sum(1))
    np.testing.assert_allclose(log_sum, wanted, atol=4e-6)
    shares = np.exp(wide - wanted[:, None])
    np.testing.assert_allclose(found, shares, rtol=6e-6, atol=1e-30)  # of the difference of two scores


@pytest.mark.parametrize("pieces", [1, 9, 513])
def test_softmax_of_bf16_is_that_of_torch(pieces: int) -> None:
    torch = pytest.importorskip("torch")
    score = torch.from_numpy(draw(3, pieces) * 8).bfloat16()
    found, log_sum = softmax(score.view(torch.uint16).numpy())
    assert torch.equal(torch.from_numpy(found.copy()).view(torch.bfloat16), score.softmax(1))
    np.testing.assert_allclose(log_sum, score.double().logsumexp(1).numpy(), atol=4e-6)


def test_softmax_far_apart_and_of_what_is_no_number() -> None:
    score = np.array([[1e4, -1e4, 0.0], [np.nan, 0.0, 0.0], [-75.0, 0.0, -69.0]], np.float32)
    found, log_sum = softmax(score)
    assert found[0].tolist() == [1.0, 0.0, 0.0]
    assert log_sum[0] == 1e4
    assert np.isnan(found[1]).all()
    assert np.isnan(log_sum[1])
    assert found[2, 0] == 0.0
    assert np.isfinite(np.float32(1) / found[2, 2])


def test_softmax_refuses_what_does_not_fit() -> None:
    sums = np.empty(3, np.float32)
    for score, of, said in (
        (draw(3, 4), sums[:2], "another length"),
        (draw(3, 0), sums, "needs a score"),
        (draw(4, 3).T, sums, "neighbours"),
    ):
        with pytest.raises(ValueError, match=said):
            native.softmax(score, of)
    with pytest.raises(TypeError):
        native.softmax(np.empty((3, 2)), sums)
