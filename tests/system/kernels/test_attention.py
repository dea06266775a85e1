import numpy as np
import pytest

from tests.system.kernels.arrays import apart, draw, halved, ints, native, widened

pytestmark = pytest.mark.usefixtures("instruction_set")
SIZES = [(1, 1, 1), (2, 3, 5), (2, 16, 16), (4, 32, 32), (1, 64, 64), (3, 40, 24), (1, 200, 300)]


def attended(query, key, value, heads, scale, places, bias=None, place=None):
    """The equation, a query and a head at a time, in float64."""
    rows = len(query)
    query, key, value = (x.astype(np.float64).reshape(len(x), heads, -1) for x in (query, key, value))
    context = np.zeros((rows, heads, value.shape[2]))
    for t in range(rows):
        for h in range(heads):
            if not len(places[t]):
                continue
            score = scale * key[places[t], h] @ query[t, h]
            if bias is not None:
                score += [bias[h, bias.shape[1] // 2 + s - place[t]] for s in range(len(score))]
            weight = np.exp(score - score.max())
            context[t, h] = weight / weight.sum() @ value[places[t], h]
    return context.reshape(rows, -1)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("halves", [False, True])
def test_neighbouring_and_scattered_keys_are_the_equation(
    sizes: tuple[int, int, int], biased: bool, halves: bool
) -> None:
    heads, key_size, value_size = sizes
    length, first = ints([0, 1, 2, 15, 16, 17, 40, 33] + 6 * [19]), ints([90, 8, 0, 3, 30, 1, 7, 7] + 6 * [9])
    rows = len(length)
    query, key = apart(draw(rows, heads * key_size)), apart(draw(50, heads * key_size, seed=1))
    value = apart(draw(50, heads * value_size, seed=2))
    given = key, value
    if halves:
        given = halved(key), halved(value)
        key, value = widened(given[0]), widened(given[1])
    bias, place = (draw(heads, 101, seed=3), ints([0, 0, 1, 3, 15, 0, 39, 20, *range(6)])) if biased else (None, None)
    scattered = np.stack([np.random.default_rng(n).permutation(50) for n in range(rows)]).astype(np.int32)
    scattered[np.arange(50) >= length[:, None]] = 2**31 - 1  # never looked at
    for table in (None, scattered):
        places = [
            np.arange(length[t]) + first[t] if table is None else table[t, : length[t]] for t in range(len(length))
        ]
        expected = attended(query, key, value, heads, 0.3, places, bias, place)
        context = apart(np.full((rows, heads * value_size), 7, np.float32))
        native.attention(query, *given, context, heads, 0.3, length, first, table, bias, place)
        np.testing.assert_allclose(context, expected, atol=2e-5)
        order = np.argsort(np.arange(rows) % 7, kind="stable")  # none beside another that has its keys
        mixed, own = apart(np.empty_like(context)), [None if x is None else x[order] for x in (table, place)]
        native.attention(query[order], *given, mixed, heads, 0.3, length[order], first[order], own[0], bias, own[1])
        assert np.array_equal(mixed, context[order])


def test_a_far_score_takes_all_and_none_is_none() -> None:
    key, value = np.eye(20, dtype=np.float32), draw(20, 20)
    query = 3e4 * np.eye(20, dtype=np.float32)[[4, 5]]
    query[1, 0] = np.nan
    context = np.empty_like(query)
    native.attention(query, key, value, context, 1, 1.0, ints([20, 20]), ints([0, 0]), None, None, None)
    np.testing.assert_allclose(context[0], value[4])
    assert np.isnan(context[1]).all()


def test_what_lies_outside_is_refused() -> None:
    query, key, value, context = draw(2, 8), draw(5, 8), draw(5, 6), np.empty((2, 6), np.float32)
    length, first, table = ints([2, 2]), ints([0, 3]), ints([[0, 1], [3, 4]])
    good = {"heads": 2, "scale": 1.0, "length": length, "first": first, "places": None, "bias": None, "place": None}
    native.attention(query, key, value, context, **good)
    for bad in (
        {"heads": 3},
        {"heads": 0},
        {"length": ints([2, 3])},
        {"length": ints([-1, 2])},
        {"length": ints([2])},
        {"first": ints([-1, 0])},
        {"first": ints([0])},
        {"places": table + 1},
        {"places": table - 1},
        {"places": table[:, :1]},
        {"places": table[:1]},
        {"bias": draw(2, 9)},
        {"bias": draw(1, 9), "place": ints([0, 0])},
        {"bias": draw(2, 9), "place": ints([5, 0])},
        {"bias": draw(2, 9), "place": ints([0, -4])},
    ):
        with pytest.raises(ValueError):
            native.attention(query, key, value, context, **{**good, **bad})
    for shapes in ((draw(2, 9), key, value), (query, draw(4, 8), value), (query, key, draw(5, 7))):
        with pytest.raises(ValueError):
            native.attention(*shapes, context, **good)
