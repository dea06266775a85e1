"""Words drawn anew in every epoch are the same text, and each mark stays with its word."""

import numpy as np
import pytest

from regard.data.batches.batch import pack_sources
from regard.data.batches.texts import WordMarks
from regard.data.prepare.bpe_dropout import (
    Ragged,
    SegmentationSampler,
    SegmentedMarks,
    SegmentedShards,
    Segmenter,
    segment_tagged,
)
from regard.data.prepare.encoders import TagEncoder
from regard.data.prepare.windowing import Frame
from regard.text.tags import TaggedWords, places_of
from regard.text.tokenizers.tokenizer import Tokenizer, learn

TEXTS = ["The walking fox wasn't talking, walked and talked.", "Talking foxes, walking foxes — ünder way!", "x"]
ROOM = 30
CODED = tuple[list[np.ndarray], list[np.ndarray]]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(TEXTS * 5, 320, symbols=("[CLS]", "[MASK]"))


@pytest.fixture(scope="module")
def encoded(tokenizer: Tokenizer) -> CODED:
    coding = TagEncoder(tokenizer, Frame.of(tokenizer, ROOM, 4), "none", [str(number) for number in range(30)])
    words = [TaggedWords(text, tuple(places_of(text))) for text in [*TEXTS, " ".join(TEXTS)]]
    words = [TaggedWords(one.text, one.places, tuple(map(str, range(len(one.places))))) for one in words]
    windows = [window for one in coding.encode(words, "train") for window in one]
    return [ids for ids, _ in windows], [marks for _, marks in windows]


def made(
    tokenizer: Tokenizer, encoded: CODED, dropout: float = 0.3, max_tokens: int = 60, seed: int = 1
) -> tuple[SegmentedShards, SegmentedMarks]:
    draws = SegmentationSampler(tokenizer, Segmenter(tokenizer, dropout, seed), 8)
    return segment_tagged(Ragged(encoded[0]), Ragged(encoded[1]), draws, seed, max_tokens)


def words_of(ids: np.ndarray, marks: np.ndarray, tokenizer: Tokenizer) -> list[tuple[str, int]]:
    found = WordMarks.of(pack_sources([ids]), marks)
    ends = found.starts_R + found.lengths_R
    parts = [tokenizer.decode(ids[begin:end].tolist()) for begin, end in zip(found.starts_R, ends, strict=True)]
    return list(zip(parts, found.tags_R.tolist(), strict=True))


def split(side, epoch: int) -> list[np.ndarray]:
    ids, lengths = side.gather(epoch, np.arange(side.count))
    assert lengths.tolist() == side.lengths(epoch, np.arange(side.count)).tolist()
    return np.split(ids, lengths.cumsum()[:-1])


def test_text_words_and_marks_stay(tokenizer: Tokenizer, encoded: CODED) -> None:
    text, text_marks = made(tokenizer, encoded)
    assert text.count == text_marks.count == len(encoded[0])
    differ = 0
    for epoch in range(4):
        for ids, marks, plain, signs in zip(split(text, epoch), split(text_marks, epoch), *encoded, strict=True):
            assert tokenizer.decode(ids.tolist()) == tokenizer.decode(plain.tolist())
            assert words_of(ids, marks, tokenizer) == words_of(plain, signs, tokenizer)
            assert (ids[0], ids[-1], marks[-1]) == (plain[0], plain[-1], signs[-1])
            differ += ids.tolist() != plain.tolist()
    assert differ > len(encoded[0])
    assert text.tokens == text_marks.tokens == sum(map(len, split(text, 0)))


def test_an_epoch_is_a_function_of_the_seed(tokenizer: Tokenizer, encoded: CODED) -> None:
    def epoch(number: int, seed: int = 1) -> list[int]:
        text, _ = made(tokenizer, encoded, seed=seed)
        return text.gather(number, np.arange(text.count))[0].tolist()

    assert epoch(0) == epoch(0)
    assert len({tuple(one) for one in (epoch(0), epoch(1), epoch(0, 2))}) == 3


def test_without_dropout_or_room_all_stays(tokenizer: Tokenizer, encoded: CODED) -> None:
    for text, _ in (made(tokenizer, encoded, 0.0), made(tokenizer, encoded, 0.99, 1)):
        longest = max(map(len, encoded[0]))
        for ids, plain in zip(split(text, 0), encoded[0], strict=True):
            assert len(ids) <= max(longest, len(plain))
    assert [ids.tolist() for ids in split(made(tokenizer, encoded, 0.0)[0], 3)] == [ids.tolist() for ids in encoded[0]]
