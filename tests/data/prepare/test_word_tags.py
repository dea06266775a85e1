"""Every word of a text is counted once, in the window where it is most central, its pieces and tag with it."""

import numpy as np
import pytest

from regard.data.batches.batch import pack_sources
from regard.data.batches.texts import WordMarks, text_lengths
from regard.data.prepare.encoders import TagEncoder, word_parts
from regard.data.prepare.windowing import Frame, most_central
from regard.text.tags import TaggedWords, places_of
from regard.text.tokenizers.tokenizer import Tokenizer, learn

TEXT = "The quick brown fox, it's said, jumps over 1,234 lazy dogs in Übersee — daily."
TAGS = ("NOUN", "OTHER", "VERB")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn([TEXT] * 3, 290, symbols=("[CLS]",))


def words(text: str, tags: int = 3) -> TaggedWords:
    places = tuple(places_of(text))
    return TaggedWords(text, places, tuple(TAGS[number % tags] for number in range(len(places))))


def written_out(first: list[int], last: list[int], starts: list[int], room: int) -> list[int]:
    found = []
    for begin, end in zip(first, last, strict=True):
        central = {}
        for number, start in enumerate(starts):
            if start <= begin < start + room:
                before = float("inf") if number == 0 else begin - start
                behind = float("inf") if number == len(starts) - 1 else start + room - 1 - end
                central[number] = min(before, behind)
        found.append(max(central, key=lambda number: (central[number], -number)))
    return found


@pytest.mark.parametrize("stride", [1, 4, 100])
def test_the_window_is_where_a_word_stands_farthest_from_a_cut(stride: int) -> None:
    random = np.random.default_rng(stride)
    for _ in range(30):
        lengths = random.integers(1, 6, 60)
        first = lengths.cumsum() - lengths
        frame = Frame((), 0, 12, stride)
        starts = frame.starts(int(lengths.sum()))
        found = most_central(first, first + lengths - 1, starts, frame.room)
        assert found.tolist() == written_out(first.tolist(), (first + lengths - 1).tolist(), starts, frame.room)
        assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize(("max_tokens", "stride"), [(200, 64), (12, 4), (5, 1), (3, 64), (2, 1)])
def test_words_come_back_whole_once_and_in_order(tokenizer: Tokenizer, max_tokens: int, stride: int) -> None:
    coding = TagEncoder(tokenizer, Frame.of(tokenizer, max_tokens, stride), "none", TAGS[:2], TAGS[2:])
    texts = [words(TEXT), words("hi"), words(" x y"), words(TEXT * 3)]
    coded = coding.encode(texts, "train")
    windows = [window for one in coded for window in one]
    assert all(len(ids) <= max(max_tokens, 3) for ids, _ in windows)
    batch = pack_sources([ids for ids, _ in windows])
    marks = WordMarks.of(batch, np.concatenate([one for _, one in windows]))
    assert text_lengths(marks.counts_B, marks.more_B).tolist() == [len(one.places) for one in texts]
    assert [TAGS[tag] for tag in marks.tags_R] == [tag for one in texts for tag in one.tags]
    if max_tokens >= 12:  # narrower, and long words lose their ends
        pieces = [part.tolist() for one in coding.pieces(texts) for part in one]
        spans = zip(marks.starts_R, marks.starts_R + marks.lengths_R, strict=True)
        assert [batch.ids_T[begin:end].tolist() for begin, end in spans] == pieces
        assert [tokenizer.decode(part) for part in pieces] == [part for one in texts for part in word_parts(one)]


def test_known_words_are_counted_by_window(tokenizer: Tokenizer) -> None:
    coding = TagEncoder(tokenizer, Frame.of(tokenizer, 100), "none", TAGS[:2], TAGS[2:])
    coded = [coding.encode([one], "train")[0][0] for one in (words("a b c d"), words("e"))]
    marks = WordMarks.of(pack_sources([ids for ids, _ in coded]), np.concatenate([one for _, one in coded]))
    known, counts = marks.known_words(2)
    assert (known.tolist(), counts.tolist()) == ([True, True, False, True, True], [3, 1])


def test_tags_are_converted_and_texts_without_tags_have_the_same_words(tokenizer: Tokenizer) -> None:
    coding = TagEncoder(tokenizer, Frame.of(tokenizer, 12, 2), "bilou", ["O", "B-X", "I-X", "L-X", "U-X"])
    one = TaggedWords.from_words(["in", "New", "York", "or", "Rome"], ["O", "B-X", "I-X", "O", "B-X"])
    tagged, plain = coding.encode([one], "train")[0], coding.encode_texts([one])[0]
    sides = []
    for windows in (tagged, plain):
        batch = pack_sources([ids for ids, _ in windows])
        sides.append(WordMarks.of(batch, np.concatenate([marks for _, marks in windows])))
    assert [coding.tags[tag] for tag in sides[0].tags_R] == ["O", "B-X", "L-X", "O", "U-X"]
    for name in ("starts_R", "lengths_R", "counts_B", "more_B"):
        assert getattr(sides[0], name).tolist() == getattr(sides[1], name).tolist()


def test_a_word_that_shares_its_place_or_has_no_pieces_still_has_one(tokenizer: Tokenizer) -> None:
    class Dropping:
        """A tokenizer that knows nothing of some words."""

        size, begin, end, unknown = tokenizer.size, tokenizer.begin, tokenizer.end, tokenizer.unknown

        def ids_batch(self, texts: list[str]) -> list[np.ndarray]:
            return [tokenizer.ids_batch([text])[0][: 0 if "z" in text else None] for text in texts]

    shared = TaggedWords("a du", ((0, 1), (2, 4), (2, 4)), ("O", "O", "O"))
    assert word_parts(shared) == ["a", " du", "du"]
    frame = Frame.of(tokenizer, 20)
    found = TagEncoder(Dropping(), frame, "none", ["O"]).pieces([TaggedWords.from_words(["a", "zz", "b"], ())])  # type: ignore[arg-type]
    assert [len(part) for part in found[0]] == [1, 1, 2]
    assert found[0][1].tolist() == [tokenizer.unknown]
