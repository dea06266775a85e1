"""Texts and labels as ids: of one label, of several, of a number; what has none is left out."""

from collections.abc import Sequence

import numpy as np
import pytest

from regard.data.batches.batch import pack_sources
from regard.data.batches.texts import WordMarks, text_lengths
from regard.data.corpora.documents import DocumentPart
from regard.data.prepare.encoders import RefusedExample
from regard.data.prepare.windowing import (
    ClassEncoder,
    DocumentEncoder,
    Frame,
    LabelIds,
    TagEncoder,
    most_central,
    word_parts,
)
from regard.text.tags import TaggedWords, places_of
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from regard.text.tokenizers.vocabulary import read_tokenizer

TEXTS = ["the cat sees the dog", "a small snake", "old"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(TEXTS * 5, 290, symbols=("[CLS]", "[MASK]"))


def coding(tokenizer: Tokenizer, kind="single", labels=("a", "b"), longest: int = 64) -> ClassEncoder:
    return ClassEncoder(tokenizer, Frame.of(tokenizer, longest), LabelIds(kind, labels))


def test_labels_are_their_places_and_strange_ones_stand_behind_the_last() -> None:
    for ids, wanted in (
        (LabelIds("single", ("a", "b|c", "d")), {"a": [0], "b|c": [1], "d": [2], "e": [3]}),
        (LabelIds("single", ("a", "b"), "none"), {"none": [3], "strange": [2]}),
        (LabelIds("multi", ("a", "b"), "none"), {"b|none": [1, 2]}),
        (LabelIds("multi", ("a", "b", "c")), {"c|a": [2, 0], "": [], "a|a": [0], " b | x ": [1, 3]}),
    ):
        assert {label: ids.of(label).tolist() for label in wanted} == wanted
        assert ids.size == len(ids.labels) + 2
    numbers = LabelIds("regression", ())
    for number in ("0.1", "-3e7", "0", "-0.0", "1e-40"):  # the bits of its float32
        (found,) = numbers.of(number)
        assert 0 <= found < numbers.size
        assert np.array([found], np.int64).astype(np.uint32).view(np.float32)[0] == np.float32(number)


def test_what_has_no_label_has_no_ids(tokenizer: Tokenizer) -> None:
    pairs = [("the cat", "a"), ("the dog", ""), ("a snake", "b")]
    without = RefusedExample("no label")
    assert [one == without for one in coding(tokenizer).encode(pairs, "train")] == [False, True, False]
    numbers = coding(tokenizer, "regression", ()).encode([("x", "1"), ("y", "")], "train")
    assert [one == without for one in numbers] == [False, True]
    assert without not in coding(tokenizer, "multi").encode(pairs, "train")  # none of several
    assert coding(tokenizer).encode([(" ", "a")], "train") == [RefusedExample("empty")]


def test_a_text_is_framed_and_a_long_one_says_its_label_in_every_window(tokenizer: Tokenizer) -> None:
    ((ids, label),) = coding(tokenizer).encode([(TEXTS[0], "b")], "train")[0]
    assert (ids[0], ids[-1], label.tolist()) == (tokenizer.begin[0], tokenizer.end, [1])
    assert tokenizer.decode(ids) == TEXTS[0]
    windows = coding(tokenizer, longest=5).encode([(" ".join(TEXTS * 3), "b")], "train")[0]
    assert len(windows) > 2
    assert all(len(ids) <= 5 and label.tolist() == [1] for ids, label in windows)


def test_sizes_are_above_every_id(tokenizer: Tokenizer) -> None:
    for kind, labels in (("single", ("a", "b")), ("multi", ("a", "b")), ("regression", ())):
        made = coding(tokenizer, kind, labels)
        pairs = [(text, "7.5" if kind == "regression" else "zzz") for text in TEXTS]
        for ids, said in (window for windows in made.encode(pairs, "train") for window in windows):
            assert ids.max() < made.sizes("train")[0]
            assert said.max(initial=0) < made.sizes("train")[1]


def test_the_fingerprint_is_of_tokenizer_and_labels(tokenizer: Tokenizer, tmp_path) -> None:
    found = {coding(tokenizer, labels=labels).sha256 for labels in (("a", "b"), ("b", "a"), ("a",))}
    other = learn(TEXTS, 285)
    assert len(found | {ClassEncoder(other, Frame.of(other, 64), LabelIds("single", ("a", "b"))).sha256}) == 4
    coding(tokenizer).save(tmp_path)
    assert read_tokenizer(tmp_path / "tokenizer.json").sha256 == tokenizer.sha256


def test_a_document_ends_once_however_many_parts_it_has(tokenizer: Tokenizer) -> None:
    given = [DocumentPart("the cat", True), DocumentPart(" sees the dog"), DocumentPart("old")]
    for ended, ends in ((True, [0, 1, 1]), (False, [0, 0, 0])):
        made = DocumentEncoder(tokenizer, ended)
        ids = [np.concatenate([window[0] for window in windows]) for windows in made.encode(given, "train")]
        assert tokenizer.decode(np.concatenate(ids[:2])) == TEXTS[0]
        assert [int((one == tokenizer.end).sum()) for one in ids] == ends
        assert made.own == {"ended": ended}


def test_word_starts_are_coded_beside_the_pieces(tokenizer: Tokenizer) -> None:
    made = DocumentEncoder(tokenizer, words=True)
    ((ids, starts),) = made.encode([DocumentPart("the cat sees")], "train")[0]
    assert starts.tolist() == tokenizer.word_starts(ids.tolist()).astype(int).tolist()
    assert (starts.sum(), tokenizer.end in ids, made.sizes("train")) == (3, False, (tokenizer.size, 2))


TEXT = "The quick brown fox, it's said, jumps over 1,234 lazy dogs in Übersee — daily."
TAGS = ("NOUN", "OTHER", "VERB")


@pytest.fixture(scope="module")
def fox() -> Tokenizer:
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
def test_words_come_back_whole_once_and_in_order(fox: Tokenizer, max_tokens: int, stride: int) -> None:
    coding = TagEncoder(fox, Frame.of(fox, max_tokens, stride), "none", TAGS[:2], TAGS[2:])
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
        assert [fox.decode(part) for part in pieces] == [part for one in texts for part in word_parts(one)]


def marks_of(windows: Sequence[tuple[np.ndarray, np.ndarray]]) -> WordMarks:
    return WordMarks.of(pack_sources([ids for ids, _ in windows]), np.concatenate([marks for _, marks in windows]))


def test_known_words_are_counted_by_window(fox: Tokenizer) -> None:
    coding = TagEncoder(fox, Frame.of(fox, 100), "none", TAGS[:2], TAGS[2:])
    windows = [coding.encode([one], "train")[0][0] for one in (words("a b c d"), words("e"))]
    known, counts = marks_of(windows).known_words(2)
    assert (known.tolist(), counts.tolist()) == ([True, True, False, True, True], [3, 1])


def test_tags_are_converted_and_texts_without_tags_have_the_same_words(fox: Tokenizer) -> None:
    coding = TagEncoder(fox, Frame.of(fox, 12, 2), "bilou", ["O", "B-X", "I-X", "L-X", "U-X"])
    one = TaggedWords.from_words(["in", "New", "York", "or", "Rome"], ["O", "B-X", "I-X", "O", "B-X"])
    tagged, plain = marks_of(coding.encode([one], "train")[0]), marks_of(coding.encode_texts([one])[0])
    assert [coding.tags[tag] for tag in tagged.tags_R] == ["O", "B-X", "L-X", "O", "U-X"]
    for name in ("starts_R", "lengths_R", "counts_B", "more_B"):
        assert getattr(tagged, name).tolist() == getattr(plain, name).tolist()


def test_a_word_that_shares_its_place_or_has_no_pieces_still_has_one(fox: Tokenizer) -> None:
    class Dropping:
        """A tokenizer that knows nothing of some words."""

        size, begin, end, unknown = fox.size, fox.begin, fox.end, fox.unknown

        def ids_batch(self, texts: list[str]) -> list[np.ndarray]:
            return [fox.ids_batch([text])[0][: 0 if "z" in text else None] for text in texts]

    shared = TaggedWords("a du", ((0, 1), (2, 4), (2, 4)), ("O", "O", "O"))
    assert word_parts(shared) == ["a", " du", "du"]
    frame = Frame.of(fox, 20)
    found = TagEncoder(Dropping(), frame, "none", ["O"]).pieces([TaggedWords.from_words(["a", "zz", "b"], ())])  # type: ignore[arg-type]
    assert [len(part) for part in found[0]] == [1, 1, 2]
    assert found[0][1].tolist() == [fox.unknown]
