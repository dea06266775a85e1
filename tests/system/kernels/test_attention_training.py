from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.system.kernels.arrays import apart, draw, native

pytestmark = pytest.mark.usefixtures("instruction_set")
SIZES = [(1, 1, 1), (2, 3, 5), (2, 16, 16), (4, 32, 32), (1, 64, 64), (3, 40, 24)]
LENGTHS = [[0, 1, 2, 15, 16, 17, 40], [33, 5, 0, 1], []]


def longs(values: Any) -> np.ndarray:
    return np.asarray(values, np.int64)


class Given:
    """Sequences on two axes, with a row of nobody between two of them, and what is computed of them in float64."""

    def __init__(
        self, sizes: tuple[int, int, int], lengths: list[int], causal: bool, biased: bool, more: int = 0
    ) -> None:
        self.heads, key_size, value_size = sizes
        self.causal, self.scale = causal, 0.3
        self.query_lengths = longs(lengths)
        self.key_lengths = longs([length + more if length else 0 for length in lengths])
        self.query_starts, self.key_starts = (
            longs([sum(each[:b]) + b for b in range(len(each))]) for each in (self.query_lengths, self.key_lengths)
        )
        queries, keys = (int(each.sum() + len(each)) for each in (self.query_lengths, self.key_lengths))
        self.query, self.key = (
            apart(draw(queries, self.heads * key_size)),
            apart(draw(keys, self.heads * key_size, seed=1)),
        )
        self.value = apart(draw(keys, self.heads * value_size, seed=2))
        self.gradient = apart(draw(queries, self.heads * value_size, seed=3))
        longest = max([0, *self.key_lengths]) + 3
        self.bias = draw(self.heads, longest, longest, seed=4) if biased else None

    @property
    def settings(self) -> tuple[Any, ...]:
        sequences = (self.query_starts, self.query_lengths, self.key_starts, self.key_lengths)
        return (self.heads, self.scale, self.causal, *sequences, self.bias)

    def computed(self) -> list[np.ndarray]:
        """Context, gradients of query, key, value and, if there is one, of the bias."""

        rounded = -(-self.key_lengths // native.KEPT) * native.KEPT
        weights = np.full(max(0, self.heads * int((self.query_lengths * rounded).sum())), np.nan, np.float32)
        context = np.zeros((len(self.query), self.value.shape[1]), np.float32)
        native.training_attention(self.query, self.key, self.value, context, *self.settings, weights)
        found = [np.zeros(each.shape, np.float32) for each in (self.query, self.key, self.value)]
        bias = None if self.bias is None else np.zeros_like(self.bias)
        given = (self.query, self.key, self.value, self.gradient)
        native.attention_gradient(*given, *found, *self.settings, weights, bias)
        return [context, *found, *([] if bias is None else [bias])]

    def expected(self) -> list[np.ndarray]:
        """The equations, a head of a sequence at a time."""
        query, key, value, gradient = (
            x.astype(np.float64).reshape(len(x), self.heads, x.shape[1] // self.heads)
            for x in (self.query, self.key, self.value, self.gradient)
        )
        context = np.zeros_like(gradient)
        to_query, to_key, to_value = np.zeros_like(query), np.zeros_like(key), np.zeros_like(value)
        to_bias = None if self.bias is None else np.zeros(self.bias.shape)
        for b, (rows, keys) in enumerate(zip(self.query_lengths, self.key_lengths, strict=True)):
            if not rows:
                continue
            here = slice(self.query_starts[b], self.query_starts[b] + rows)
            there = slice(self.key_starts[b], self.key_starts[b] + keys)
            for h in range(self.heads):
                score = self.scale * query[here, h] @ key[there, h].T
                if self.bias is not None:
                    score += self.bias[h, :rows, :keys]
                if self.causal:
                    score[np.arange(keys) > np.arange(rows)[:, None] + keys - rows] = -np.inf
                weight = np.exp(score - score.max(1, keepdims=True))
                weight /= weight.sum(1, keepdims=True)
                context[here, h] = weight @ value[there, h]
                to_weight = gradient[here, h] @ value[there, h].T
                to_score = weight * (to_weight - (weight * to_weight).sum(1, keepdims=True))
                to_query[here, h] = self.scale * to_score @ key[there, h]
                to_key[there, h] = self.scale * to_score.T @ query[here, h]
                to_value[there, h] = weight.T @ gradient[here, h]
                if to_bias is not None:
                    to_bias[h, :rows, :keys] += to_score
        found = [x.reshape(len(x), x.shape[1] * x.shape[2]) for x in (context, to_query, to_key, to_value)]
        return found if to_bias is None else [*found, to_bias]


def compare(of: Given) -> None:
    for found, expected in zip(of.computed(), of.expected(), strict=True):
        np.testing.assert_allclose(found, expected, atol=4e-5)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_it_is_the_equation_and_its_gradient(sizes: Any, lengths: list[int], causal: bool, biased: bool) -> None:
    compare(Given(sizes, lengths, causal, biased))


@pytest.mark.one_of(3)
@given(st.data())
def test_it_is_so_for_drawn_sizes(data: st.DataObject) -> None:
    sizes = tuple(data.draw(st.integers(1, most)) for most in (3, 40, 40))
    lengths = data.draw(st.lists(st.integers(0, 40), max_size=4))
    causal, biased, more = data.draw(st.booleans()), data.draw(st.booleans()), data.draw(st.integers(0, 20))
    compare(Given(sizes, lengths, causal, biased, more))


def test_it_is_added_to_what_is_there() -> None:
    of = Given((2, 8, 8), [3, 5], False, False)
    weights = np.zeros(2 * 16 * 8, np.float32)
    once, twice = (np.ones((len(of.query), 16), np.float32) for _ in range(2))
    native.training_attention(of.query, of.key, of.value, once, *of.settings, weights)
    np.testing.assert_allclose(once - 1, of.expected()[0], atol=4e-5)
    for _ in range(2):
        native.training_attention(of.query, of.key, of.value, twice, *of.settings, weights)
    np.testing.assert_allclose(twice - 1, 2 * of.expected()[0], atol=4e-5)


def test_what_is_no_number_stays_in_its_sequence() -> None:
    of = Given((2, 16, 16), [4, 6, 20], True, False)
    of.query[of.query_starts[1] + 2, 3] = np.nan
    of.value[of.key_starts[1] + 5, 20] = np.inf
    with np.errstate(invalid="ignore"):
        pairs = list(zip(of.computed(), of.expected(), strict=True))
    for found, expected in pairs:
        for b in (0, 2):
            rows = slice(of.query_starts[b], of.query_starts[b] + of.query_lengths[b])
            np.testing.assert_allclose(found[rows], expected[rows], atol=4e-5)
    assert np.isnan(of.computed()[0][of.query_starts[1] + 2, :16]).all()


def test_a_far_score_takes_all() -> None:
    of = Given((1, 20, 20), [20], False, False)
    of.query[:20], of.key[:20] = 3e4 * np.eye(20), np.eye(20)
    np.testing.assert_allclose(of.computed()[0][:20], of.value[:20])


BAD = {
    "heads": {"heads": 3},
    "start": {"query_starts": longs([0, 40])},
    "before": {"key_starts": longs([-1, 4])},
    "huge": {"key_starts": longs([0, 2**62])},
    "long": {"key_lengths": longs([3, 400])},
    "negative": {"query_lengths": longs([3, -5])},
    "count": {"key_lengths": longs([3])},
    "keyless": {"key_lengths": longs([3, 0])},
    "bias": {"bias": draw(2, 4, 4)},
    "other heads": {"bias": draw(1, 9, 9)},
    "oblong": {"bias": draw(2, 9, 8)},
    "apart": {"bias": draw(2, 9, 18)[:, :, ::2]},
    "causal": {"causal": True, "key_lengths": longs([3, 4])},
}


@pytest.mark.parametrize("bad", BAD)
def test_what_does_not_fit_is_refused(bad: str) -> None:
    of = Given((2, 8, 8), [3, 5], False, True)
    assert of.computed()
    for name, value in BAD[bad].items():
        setattr(of, name, value)
    with pytest.raises(ValueError, match=r"^(the|a|an|shapes|entries|there) "):
        of.computed()


def test_sizes_beyond_all_numbers_are_refused() -> None:
    rows, none = np.empty((2**30, 0), np.float32), np.empty(0, np.float32)
    starts, lengths = longs([0] * 16), longs([2**30] * 16)
    with pytest.raises(ValueError, match="room for exactly"):
        native.training_attention(rows, rows, rows, rows, 1, 1.0, False, starts, lengths, starts, lengths, None, none)


def test_a_weight_too_small_is_zero() -> None:
    of = Given((1, 16, 16), [20], False, False)
    of.query[:20], of.key[:20] = 0, 0
    of.query[:20, 0], of.key[:20, 0] = 1, -400 * np.arange(20)
    of.value[:20] = 1e38
    np.testing.assert_array_equal(of.computed()[0], np.float32(1e38) * (np.arange(21) < 20)[:, None].repeat(16, 1))


@pytest.mark.parametrize("short", range(7))
def test_arrays_of_another_size_are_refused(short: int) -> None:
    of = Given((2, 8, 8), [3, 5], False, False)
    arrays = [of.query, of.key, of.value, of.gradient, *map(np.zeros_like, (of.query, of.key, of.value))]
    weights = np.zeros(2 * 16 * 8, np.float32)
    native.attention_gradient(*arrays, *of.settings, weights, None)
    for less in (weights[:-1], np.zeros(2 * 16 * 8 + 1, np.float32)):
        with pytest.raises(ValueError, match="room for exactly"):
            native.attention_gradient(*arrays, *of.settings, less, None)
    arrays[short] = arrays[short][:, :-1]
    with pytest.raises(ValueError, match=r"shapes|entries"):
        native.attention_gradient(*arrays, *of.settings, weights, None)
    others = (*arrays[:short], of.gradient, *arrays[short + 1 :])
    with pytest.raises(ValueError, match="no bias"):
        native.attention_gradient(*others, *of.settings, weights, draw(2, 9, 9))
