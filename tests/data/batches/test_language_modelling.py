"""What is hidden, and its batches: shares, whole words; pure functions of the position.

Running text as pairs: spans that can be put back, lengths that are known before, both sides drawn alike.
"""

import itertools
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import Masking, Recipe, TextToTextSection
from regard.data.batches import language_modelling as module
from regard.data.batches.batch import Position
from regard.data.batches.language_modelling import FramedWindows, MaskingSymbols, SpanWindows, Windows
from regard.data.prepare.shards import Shards, SideWriter
from regard.data.prepare.windowing import Frame

BEGIN, END, MASK = 2, 0, 3
PIECES = np.arange(30, 80)
SENTINELS = tuple(range(10, 30))
RECIPE = Recipe(seed=3)
LENGTHS = [30, 3, 50, 9]
DOCUMENTS = [np.append(ids, END) for ids in np.split(np.arange(100, 192), np.cumsum(LENGTHS)[:-1])]
"""Tokens that count up from 100 through all documents, each with an end."""
STREAM = np.concatenate(DOCUMENTS)


def shards(folder: Path, sentences, pieces: int = 1000, name: str = "text", file_tokens: int = 1 << 20) -> Shards:
    """Sentences written to a folder."""
    writer = SideWriter(folder, name, pieces, file_tokens)
    writer.add(sentences)
    return Shards(folder, writer.close()[0])


