"""Kernels of drawn shapes, lengths and values: the right numbers or a ValueError, and nothing written anywhere else."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from regard.system.kernels import ACTIVATIONS
from regard.system.kernels.packing import pack
from tests.system.kernels.arrays import native

pytestmark = pytest.mark.usefixtures("instruction_set")
anything = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
GUARD = np.float32(12345.0)
"""What stands around an array and must still stand there."""
EXTREME = (0.0, -0.0, 1e-42, -1e-38, 1.0, -1.0, 30.0, -30.0, 1e18, -1e18, 3e38, -3e38, np.inf, -np.inf, np.nan)
counts = st.integers(0, 20)
sizes = st.integers(1, 70)
seeds = st.integers(0, 2**32 - 1)


def numbers(seed: int, *shape: int, extreme: bool = False) -> NDArray[np.float32]:
    """Drawn numbers, some of them extreme ones."""
    random = np.random.default_rng(seed)
    found = random.standard_normal(shape).astype(np.float32)
    if extreme:
        places = random.random(shape) < 0.1
        found[places] = random.choice(np.float32(EXTREME), int(places.sum()))
    return found


class Guarded:
    """An array with numbers around it on all sides."""

    def __init__(self, rows: int, columns: int) -> None:
        self._room = np.full((rows + 4, columns + 38), GUARD, np.float32)
        self.array = self._room[2 : rows + 2, 19 : columns + 19]

    def kept(self) -> bool:
        """Whether all of these are as they were."""
        inside = self.array.copy()
        self.array[:] = GUARD
        kept = bool((self._room == GUARD).all())
        self.array[:] = inside
        return kept


def same_bits(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    """Equal, no number being equal to none."""
    return bool(np.array_equal(one, other, equal_nan=True))


@anything
@given(counts, sizes, sizes, seeds, st.sampled_from(sorted(ACTIVATIONS)), st.booleans())
def test_product(rows: int, inner: int, columns: int, seed: int, activation: str, extreme: bool) -> None:
    x, weight = numbers(seed, rows, inner, extreme=extreme), numbers(seed + 1, columns, inner)
    packed, out = pack(weight, numbers(seed + 2, columns)), Guarded(rows, columns)
    native.product(x, packed, out.array, ACTIVATIONS[activation])
    assert out.kept()
    for row in range(rows):
        alone = Guarded(1, columns)
        native.product(x[row : row + 1], packed, alone.array, ACTIVATIONS[activation])
        assert same_bits(alone.array[0], out.array[row])
    if activation == "none" and not extreme:
        expected = x.astype(np.float64) @ weight.T.astype(np.float64) + numbers(seed + 2, columns)
        np.testing.assert_allclose(out.array, expected, atol=1e-4)


@anything
@given(st.integers(1, 20), sizes, sizes, seeds, st.integers(1, 6), st.booleans())
def test_vocabulary(rows: int, inner: int, pieces: int, seed: int, k: int, extreme: bool) -> None:
    hidden, weight = numbers(seed, rows, inner, extreme=extreme), numbers(seed + 1, pieces, inner)
    ids, log_sum = np.empty((rows, k), np.int32), np.empty(rows)
    room = np.full((rows + 2, k), GUARD)  # the scores lie in one piece
    score = room[1:-1]
    native.vocabulary(hidden, pack(weight), pieces, None, ids, score, log_sum)
    assert (room[[0, -1]] == GUARD).all()
    assert ((ids >= -1) & (ids < pieces)).all()
    if not extreme:
        every = hidden.astype(np.float64) @ weight.T.astype(np.float64)
        np.testing.assert_allclose(score[:, 0], every.max(1, initial=-np.inf), atol=1e-4)
        np.testing.assert_allclose(log_sum, np.log(np.exp(every).sum(1)), atol=1e-4)


@anything
@given(counts, sizes, seeds, st.sampled_from([0, 1, 2]), st.booleans(), st.booleans())
def test_norm(rows: int, size: int, seed: int, kind: int, added: bool, extreme: bool) -> None:
    x, gain, bias = numbers(seed, rows, size, extreme=extreme), numbers(seed + 1, size), numbers(seed + 2, size)
    y, out, sum_ = (numbers(seed + 3, rows, size) if added else None), Guarded(rows, size), Guarded(rows, size)
    native.norm(x, y, sum_.array if added else None, out.array, gain, bias, kind, 1, 1e-5)
    assert out.kept()
    assert sum_.kept()
    if added:
        with np.errstate(all="ignore"):
            assert same_bits(sum_.array, x + y)
    for row in np.flatnonzero(~np.isfinite(x).all(1)):
        assert np.isnan(out.array[row]).any() or kind == 2


@pytest.mark.one_of(3)
@anything
@given(st.data(), st.integers(1, 4), st.integers(1, 40), st.integers(1, 40), seeds, st.booleans(), st.booleans())
def test_attention(
    data: st.DataObject, heads: int, key_size: int, value_size: int, seed: int, scattered: bool, extreme: bool
) -> None:
    """Lengths and places are looked at before a key is: a key that is not there is refused."""
    keys, rows = data.draw(st.integers(0, 30)), data.draw(st.integers(0, 5))
    wild = st.integers(-3, keys + 3) | st.sampled_from([-(2**31), 2**31 - 1])
    length = np.array(data.draw(st.lists(wild, min_size=rows, max_size=rows)), np.int32)
    first = np.array(data.draw(st.lists(wild, min_size=rows, max_size=rows)), np.int32)
    table = None
    if scattered:
        flat = data.draw(st.lists(wild, min_size=rows * keys, max_size=rows * keys))
        table = np.array(flat, np.int32).reshape(rows, keys)
    query = numbers(seed, rows, heads * key_size, extreme=extreme)
    key, value = numbers(seed + 1, keys, heads * key_size), numbers(seed + 2, keys, heads * value_size)
    context = Guarded(rows, heads * value_size)
    try:
        native.attention(query, key, value, context.array, heads, 0.2, length, first, table, None, None)
    except ValueError:
        assert not _all_there(keys, length, first, table)
    else:
        assert _all_there(keys, length, first, table)
        assert (context.array[length == 0] == 0).all()
        assert extreme or np.isfinite(context.array).all()
    assert context.kept()


def _all_there(
    keys: int, length_T: NDArray[np.int32], first_T: NDArray[np.int32], places_TS: NDArray[np.int32] | None
) -> bool:
    """Whether every key that is asked for is one."""
    for row, length in enumerate(length_T.tolist()):
        if length < 0 or (places_TS is not None and length > places_TS.shape[1]):
            return False
        places = (
            range(int(first_T[row]), int(first_T[row]) + length)
            if places_TS is None
            else places_TS[row, :length].tolist()
        )
        if length and not all(0 <= place < keys for place in (places[0], places[-1], *places[:keys])):
            return False
    return True


@anything
@given(st.tuples(*[counts] * 6), st.integers(-2, 7))
def test_arrays_that_do_not_fit_are_refused(drawn: tuple[int, ...], activation: int) -> None:
    """Shapes drawn apart from each other seldom fit; those that do are computed."""
    rows, inner, inner_too, columns, rows_out, columns_out = drawn
    packed = pack(numbers(1, columns + 1, inner_too + 1))
    out = Guarded(rows_out, columns_out)
    fits = inner == inner_too + 1 and rows == rows_out and 0 <= activation < len(ACTIVATIONS)
    fits = fits and -(-max(columns_out, 1) // packed.shape[2]) == len(packed)
    try:
        native.product(numbers(2, rows, inner), packed, out.array, activation)
        done = True
    except ValueError:
        done = False
    assert out.kept()
    assert not done or fits or columns_out == 0 or rows == 0


@pytest.mark.parametrize("bits", [0x7FC00000, 0x7FC00001, 0x7F800001, 0x7FFFFFFF, 0xFFC00000, 0xFFFFFFFF])
def test_what_is_no_number_stays_none(bits: int) -> None:
    """Whatever its other bits are: a model with such weights must not answer as if nothing were wrong."""
    nan = np.array([bits], np.uint32).view(np.float32)[0]
    key, value, context = numbers(1, 5, 8), numbers(2, 5, 8), np.zeros((1, 8), np.float32)
    key[3, 2] = nan
    native.attention(numbers(3, 1, 8), key, value, context, 1, 0.3, np.int32([5]), np.int32([0]), None, None, None)
    assert np.isnan(context).all()
    weight, hidden = numbers(4, 40, 8), numbers(5, 1, 8)
    weight[17, 3] = nan
    log_sum = np.zeros(1)
    native.vocabulary(hidden, pack(weight), 40, None, np.zeros((1, 2), np.int32), np.zeros((1, 2), np.float32), log_sum)
    assert np.isnan(log_sum).all()
