"""What is hidden, and its batches: shares, whole words; pure functions of the position."""

from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import Masking, Recipe
from regard.data.batches.batch import Position
from regard.data.batches.language_modelling import (
    FramedWindows,
    MaskedExamples,
    MaskingSymbols,
    NextTokenExamples,
    PredictionBatch,
    PredictionExamples,
    Windows,
    mask_tokens,
)
from regard.data.corpora.documents import DocumentPart
from regard.data.prepare.encoders import DocumentEncoder
from regard.data.prepare.shards import Shards
from regard.data.prepare.windowing import Frame
from regard.text.tokenizers.tokenizer import learn
from tests.data.batches.memory_sides import shards

BEGIN, END, MASK = 2, 0, 3
PIECES = np.arange(30, 80)
RECIPE = Recipe(seed=3)
LENGTHS = [30, 3, 50, 9]
DOCUMENTS = [np.append(ids, END) for ids in np.split(np.arange(100, 192), np.cumsum(LENGTHS)[:-1])]
"""Tokens that count up from 100 through all documents, each with an end."""


def drawn(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.choice(PIECES, count), random.random(count) < 0.6, random.random(count) < 0.95


def hide(given_T: tuple[np.ndarray, ...], section: Masking, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return mask_tokens(*given_T, MaskingSymbols(MASK, PIECES), section, np.random.default_rng(seed))


@pytest.mark.parametrize("whole_words", [False, True])
def test_the_shares_are_met(whole_words: bool) -> None:
    ids_T, starts_T, free_T = drawn(200_000)
    section = Masking(share=0.2, mask=0.7, random=0.2, whole_words=whole_words)
    read_T, hidden_T = hide((ids_T, starts_T, free_T), section, 1)
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
    _, hidden_T = hide((ids_T, starts_T, free_T), Masking(share=0.3), 2)
    kinds = {frozenset(hidden_T[word].tolist()) for word in words(starts_T, free_T)}
    assert kinds == {frozenset([True]), frozenset([False])}
    _, apart_T = hide((ids_T, starts_T, free_T), Masking(share=0.3, whole_words=False), 2)
    assert frozenset([True, False]) in {frozenset(apart_T[word].tolist()) for word in words(starts_T, free_T)}


def test_the_same_bits_hide_the_same_and_nothing_is_nothing() -> None:
    given_T = drawn(500)
    one, other = (hide(given_T, Masking(), 4) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    empty = np.zeros(0, np.int64)
    read_T, hidden_T = hide((empty, empty > 0, empty > 0), Masking(), 4)
    assert len(read_T) == len(hidden_T) == 0


def next_words(folder: Path, seed: int | None = 1, tokens: int = 32) -> NextTokenExamples:
    return NextTokenExamples(Windows(shards(folder, DOCUMENTS), 8, seed), tokens, END)


def hidden_words(folder: Path, seed: int | None = 1, tokens: int = 32, share: float = 0.3) -> MaskedExamples:
    text = shards(folder, DOCUMENTS)
    starts = shards(folder, [np.arange(len(ids)) % 3 == 0 for ids in DOCUMENTS], 2, "labels")
    frame = Frame((BEGIN,), END, 8)
    symbols = MaskingSymbols(MASK, np.arange(900, 950))
    return MaskedExamples(
        FramedWindows(text, frame, seed), Windows(starts, frame.room, seed), tokens, symbols, Masking(share=share)
    )


def epoch(guessing: PredictionExamples, number: int = 0) -> list[PredictionBatch]:
    found = []
    for batch, after in guessing.feed(RECIPE, "data").iterate(Position(number)):
        found.append(batch)
        if after.epoch > number:
            return found
    raise AssertionError


def test_every_token_is_guessed_from_its_true_predecessor(tmp_path: Path) -> None:
    said = []
    for batch in epoch(next_words(tmp_path)):
        assert batch.room == 32
        assert batch.tokens == len(batch.labels_N)
        assert np.array_equal(batch.places_N, np.arange(batch.tokens))
        read = batch.text.ids_T[: batch.tokens]
        stream = np.concatenate(DOCUMENTS)
        before = dict(zip(stream.tolist(), [END, *stream[:-1].tolist()], strict=True))
        inside = batch.labels_N != END
        assert [before[id] for id in batch.labels_N[inside].tolist()] == read[inside].tolist()
        last_of = {int(n) for n in np.cumsum(LENGTHS) + 99}
        assert set(read[~inside].tolist()) <= last_of
        said += batch.labels_N.tolist()
    assert sorted(said) == sorted([*range(100, 192), *[END] * 4])


@pytest.mark.parametrize("made", [next_words, hidden_words])
def test_a_batch_is_a_pure_function_of_its_position(tmp_path: Path, made) -> None:
    feed = made(tmp_path).feed(RECIPE, "data")
    first = list(islice(feed.iterate(), 12))
    for place in (3, 7):
        again = next(feed.iterate(first[place - 1][1]))
        np.testing.assert_equal(asdict(again[0]), asdict(first[place][0]))
    for one, other in zip(first, made(tmp_path).feed(RECIPE, "data").iterate(), strict=False):
        np.testing.assert_equal(asdict(one[0]), asdict(other[0]))


def test_what_is_hidden_is_what_stood_there(tmp_path: Path) -> None:
    for number in range(3):
        for batch in epoch(hidden_words(tmp_path), number):
            truth = batch.text.ids_T.copy()
            truth[batch.places_N] = batch.labels_N
            for start, length in zip(batch.text.starts_B, batch.text.lengths_B[: batch.text.count], strict=False):
                inner = truth[start + 1 : start + length - 1]
                assert truth[start] == BEGIN
                assert truth[start + length - 1] == END
                words = inner[inner != END]
                assert np.array_equal(np.diff(words), np.ones(max(0, len(words) - 1)))
            assert not np.isin(batch.text.ids_T[: batch.tokens], [BEGIN])[batch.places_N].any()


def test_words_are_hidden_whole_wherever_a_window_cuts(tmp_path: Path) -> None:
    bounds = np.cumsum([0, *(length + 1 for length in LENGTHS)])
    stream = np.concatenate(DOCUMENTS)
    place_of = {int(id): place for place, id in enumerate(stream) if id}
    for number in range(4):
        for batch in epoch(hidden_words(tmp_path), number):
            hidden = set(batch.labels_N.tolist())
            truth = batch.text.ids_T.copy()
            truth[batch.places_N] = batch.labels_N
            for one, two in zip(truth[:-1].tolist(), truth[1:].tolist(), strict=True):
                if two == one + 1 and one >= 100:
                    document = int(np.searchsorted(bounds, place_of[two], "right")) - 1
                    if (place_of[two] - bounds[document]) % 3:  # it goes on with a word
                        assert (one in hidden) == (two in hidden)


def test_what_is_hidden_differs_between_epochs(tmp_path: Path) -> None:
    hidden = [{id for batch in epoch(hidden_words(tmp_path), n) for id in batch.labels_N.tolist()} for n in range(3)]
    assert hidden[0] != hidden[1] != hidden[2]


@pytest.mark.parametrize("made", [next_words, hidden_words])
def test_validation_is_the_same_at_every_size_of_batch(tmp_path: Path, made) -> None:
    found = []
    for tokens in (16, 32, 96):
        batches = made(tmp_path, None, tokens).some(5, 1 << 20)
        ids = np.concatenate([batch.text.ids_T[: batch.tokens] for batch in batches])
        labels = np.concatenate([batch.labels_N for batch in batches])
        begins = np.cumsum([0, *(batch.tokens for batch in batches)])
        places = np.concatenate([batch.places_N + b for batch, b in zip(batches, begins, strict=False)])
        found.append((ids.tolist(), labels.tolist(), places.tolist()))
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) == made(tmp_path, None).windows.tokens


def test_of_much_validation_text_evenly_spaced_windows_are_read(tmp_path: Path) -> None:
    guessing = next_words(tmp_path, None)
    batches = guessing.some(5, 40)
    tokens = sum(batch.tokens for batch in batches)
    assert 20 <= tokens <= 56
    labels = np.concatenate([batch.labels_N for batch in batches])
    assert labels[0] == 100
    assert labels.max() > 180


def test_word_starts_are_coded_beside_the_pieces() -> None:
    tokenizer = learn(["the cat sat on the mat again and again"] * 3, 300, symbols=("[CLS]", "[MASK]"))
    coding = DocumentEncoder(tokenizer, words=True)
    ((ids, starts),) = coding.encode([DocumentPart("the cat again")], "train")[0:1][0]
    assert starts.tolist() == tokenizer.word_starts(ids.tolist()).astype(int).tolist()
    assert starts.sum() == 3
    assert tokenizer.end not in ids
    assert coding.sizes("train") == (tokenizer.size, 2)


NOTHING = 99


def documents(folder: Path, lengths: list[int], file_tokens: int = 1 << 20, end: int | None = None) -> Shards:
    """Documents whose tokens count up through all of them, from 100; or each with an end."""
    each = np.split(np.arange(100, 100 + sum(lengths)), np.cumsum(lengths)[:-1])
    each = each if end is None else [np.append(ids[:-1], end) for ids in each]
    return shards(folder, each, 1 << 16, file_tokens=file_tokens)


def taken(windows: Windows | FramedWindows, epoch: int) -> list[list[int]]:
    """Every window of an epoch, read one by one."""
    found = []
    for number in range(windows.count):
        ids, lengths = windows.gather(epoch, np.array([number]))
        assert lengths.tolist() == [len(ids)] == windows.lengths(epoch, np.array([number])).tolist()
        found.append(ids.tolist())
    return found


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(1, 12), st.integers(0, 3), st.booleans())
def test_windows_of_an_epoch_hold_every_token_once(tmp_path_factory, lengths, length, epoch, fixed) -> None:
    folder = tmp_path_factory.mktemp("shards")
    windows = Windows(documents(folder, lengths), length, None if fixed else 3)
    found = taken(windows, epoch)
    assert sorted(id for ids in found for id in ids) == list(range(100, 100 + sum(lengths)))
    assert max(map(len, found)) == windows.longest or not fixed
    assert max(map(len, found)) <= length
    assert windows.tokens == sum(lengths)
    together, each = windows.gather(epoch, np.arange(windows.count))
    assert together.tolist() == [id for ids in found for id in ids]
    assert each.tolist() == list(map(len, found))
    edges = np.cumsum([0, *lengths]) + 100
    for ids in filter(None, found):  # no window reaches into two documents
        assert np.searchsorted(edges, ids[0], "right") == np.searchsorted(edges, ids[-1], "right")


def test_a_document_that_fits_is_one_window_and_a_longer_one_is_cut(tmp_path: Path) -> None:
    windows = Windows(documents(tmp_path, [3, 7]), 3, None)
    assert taken(windows, 0) == taken(windows, 1) == [[100, 101, 102], [103, 104, 105], [106, 107, 108], [109]]


def test_epochs_are_cut_at_other_places_and_a_seed_always_at_the_same(tmp_path: Path) -> None:
    made = documents(tmp_path, [100])
    firsts = [[ids[0] for ids in taken(Windows(made, 10, 4), epoch) if ids] for epoch in range(40)]
    assert len({tuple(one) for one in firsts}) > 5  # of 10, each as likely in every epoch
    assert taken(Windows(made, 10, 4), 2) == taken(Windows(made, 10, 4), 2)
    lengths = [len(ids) for ids in taken(Windows(made, 10, 4), 0)]
    assert set(lengths[1:-1]) == {10}  # all but the first and the last are full


@pytest.mark.parametrize("file_tokens", [1 << 20, 8])
@pytest.mark.parametrize("seed", [None, 3])
def test_the_token_before_a_window_is_its_true_predecessor(tmp_path: Path, file_tokens: int, seed) -> None:
    made = documents(tmp_path, [1, 7, 20, 2, 9], file_tokens)
    windows = Windows(made, 4, seed)
    for epoch in range(4):
        for number, ids in enumerate(taken(windows, epoch)):
            before = windows.before(epoch, np.array([number]), NOTHING).tolist()
            if ids:
                assert before == [NOTHING if ids[0] == 100 else ids[0] - 1]


def test_before_a_document_stands_the_end_of_the_one_before(tmp_path: Path) -> None:
    windows = Windows(documents(tmp_path, [3, 5], end=0), 2, None)
    assert windows.before(0, np.arange(windows.count), 0).tolist() == [0, 101, 0, 104, 106]


def test_framed_windows_stand_between_their_symbols(tmp_path: Path) -> None:
    frame = Frame((7, 8), 9, max_tokens=6)
    made = documents(tmp_path, [2, 7])
    windows = FramedWindows(made, frame, None)
    assert taken(windows, 0) == [
        [7, 8, 100, 101, 9],
        [7, 8, 102, 103, 104, 9],
        [7, 8, 105, 106, 107, 9],
        [7, 8, 108, 9],
    ]
    assert windows.longest == 6
    assert windows.tokens == 9 + 3 * windows.count
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
