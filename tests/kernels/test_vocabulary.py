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