def drawn(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.choice(PIECES, count), random.random(count) < 0.6, random.random(count) < 0.95


def hide(given_T: tuple[np.ndarray, ...], section: Masking, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return module.mask_tokens(*given_T, MaskingSymbols(MASK, PIECES), section, np.random.default_rng(seed))


@pytest.mark.parametrize("whole_words", [False, True])
def test_the_shares_are_met(whole_words: bool) -> None:
    ids_T, starts_T, free_T = drawn(200_000)
    section = Masking(share=0.2, mask=0.7, random=0.2, whole_words=whole_words)
    read_T, hidden_T = hide((ids_T, starts_T, free_T), section, 1)
    changed_T = hidden_T & (read_T != MASK) & (read_T != ids_T)
    shares = hidden_T[free_T].mean(), (read_T[hidden_T] == MASK).mean(), changed_T[hidden_T].mean()
    assert shares == pytest.approx((0.2, 0.7, 0.2 * (1 - 1 / len(PIECES))), abs=0.01)
    assert not hidden_T[~free_T].any()
    inside_T = free_T[1:] & free_T[:-1] & ~starts_T[1:]  # goes on with the word of the token before
    assert np.array_equal(hidden_T[1:][inside_T], hidden_T[:-1][inside_T]) == whole_words
    assert np.array_equal(read_T[~hidden_T], ids_T[~hidden_T])
    assert np.isin(read_T[changed_T], PIECES).all()


def test_the_same_bits_hide_the_same_and_nothing_is_nothing() -> None:
    one, other = (hide(drawn(500), Masking(), 4) for _ in range(2))
    np.testing.assert_equal(one, other)
    empty = np.zeros(0, np.int64)
    assert [len(found) for found in hide((empty, empty > 0, empty > 0), Masking(), 4)] == [0, 0]


def next_words(folder: Path, seed: int | None = 1, tokens: int = 32) -> module.NextTokenExamples:
    return module.NextTokenExamples(Windows(shards(folder, DOCUMENTS), 8, seed), tokens, END)


def hidden_words(folder: Path, seed: int | None = 1, tokens: int = 32) -> module.MaskedExamples:
    text, frame = shards(folder, DOCUMENTS), Frame((BEGIN,), END, 8)
    starts = Windows(shards(folder, [np.arange(len(ids)) % 3 == 0 for ids in DOCUMENTS], 2, "labels"), frame.room, seed)
    symbols = MaskingSymbols(MASK, np.arange(900, 950))
    return module.MaskedExamples(FramedWindows(text, frame, seed), starts, tokens, symbols, Masking(share=0.3))


def epoch(guessing: module.PredictionExamples, number: int = 0) -> list[module.PredictionBatch]:
    found = []
    for batch, after in guessing.feed(RECIPE, "data").iterate(Position(number)):
        found.append(batch)
        if after.epoch > number:
            return found
    raise AssertionError


def truth(batch: module.PredictionBatch) -> np.ndarray:
    """What stood there before something was hidden."""
    ids_T = batch.text.ids_T.copy()
    ids_T[batch.places_N] = batch.labels_N
    return ids_T


def test_every_token_is_guessed_from_its_true_predecessor(tmp_path: Path) -> None:
    said = []
    before = dict(zip(STREAM.tolist(), [END, *STREAM[:-1].tolist()], strict=True))
    for batch in epoch(next_words(tmp_path)):
        assert (batch.room, batch.tokens) == (32, len(batch.labels_N))
        assert np.array_equal(batch.places_N, np.arange(batch.tokens))
        read, inside = batch.text.ids_T[: batch.tokens], batch.labels_N != END
        assert [before[id] for id in batch.labels_N[inside].tolist()] == read[inside].tolist()
        assert set(read[~inside].tolist()) <= {int(n) for n in np.cumsum(LENGTHS) + 99}
        said += batch.labels_N.tolist()
    assert sorted(said) == sorted([*range(100, 192), *[END] * 4])


@pytest.mark.parametrize("made", [next_words, hidden_words])
def test_a_batch_is_a_pure_function_of_its_position(tmp_path: Path, made) -> None:
    feed = made(tmp_path).feed(RECIPE, "data")
    first = list(itertools.islice(feed.iterate(), 12))
    for place in (3, 7):
        again = next(feed.iterate(first[place - 1][1]))
        np.testing.assert_equal(asdict(again[0]), asdict(first[place][0]))
    for one, other in zip(first, made(tmp_path).feed(RECIPE, "data").iterate(), strict=False):
        np.testing.assert_equal(asdict(one[0]), asdict(other[0]))


def test_what_is_hidden_is_what_stood_there_whole_words_wherever_a_window_cuts(tmp_path: Path) -> None:
    bounds = np.cumsum([0, *(length + 1 for length in LENGTHS)])
    place_of = {int(id): place for place, id in enumerate(STREAM) if id}
    labels = list[set[int]]()
    for number in range(4):
        batches = epoch(hidden_words(tmp_path), number)
        labels.append({id for batch in batches for id in batch.labels_N.tolist()})
        for batch in batches:
            hidden, true = set(batch.labels_N.tolist()), truth(batch)
            assert not np.isin(batch.text.ids_T[: batch.tokens], [BEGIN])[batch.places_N].any()
            for start, length in zip(batch.text.starts_B, batch.text.lengths_B[: batch.text.count], strict=False):
                inner = true[start + 1 : start + length - 1]
                assert (true[start], true[start + length - 1]) == (BEGIN, END)
                assert set(np.diff(inner[inner != END]).tolist()) <= {1}
            for one, two in itertools.pairwise(true.tolist()):
                if two == one + 1 and one >= 100:
                    document = int(np.searchsorted(bounds, place_of[two], "right")) - 1
                    if (place_of[two] - bounds[document]) % 3:  # it goes on with a word
                        assert (one in hidden) == (two in hidden)
    assert labels[0] != labels[1] != labels[2]


@pytest.mark.parametrize("made", [next_words, hidden_words])
def test_validation_is_the_same_at_every_size_of_batch(tmp_path: Path, made) -> None:
    found = []
    for tokens in (16, 32, 96):
        batches = made(tmp_path, None, tokens).some(5, 1 << 20)
        begins = np.cumsum([0, *(batch.tokens for batch in batches)])
        ids = [id for batch in batches for id in batch.text.ids_T[: batch.tokens].tolist()]
        labels = [id for batch in batches for id in batch.labels_N.tolist()]
        places = [n for batch, begin in zip(batches, begins, strict=False) for n in (batch.places_N + begin).tolist()]
        found.append((ids, labels, places))
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) == made(tmp_path, None).windows.tokens


def test_of_much_validation_text_evenly_spaced_windows_are_read(tmp_path: Path) -> None:
    batches = next_words(tmp_path, None).some(5, 40)
    assert 20 <= sum(batch.tokens for batch in batches) <= 56
    labels = np.concatenate([batch.labels_N for batch in batches])
    assert labels[0] == 100
    assert labels.max() > 180


def documents(folder: Path, lengths: list[int], file_tokens: int = 1 << 20, end: int | None = None) -> Shards:
    """Documents whose tokens count up through all of them, from 100; or each with an end."""
    each = np.split(np.arange(100, 100 + sum(lengths)), np.cumsum(lengths)[:-1])
    each = each if end is None else [np.append(ids[:-1], end) for ids in each]
    return shards(folder, each, 1 << 16, file_tokens=file_tokens)


def taken(windows: Windows | FramedWindows | SpanWindows, epoch: int) -> list[list[int]]:
    """Every window of an epoch, gathered together; each alone is the same."""
    every = np.arange(windows.count)
    ids, lengths_B = windows.gather(epoch, every)
    assert lengths_B.tolist() == windows.lengths(epoch, every).tolist()
    found = [row.tolist() for row in np.split(ids, lengths_B.cumsum()[:-1])]
    for number, row in enumerate(found):
        alone, length = windows.gather(epoch, np.array([number]))
        assert (alone.tolist(), length.tolist()) == (row, [len(row)])
        assert len(row) <= windows.longest
    return found


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(1, 12), st.integers(0, 3), st.booleans())
def test_windows_of_an_epoch_hold_every_token_once(tmp_path_factory, lengths, length, epoch, fixed) -> None:
    folder = tmp_path_factory.mktemp("shards")
    windows = Windows(documents(folder, lengths), length, None if fixed else 3)
    found = taken(windows, epoch)
    assert sorted(id for ids in found for id in ids) == list(range(100, 100 + sum(lengths)))
    assert max(map(len, found)) == windows.longest or not fixed
    assert windows.longest <= length
    assert windows.tokens == sum(lengths)
    edges = np.cumsum([0, *lengths]) + 100
    for ids in filter(None, found):  # no window reaches into two documents
        assert np.searchsorted(edges, ids[0], "right") == np.searchsorted(edges, ids[-1], "right")


