"""Batches of text to be guessed: what is read and what must be said, pure functions of position and seed."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from regard.config import Masking, Recipe
from regard.data.batches.batch import Position
from regard.data.batches.document_windows import FramedWindows, Windows
from regard.data.batches.language_modelling import (
    MaskedExamples,
    MaskingSymbols,
    NextTokenExamples,
    PredictionBatch,
    PredictionExamples,
)
from regard.data.prepare.encoders import WordEncoder
from regard.data.prepare.shards import Shards, SideWriter
from regard.data.prepare.windowing import Frame
from regard.text.tokenizers.tokenizer import learn

RECIPE = Recipe(seed=3)
LENGTHS = [30, 3, 50, 9]
BEGIN, END, MASK = 2, 0, 3


def shards(folder: Path, name: str, sides: list[np.ndarray], pieces: int = 1000) -> Shards:
    writer = SideWriter(folder, name, pieces)
    writer.add(sides)
    return Shards(folder, writer.close()[0])


def documents(folder: Path) -> Shards:
    """Tokens that count up from 100 through all documents, each with an end."""
    ids = np.split(np.arange(100, 100 + sum(LENGTHS)), np.cumsum(LENGTHS)[:-1])
    return shards(folder, "text", [np.append(one, END) for one in ids])


def next_words(folder: Path, seed: int | None = 1, tokens: int = 32) -> NextTokenExamples:
    return NextTokenExamples(Windows(documents(folder), 8, seed), tokens, END)


def hidden_words(folder: Path, seed: int | None = 1, tokens: int = 32, share: float = 0.3) -> MaskedExamples:
    text = documents(folder)
    starts = shards(folder, "labels", [np.arange(text.lengths(0, np.array([n]))[0]) % 3 == 0 for n in range(4)], 2)
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


def same(one: PredictionBatch, other: PredictionBatch) -> bool:
    pairs = zip(
        (one.text.ids_T, one.text.lengths_B, one.places_N, one.labels_N),
        (other.text.ids_T, other.text.lengths_B, other.places_N, other.labels_N),
        strict=True,
    )
    return all(np.array_equal(a, b) for a, b in pairs)


def test_every_token_is_guessed_from_its_true_predecessor(tmp_path: Path) -> None:
    said = []
    for batch in epoch(next_words(tmp_path)):
        assert batch.room == 32
        assert batch.tokens == len(batch.labels_N)
        assert np.array_equal(batch.places_N, np.arange(batch.tokens))
        read = batch.text.ids_T[: batch.tokens]
        stream = np.concatenate([np.append(ids, END) for ids in np.split(np.arange(100, 192), np.cumsum(LENGTHS)[:-1])])
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
        assert same(again[0], first[place][0])
    behind = list(islice(made(tmp_path).feed(RECIPE, "data").iterate(), 12))
    assert all(same(a[0], b[0]) for a, b in zip(first, behind, strict=True))


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
    stream = np.concatenate([np.append(ids, END) for ids in np.split(np.arange(100, 192), np.cumsum(LENGTHS)[:-1])])
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
    coding = WordEncoder(tokenizer)
    ((ids, starts),) = coding.encode([("the cat again", "")])[0:1][0]
    assert starts.tolist() == tokenizer.word_starts(ids.tolist()).astype(int).tolist()
    assert starts.sum() == 3
    assert tokenizer.end not in ids
    assert coding.sizes == (tokenizer.size, 2)
