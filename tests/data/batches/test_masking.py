"""What is hidden: shares, whole words, and spans that can be put back, against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import Masking
from regard.data.batches.language_modelling import MaskingSymbols, corrupt_spans, corrupted_lengths, mask_tokens

MASK, END = 3, 0
PIECES = np.arange(10, 60)
SYMBOLS = MaskingSymbols(MASK, PIECES)
SENTINELS = tuple(range(100, 120))


def drawn(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.choice(PIECES, count), random.random(count) < 0.6, random.random(count) < 0.95


@pytest.mark.parametrize("whole_words", [False, True])
def test_the_shares_are_met(whole_words: bool) -> None:
    ids_T, starts_T, free_T = drawn(200_000)
    section = Masking(share=0.2, mask=0.7, random=0.2, whole_words=whole_words)
    read_T, hidden_T = mask_tokens(ids_T, starts_T, free_T, SYMBOLS, section, np.random.default_rng(1))
    assert abs(hidden_T[free_T].mean() - 0.2) < 0.01
    assert not hidden_T[~free_T].any()
    assert np.array_equal(read_T[~hidden_T], ids_T[~hidden_T])
    assert abs((read_T[hidden_T] == MASK).mean() - 0.7) < 0.01
    changed_T = hidden_T & (read_T != MASK) & (read_T != ids_T)
    assert abs(changed_T[hidden_T].mean() - 0.2 * (1 - 1 / len(PIECES))) < 0.01
    assert np.isin(read_T[changed_T], PIECES).all()


def words(starts_T: np.ndarray, free_T: np.ndarray) -> list[list[int]]:
    """The places of each word; what is not free stands alone and cuts."""
    found: list[list[int]] = []
    for place, (start, free) in enumerate(zip(starts_T, free_T, strict=True)):
        if start or not free or not found or not free_T[place - 1]:
            found.append([])
        found[-1].append(place)
    return found


def test_words_are_hidden_whole() -> None:
    ids_T, starts_T, free_T = drawn(3000)
    starts_T |= np.append(True, ~free_T[:-1])  # behind a symbol a word begins
    _, hidden_T = mask_tokens(ids_T, starts_T, free_T, SYMBOLS, Masking(share=0.3), np.random.default_rng(2))
    kinds = {frozenset(hidden_T[word].tolist()) for word in words(starts_T, free_T)}
    assert kinds == {frozenset([True]), frozenset([False])}
    _, apart_T = mask_tokens(
        ids_T, starts_T, free_T, SYMBOLS, Masking(share=0.3, whole_words=False), np.random.default_rng(2)
    )
    assert frozenset([True, False]) in {frozenset(apart_T[word].tolist()) for word in words(starts_T, free_T)}


def test_the_same_bits_hide_the_same_and_nothing_is_nothing() -> None:
    given_T = drawn(500)
    one, other = (mask_tokens(*given_T, SYMBOLS, Masking(), np.random.default_rng(4)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    empty = np.zeros(0, np.int64)
    read_T, hidden_T = mask_tokens(empty, empty > 0, empty > 0, SYMBOLS, Masking(), np.random.default_rng(4))
    assert len(read_T) == len(hidden_T) == 0


def restored(source: np.ndarray, target: np.ndarray) -> tuple[list[int], int]:
    """The text put together again from both sides, and its spans."""
    assert source[-1] == target[-1] == END
    spans: dict[int, list[int]] = {}
    for id in target[:-1].tolist():
        if id in SENTINELS:
            spans[id] = []
            current = spans[id]
        else:
            current.append(id)
    if spans:
        assert spans.pop(max(spans)) == []  # the closing one
    text: list[int] = []
    for id in source[:-1].tolist():
        text += spans.pop(id) if id in SENTINELS else [id]
    assert not spans
    return text, int(np.isin(source, SENTINELS).sum())


@given(
    st.integers(0, 400),
    st.floats(0.01, 0.9),
    st.floats(1.0, 10.0),
    st.integers(0, len(SENTINELS)),
    st.integers(0, 5),
)
def test_spans_can_be_put_back_and_lengths_are_known_before(length, share, span, sentinels, seed) -> None:
    section = Masking(share=share, span=span)
    text = np.random.default_rng(seed).choice(PIECES, length)
    source, target = corrupt_spans(text, SENTINELS[:sentinels], END, section, np.random.default_rng(seed))
    found, spans = restored(source, target)
    assert found == text.tolist()
    assert spans <= max(0, sentinels - 1)
    expected = corrupted_lengths(np.array([length, 7]), sentinels, section)
    assert (len(source), len(target)) == (expected[0][0], expected[1][0])
    if length >= 2 and sentinels >= 2:
        assert spans >= 1
        hidden = length + spans + 1 - len(source)
        assert hidden == min(max(round(length * share), 1), length - 1)
    if spans:
        assert [id for id in source.tolist() if id in SENTINELS] == list(SENTINELS[:spans])


def test_the_shares_of_t5() -> None:
    section, text = Masking(), np.random.default_rng(0).choice(PIECES, 400)
    many = tuple(range(100, 200))
    source, target = corrupt_spans(text, many, END, section, np.random.default_rng(0))
    assert len(source) == 400 - 60 + 20 + 1
    assert len(target) == 60 + 20 + 1 + 1
    assert target[-2] == many[20]


def test_every_place_is_hidden_about_as_often_but_the_first() -> None:
    section, counts = Masking(share=0.25, span=2.0), np.zeros(24)
    text = np.arange(24) + 200
    for seed in range(2000):
        source, _ = corrupt_spans(text, SENTINELS, END, section, np.random.default_rng(seed))
        counts += ~np.isin(text, source)
    assert counts[0] == 0
    assert counts.sum() == 2000 * 6
    assert counts[1:].min() > 2000 * 0.1