def test_epochs_are_cut_at_other_places_and_a_seed_always_at_the_same(tmp_path: Path) -> None:
    made = documents(tmp_path, [100])
    every = [taken(Windows(made, 10, 4), epoch) for epoch in range(40)]
    assert len({tuple(ids[0] for ids in one if ids) for one in every}) > 5  # of 10, each as likely in every epoch
    assert taken(Windows(made, 10, 4), 2) == every[2]
    assert {len(ids) for ids in every[0][1:-1]} == {10}  # all but the first and the last are full


@pytest.mark.parametrize("file_tokens", [1 << 20, 8])
@pytest.mark.parametrize("seed", [None, 3])
def test_the_token_before_a_window_is_its_true_predecessor(tmp_path: Path, file_tokens: int, seed) -> None:
    windows = Windows(documents(tmp_path, [1, 7, 20, 2, 9], file_tokens), 4, seed)
    for epoch in range(4):
        for number, ids in enumerate(taken(windows, epoch)):
            if ids:
                assert windows.before(epoch, np.array([number]), 99).tolist() == [99 if ids[0] == 100 else ids[0] - 1]
    ended = Windows(documents(tmp_path, [3, 5], end=0), 2, None)  # before a document stands the end of the one before
    assert ended.before(0, np.arange(ended.count), 0).tolist() == [0, 101, 0, 104, 106]


def test_framed_windows_stand_between_their_symbols(tmp_path: Path) -> None:
    windows = FramedWindows(documents(tmp_path, [2, 7]), Frame((7, 8), 9, max_tokens=6), None)
    inner = [[100, 101], [102, 103, 104], [105, 106, 107], [108]]
    assert taken(windows, 0) == [[7, 8, *ids, 9] for ids in inner]
    assert (windows.longest, windows.tokens) == (6, 9 + 3 * windows.count)
    ids, lengths_B = windows.gather(0, np.arange(4))
    assert np.array_equal(windows.inner(lengths_B), ids >= 100)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(3, 9), st.integers(0, 3))
def test_framed_windows_hold_the_plain_ones(tmp_path_factory, lengths, max_tokens, epoch) -> None:
    made = documents(tmp_path_factory.mktemp("shards"), lengths)
    frame = Frame((7,), 9, max_tokens)
    framed, plain = FramedWindows(made, frame, 5), Windows(made, frame.room, 5)
    every = np.arange(framed.count)
    ids, lengths_B = framed.gather(epoch, every)
    assert ids[framed.inner(lengths_B)].tolist() == plain.gather(epoch, every)[0].tolist()
    assert framed.tokens == len(ids)


