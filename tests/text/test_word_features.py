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
SHAPES = {"Anna": "Xxxx", "U.S.": "X.X.", "COVID-19": "XXX-dd", "walked": "xxx", "1,250": "d,ddd", "": ""}
Found = tuple[np.ndarray, np.ndarray]


@cache
def tokenizer(**options: object) -> Tokenizer:
    return learn(TEXTS, 300, "nfc", ("[MASK]", "[CLS]"), **options)  # type: ignore[arg-type]


def found(ids: list[int], buckets: int = 1 << 20, known: Tokenizer | None = None, first_T=None) -> Found:
    features = WordFeatures(known or tokenizer(), buckets)
    return features.of_texts(np.array(ids, np.int64), np.array([0]), np.array([len(ids)]), first_T)


def hashes(word: str, buckets: int = 1 << 20) -> list[int]:
    written = (one.encode("utf-8", "surrogatepass") for one in features(word))
    return [crc32(one, kind) % buckets for kind, one in enumerate(written)]


def test_a_word_has_its_forms() -> None:
    assert {word: shape(word) for word in SHAPES} == SHAPES
    assert features("Berlin") == ("berlin", "Berlin", "ber", "lin", "Xxxx")


def test_all_pieces_of_a_word_have_its_features_and_symbols_have_none() -> None:
    known = tokenizer()
    ids = [known.begin[0], *known.encode("Anna walked").ids, known.end]
    word_T, features_WE = found(ids)
    assert word_T[0] == word_T[-1] == 0
    assert (np.diff(word_T[1:-1]) == known.word_starts(ids)[2:-1]).all()
    assert features_WE.shape == (word_T.max(), FEATURES) == (2, FEATURES)


def test_where_words_begin_can_be_given() -> None:
    known, parts = tokenizer(), ["Anna", " do", "n't", " U.S.", ","]
    pieces = [known.encode(part).ids for part in parts]
    ids = [known.begin[0], *(id for part in pieces for id in part), known.end]
    first_T = np.zeros(len(ids), np.bool_)
    first_T[1 + np.cumsum([0, *map(len, pieces)])[:-1]] = True
    word_T, features_WE = found(ids, first_T=first_T)
    assert word_T.tolist() == [0, *(number for number, part in enumerate(pieces, 1) for _ in part), 0]
    assert features_WE.tolist() == [hashes(part.strip()) for part in parts]
    assert len(found(ids)[1]) != len(parts)  # by the tokenizer


@pytest.mark.parametrize("units", ["pieces", "characters"])
def test_a_word_has_the_same_features_wherever_it_stands(units: str) -> None:
    known = tokenizer(units=units)
    one, other = (found(known.encode(text).ids, known=known) for text in ("Berlin saw", "the Berlin"))
    assert (one[1][0] == other[1][-1]).all()


def test_hashes_are_the_same_in_every_process_and_below_the_buckets() -> None:
    known = tokenizer()
    assert found(known.encode("Berlin").ids, 1000)[1].tolist() == [hashes("Berlin", 1000)]
    assert found(known.encode(" ".join(TEXTS)).ids, 7)[1].max() < 7


def test_a_hidden_word_tells_nothing_and_an_empty_text_has_no_words() -> None:
    assert tokenizer().mask is not None
    for ids in ([tokenizer().mask] * 2, []):
        word_T, rows = found(ids, 50)
        assert (word_T.tolist(), rows.shape) == ([0] * len(ids), (0, FEATURES))


@given(st.lists(st.text(max_size=30), max_size=4))
def test_runs_between_spaces_have_the_words_of_the_whole_text(texts: list[str]) -> None:
    """A word ends before a space, so that runs of pieces are looked at once, wherever they stand in a batch."""
    known = tokenizer()
    parts = [np.array([known.begin[0], *known.encode(text).ids, known.end], np.int64) for text in texts]
    lengths = np.array([len(part) for part in parts], np.int64)
    ids_T = np.concatenate([*parts, np.zeros(2, np.int64)])
    word_T, rows = WordFeatures(known, 1 << 20).of_texts(ids_T, lengths.cumsum() - lengths, lengths)
    assert not word_T[-2:].any()
    words = []
    for part in parts:
        starts = np.flatnonzero(known.word_starts(part.tolist()))
        words += [known.decode(one.tolist()).strip() for one in np.split(part, starts[1:])]
    words = [word for word in words if word]
    assert word_T.max(initial=0) == len(rows) == len(words)
    assert rows.tolist() == [hashes(word) for word in words]
