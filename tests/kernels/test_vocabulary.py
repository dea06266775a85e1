import numpy as np
import pytest

from regard.kernels.packing import pack
from tests.kernels.arrays import apart, draw

pytestmark = pytest.mark.usefixtures("instruction_set")


def best(hidden, weight, k, without=()):
    """The k best ids and scores of each row, and the logarithm of the sum, by the kernel."""
    from regard.kernels import _native

    rows, pieces = len(hidden), len(weight)
    ids, score, log_sum = np.empty((rows, k), np.int32), np.empty((rows, k), np.float32), np.empty(rows)
    mask = None
    if without:
        mask = np.zeros(pieces, np.uint8)
        mask[list(without)] = 1
    _native.vocabulary(hidden, pack(weight), pieces, mask, ids, score, log_sum)
    return ids, score, log_sum


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


def test_ties_go_to_the_smaller_id() -> None:
    hidden, weight = np.ones((2, 1), np.float32), np.zeros((700, 1), np.float32)
    weight[[5, 80, 600, 699]] = 1
    ids, score, _ = best(hidden, weight, 6)
    assert ids[0].tolist() == [5, 80, 600, 699, 0, 1]
    assert score[1].tolist() == [1, 1, 1, 1, 0, 0]


def test_where_every_token_is_left_out_there_is_none() -> None:
    ids, score, _ = best(draw(1, 3), draw(2, 3), 2, (0, 1))
    assert ids.tolist() == [[-1, -1]]
    assert (score == -np.inf).all()


def test_far_scores_and_what_is_none() -> None:
    hidden = np.array([[1e4], [-1e4], [np.nan]], np.float32)
    ids, _, log_sum = best(hidden, np.arange(600, dtype=np.float32)[:, None], 1)
    assert ids[:2].tolist() == [[599], [0]]
    np.testing.assert_allclose(log_sum[:2], [5.99e6, 0])
    assert np.isnan(log_sum[2])


def test_a_row_has_the_same_bits_alone_and_among_others() -> None:
    hidden, weight = draw(30, 40), draw(777, 40, seed=1)
    together = best(hidden, weight, 5)
    for n in (0, 17):
        for one, all_ in zip(best(hidden[n : n + 1], weight, 5), together, strict=True):
            assert (one[0] == all_[n]).all()


def test_shapes_that_do_not_fit_are_refused() -> None:
    from regard.kernels import _native

    hidden, packed = draw(2, 8), pack(draw(40, 8))
    ids, score, log_sum = np.empty((2, 3), np.int32), np.empty((2, 3), np.float32), np.empty(2)
    _native.vocabulary(hidden, packed, 40, None, ids, score, log_sum)
    for given in (
        (draw(2, 9), packed, 40, None, ids, score, log_sum),
        (hidden, packed, 65, None, ids, score, log_sum),
        (hidden, packed, -1, None, ids, score, log_sum),
        (hidden, packed, 40, np.zeros(39, np.uint8), ids, score, log_sum),
        (hidden, packed, 40, None, ids[:1], score, log_sum),
        (hidden, packed, 40, None, ids[:, :2], score, log_sum),
        (hidden, packed, 40, None, ids[:, :0], score[:, :0], log_sum),
        (hidden, packed, 40, None, ids, score, log_sum[:1]),
    ):
        with pytest.raises(ValueError):
            _native.vocabulary(*given)


def softmax(score):
    """The softmax of each row and its log sum, by the kernel."""
    from regard.kernels import _native

    found, log_sum = score.copy(), np.empty(len(score), np.float32)
    _native.softmax(found, log_sum)
    return found, log_sum


@pytest.mark.parametrize("pieces", [1, 2, 7, 8, 31, 513, 8000])
def test_softmax_is_that_in_float64(pieces: int) -> None:
    score = draw(5, pieces) * 8
    found, log_sum = softmax(score)
    wide = score.astype(np.float64)
    wanted = np.log(np.exp(wide).sum(1))
    np.testing.assert_allclose(log_sum, wanted, atol=4e-6)
    np.testing.assert_allclose(
        found, np.exp(wide - wanted[:, None]), rtol=6e-6, atol=1e-30
    )  # of the difference of two scores


@pytest.mark.parametrize("pieces", [1, 9, 513])
def test_softmax_of_bf16_is_that_of_torch(pieces: int) -> None:
    torch = pytest.importorskip("torch")
    score = torch.from_numpy(draw(3, pieces) * 8).bfloat16()
    found, log_sum = softmax(score.view(torch.uint16).numpy())
    assert torch.equal(torch.from_numpy(found).view(torch.bfloat16), score.softmax(1))
    np.testing.assert_allclose(log_sum, score.double().logsumexp(1).numpy(), atol=4e-6)


def test_softmax_of_rows_that_lie_apart_touches_nothing_else() -> None:
    wide = np.full((3, 40), 7.0, np.float32)
    wide[:, :33] = draw(3, 33)
    before = wide.copy()
    found, log_sum = softmax(np.ascontiguousarray(wide[:, :33]))
    from regard.kernels import _native

    sums = np.empty(3, np.float32)
    _native.softmax(wide[:, :33], sums)
    assert (wide[:, :33] == found).all()
    assert (sums == log_sum).all()
    assert (wide[:, 33:] == before[:, 33:]).all()


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
    from regard.kernels import _native

    with pytest.raises(ValueError, match="another length"):
        _native.softmax(draw(3, 4), np.empty(2, np.float32))
    with pytest.raises(ValueError, match="needs a score"):
        _native.softmax(np.empty((3, 0), np.float32), np.empty(3, np.float32))
    with pytest.raises(ValueError, match="neighbours"):
        _native.softmax(draw(4, 3).T, np.empty(3, np.float32))
    with pytest.raises(TypeError):
        _native.softmax(np.empty((3, 2)), np.empty(3, np.float32))