def restored(source: list[int], target: list[int]) -> tuple[list[int], int]:
    """The text put together again from both sides, and its spans."""
    assert source[-1] == target[-1] == END
    spans: dict[int, list[int]] = {}
    for id in target[:-1]:
        if id in SENTINELS:
            current = spans[id] = []
        else:
            current.append(id)
    if spans:
        assert spans.pop(max(spans)) == []  # the closing one
    text: list[int] = []
    for id in source[:-1]:
        text += spans.pop(id) if id in SENTINELS else [id]
    assert not spans
    return text, sum(id in SENTINELS for id in source)


def corrupt(text: np.ndarray, sentinels: tuple[int, ...], section: TextToTextSection, seed: int) -> list[list[int]]:
    return [one.tolist() for one in module.corrupt_spans(text, sentinels, END, section, np.random.default_rng(seed))]


@given(
    st.integers(0, 400), st.floats(0.01, 0.9), st.floats(1.0, 10.0), st.integers(0, len(SENTINELS)), st.integers(0, 5)
)
def test_spans_can_be_put_back_and_lengths_are_known_before(length, share, span, sentinels, seed) -> None:
    section = TextToTextSection(span_share=share, span_length=span)
    text = np.random.default_rng(seed).choice(PIECES, length)
    source, target = corrupt(text, SENTINELS[:sentinels], section, seed)
    found, spans = restored(source, target)
    assert found == text.tolist()
    assert spans <= max(0, sentinels - 1)
    lengths = module.corrupted_lengths(np.arange(401), sentinels, section)
    assert (len(source), len(target)) == (lengths[0][length], lengths[1][length])
    assert all((np.diff(side) >= 0).all() for side in lengths)  # longer texts have no shorter sides
    if length >= 2 and sentinels >= 2:
        assert spans >= 1
        assert length + spans + 1 - len(source) == min(max(round(length * share), 1), length - 1)
    if spans:
        assert [id for id in source if id in SENTINELS] == list(SENTINELS[:spans])


def test_the_shares_of_t5() -> None:
    text, many = np.random.default_rng(0).choice(PIECES, 400), tuple(range(100, 200))
    source, target = corrupt(text, many, TextToTextSection(), 0)
    assert (len(source), len(target), target[-2]) == (400 - 60 + 20 + 1, 60 + 20 + 1 + 1, many[20])


def test_every_place_is_hidden_about_as_often_but_the_first() -> None:
    section, counts, text = TextToTextSection(span_share=0.25, span_length=2.0), np.zeros(24), np.arange(24) + 200
    for seed in range(2000):
        counts += ~np.isin(text, corrupt(text, SENTINELS, section, seed)[0])
    assert (counts[0], counts.sum()) == (0, 2000 * 6)
    assert counts[1:].min() > 2000 * 0.1


def sides(folder: Path, seed: int | None = 1, most: int | None = None) -> list[SpanWindows]:
    """Both sides of windows of documents whose tokens count up from 100 through all of them."""
    text, tokenizer = documents(folder, [70, 1, 33, 2]), SimpleNamespace(sentinels=SENTINELS, end=END)
    given: Any = tokenizer, TextToTextSection(span_share=0.3), 5, most
    return [SpanWindows(Windows(text, 16, seed), target, *given) for target in (False, True)]


def test_an_epoch_holds_every_token_once_and_both_sides_fit(tmp_path: Path) -> None:
    hidden = []
    for epoch in range(3):
        both = list(zip(*(taken(side, epoch) for side in sides(tmp_path)), strict=True))
        assert sorted(id for pair in both for id in restored(*pair)[0]) == list(range(100, 206))
        hidden.append({id for _, row in both for id in row if id >= 100})
    assert hidden[0] != hidden[1] != hidden[2]


def test_without_a_seed_windows_are_always_the_same_and_few_are_evenly_chosen(tmp_path: Path) -> None:
    every, again, some = ([taken(side, 0) for side in sides(tmp_path, None, most)] for most in (None, 999, 4))
    assert every == again
    assert sides(tmp_path, None)[0].tokens == sum(map(len, every[0]))
    assert [len(side) for side in some] == [4, 4]
    pairs = list(zip(*every, strict=True))
    places = [pairs.index(pair) for pair in zip(*some, strict=True)]
    assert (places[0], places[-1]) == (0, len(pairs) - 1)
