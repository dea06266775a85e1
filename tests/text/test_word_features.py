"""Features of words: which there are, of which tokens, and that they depend on nothing but the word."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.tokenizers.tokenizer import Tokenizer, learn
from regard.text.word_features import FEATURES, WordFeatures, features, shape
from tests.text.crc import crc32

TEXTS = ["Anna saw Berlin, twice.", "anna walked to the walls", "It's 1,250 km", "Zürich — naïve 漢字"] * 3


def found(known: Tokenizer, buckets: int, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return WordFeatures(known, buckets).of_texts(ids, np.array([0]), np.array([len(ids)]))


@cache
def tokenizer(**options: object) -> Tokenizer:
    return learn(TEXTS, 300, "nfc", ("[MASK]", "[CLS]"), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("Anna", "Xxxx"), ("U.S.", "X.X."), ("COVID-19", "XXX-dd"), ("walked", "xxx"), ("1,250", "d,ddd"), ("", "")],
)
def test_the_shape_of_a_word(word: str, wanted: str) -> None:
    assert shape(word) == wanted


def test_a_word_has_its_forms() -> None:
    assert features("Berlin") == ("berlin", "Berlin", "ber", "lin", "Xxxx")


def test_all_pieces_of_a_word_have_its_features_and_symbols_have_none() -> None:
    known = tokenizer()
    ids = np.array([known.begin[0], *known.encode("Anna walked").ids, known.end])
    word_T, features_WE = found(known, 1 << 20, ids)
    starts = known.word_starts(ids.tolist())
    assert word_T[0] == word_T[-1] == 0
    assert (np.diff(word_T[1:-1]) == starts[2:-1]).all()
    assert features_WE.shape == (word_T.max(), FEATURES)
    assert len(features_WE) == 2


def test_where_words_begin_can_be_given() -> None:
    known, parts = tokenizer(), ["Anna", " do", "n't", " U.S.", ","]
    pieces = [known.encode(part).ids for part in parts]
    ids = np.array([known.begin[0], *(id for part in pieces for id in part), known.end])
    first_T = np.zeros(len(ids), np.bool_)
    first_T[1 + np.cumsum([0, *map(len, pieces)])[:-1]] = True
    named = WordFeatures(known, 1 << 20)
    word_T, features_WE = named.of_texts(ids, np.array([0]), np.array([len(ids)]), first_T)
    assert word_T.tolist() == [0, *(number for number, part in enumerate(pieces, 1) for _ in part), 0]
    assert features_WE.tolist() == [named._hashes(part.strip()) for part in parts]
    assert len(named.of_texts(ids, np.array([0]), np.array([len(ids)]))[1]) != len(parts)  # by the tokenizer


@pytest.mark.parametrize("units", ["pieces", "characters"])
def test_a_word_has_the_same_features_wherever_it_stands(units: str) -> None:
    known = tokenizer(units=units)
    one, other = (found(known, 1 << 20, np.array(known.encode(text).ids)) for text in ("Berlin saw", "the Berlin"))
    assert (one[1][0] == other[1][-1]).all()


def test_hashes_are_the_same_in_every_process_and_below_the_buckets() -> None:
    known = tokenizer()
    _, rows = found(known, 1000, np.array(known.encode("Berlin").ids))
    wanted = [crc32(one.encode(), kind) % 1000 for kind, one in enumerate(features("Berlin"))]
    assert rows.tolist() == [wanted]
    _, few = found(known, 7, np.array(known.encode(" ".join(TEXTS)).ids))
    assert few.max() < 7


def test_texts_of_a_batch_are_numbered_through() -> None:
    known = tokenizer()
    parts = [np.array(known.encode(text).ids) for text in ("Anna saw", "walked to")]
    ids_T = np.concatenate([*parts, np.zeros(4, np.int64)])
    lengths = np.array([len(part) for part in parts])
    word_T, rows = WordFeatures(known, 50).of_texts(ids_T, np.array([0, lengths[0]]), lengths)
    assert len(rows) == word_T.max() == 4
    assert (word_T[-4:] == 0).all()
    assert word_T[lengths[0]] == 3


def test_a_hidden_word_tells_nothing() -> None:
    known = tokenizer()
    assert known.mask is not None
    word_T, rows = found(known, 50, np.array([known.mask, known.mask]))
    assert (word_T == 0).all()
    assert rows.shape == (0, FEATURES)


def test_an_empty_text_has_no_words() -> None:
    word_T, rows = found(tokenizer(), 50, np.zeros(0, np.int64))
    assert word_T.shape == (0,)
    assert rows.shape == (0, FEATURES)


@given(st.lists(st.text(max_size=30), max_size=4))
def test_runs_between_spaces_have_the_words_of_the_whole_text(texts: list[str]) -> None:
    """A word ends before a space, so that runs of pieces are looked at once, wherever they stand."""
    known = tokenizer()
    parts = [np.array([known.begin[0], *known.encode(text).ids, known.end], np.int64) for text in texts]
    lengths = np.array([len(part) for part in parts], np.int64)
    ids_T = np.concatenate([*parts, np.zeros(2, np.int64)])
    word_T, rows = WordFeatures(known, 1 << 20).of_texts(ids_T, lengths.cumsum() - lengths, lengths)
    words = []
    for part in parts:
        starts = np.flatnonzero(known.word_starts(part.tolist()))
        words += [known.decode(one.tolist()).strip() for one in np.split(part, starts[1:])]
    words = [word for word in words if word]
    assert word_T.max(initial=0) == len(rows) == len(words)
    assert rows.tolist() == [
        [crc32(one.encode("utf-8", "surrogatepass"), kind) % (1 << 20) for kind, one in enumerate(features(word))]
        for word in words
    ]
