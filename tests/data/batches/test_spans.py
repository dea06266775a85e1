"""Running text as pairs: spans that can be put back, lengths that are known before, both sides drawn alike."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.config import TextToTextSection
from regard.data.batches.language_modelling import Windows
from regard.data.batches.spans import SpanWindows, corrupt_spans, corrupted_lengths
from tests.data.batches.memory_sides import shards

END = 0
PIECES = np.arange(30, 80)
SENTINELS = tuple(range(10, 30))
TOKENIZER: Any = SimpleNamespace(sentinels=SENTINELS, end=END)


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
    st.integers(0, 400), st.floats(0.01, 0.9), st.floats(1.0, 10.0), st.integers(0, len(SENTINELS)), st.integers(0, 5)
)
def test_spans_can_be_put_back_and_lengths_are_known_before(length, share, span, sentinels, seed) -> None:
    section = TextToTextSection(span_share=share, span_length=span)
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
    section, text = TextToTextSection(), np.random.default_rng(0).choice(PIECES, 400)
    many = tuple(range(100, 200))
    source, target = corrupt_spans(text, many, END, section, np.random.default_rng(0))
    assert len(source) == 400 - 60 + 20 + 1
    assert len(target) == 60 + 20 + 1 + 1
    assert target[-2] == many[20]


def test_every_place_is_hidden_about_as_often_but_the_first() -> None:
    section, counts = TextToTextSection(span_share=0.25, span_length=2.0), np.zeros(24)
    text = np.arange(24) + 200
    for seed in range(2000):
        source, _ = corrupt_spans(text, SENTINELS, END, section, np.random.default_rng(seed))
        counts += ~np.isin(text, source)
    assert counts[0] == 0
    assert counts.sum() == 2000 * 6
    assert counts[1:].min() > 2000 * 0.1


def sides(folder: Path, seed: int | None = 1, most: int | None = None) -> list[SpanWindows]:
    """Both sides of windows of documents whose tokens count up from 100 through all of them."""
    bounds = [100, 170, 171, 204, 206]
    text = shards(folder, [np.arange(first, last) for first, last in itertools.pairwise(bounds)])
    given = TOKENIZER, TextToTextSection(span_share=0.3), 5, most
    return [SpanWindows(Windows(text, 16, seed), target, *given) for target in (False, True)]


def rows(side: SpanWindows, epoch: int) -> list[np.ndarray]:
    """Every row of a side, gathered together; each alone is the same."""
    every = np.arange(side.count)
    ids, lengths_B = side.gather(epoch, every)
    assert lengths_B.tolist() == side.lengths(epoch, every).tolist()
    found = np.split(ids, lengths_B.cumsum()[:-1])
    for number, row in enumerate(found):
        assert side.gather(epoch, np.array([number]))[0].tolist() == row.tolist()
        assert len(row) <= side.longest
    return found


def test_an_epoch_holds_every_token_once_and_both_sides_fit(tmp_path: Path) -> None:
    source, target = sides(tmp_path)
    hidden = []
    for epoch in range(3):
        both = list(zip(rows(source, epoch), rows(target, epoch), strict=True))
        said = [id for pair in both for id in restored(*pair)[0]]
        assert sorted(said) == list(range(100, 206))
        hidden.append({id for _, row in both for id in row.tolist() if id >= 100})
    assert hidden[0] != hidden[1] != hidden[2]


def test_without_a_seed_windows_are_always_the_same_and_few_are_evenly_chosen(tmp_path: Path) -> None:
    one, other = (sides(tmp_path, None)[0] for _ in range(2))
    assert [row.tolist() for row in rows(one, 0)] == [row.tolist() for row in rows(other, 0)]
    assert one.tokens == sum(map(len, rows(one, 0)))
    every = list(zip(*(rows(side, 0) for side in sides(tmp_path, None)), strict=True))
    some = list(zip(*(rows(side, 0) for side in sides(tmp_path, None, 4)), strict=True))
    assert len(some) == 4
    places = [next(n for n, pair in enumerate(every) if pair[0].tolist() == source.tolist()) for source, _ in some]
    assert (places[0], places[-1]) == (0, len(every) - 1)
    assert sides(tmp_path, None, 999)[0].count == len(every)


@given(st.floats(0.01, 0.9), st.floats(1.0, 10.0), st.integers(0, 30))
def test_longer_texts_have_no_shorter_sides(share: float, span: float, sentinels: int) -> None:
    section = TextToTextSection(span_share=share, span_length=span)
    for side in corrupted_lengths(np.arange(300), sentinels, section):
        assert (np.diff(side) >= 0).all()
