"""Engines that read texts beside the models: every combination of words, every head; neighbours to the bit."""

from typing import Any

import numpy as np
import pytest
import torch

from regard.models.inputs import Tokens
from regard.nn.embeddings import WordRows
from regard.nn.layout import Sequences
from tests.engine.engines import reader, recurrent, texts
from tests.laws.families import SOURCES, Family, held
from tests.models import small_models as small
from tests.models.small_models import assert_near, tolerance

MOST = tolerance(torch.float32)
ENGINES: dict[str, Any] = {"bert": reader, "rnn-encoder": recurrent}


@pytest.mark.one_of(6)
@held("bert")
@pytest.mark.parametrize("segments", [False, True])
def test_what_a_head_says_is_what_the_models_says(family: Family, segments: bool) -> None:
    model = family.model(torch.float32)
    fast, given = reader(model, family.choices), small.texts(SOURCES, segments=segments and family.choices["segments"])
    with torch.no_grad():
        read, said = model.encoder(given), model(given)
        said = model.head.scores(said) if family.choices["head"] == "words" else said
    assert_near(fast.read(texts(given)), read, MOST)
    assert_near(fast(texts(given)), said, MOST)


def in_words(given: Tokens) -> Tokens:
    """The same tokens, some of them together a word, some of none."""
    word_T = torch.tensor([0, 1, 1, 2, 3, 4, 4, 4, 5, 5, 0, 0, 6, 6, 7, 7])
    assert given.words is not None
    return Tokens(given.ids_T, given.sequences, None, WordRows(word_T, given.words.features_WE[:7]))


@pytest.mark.one_of(4)
@held("rnn-encoder")
@pytest.mark.parametrize("joined", [False, True])
def test_what_a_recurrent_reader_says_is_what_the_model_says(family: Family, joined: bool) -> None:
    model, given = family.model(torch.float32), small.texts(SOURCES)
    given = in_words(given) if joined else given
    fast = recurrent(model, family.choices)
    with torch.no_grad():
        assert_near(fast.read(texts(given)), model.encoder(given), MOST)
        assert_near(fast(texts(given)), model(given), MOST)


@held("bert", "rnn-encoder")
def test_a_text_alone_has_the_bits_that_it_has_among_others(family: Family) -> None:
    fast = ENGINES[family.name](family.model(torch.float32), family.choices)
    among = fast.read(texts(small.texts(SOURCES)))
    for source, found in zip(SOURCES, np.split(among, np.cumsum([len(one) for one in SOURCES])[:-1]), strict=True):
        assert fast.read(texts(small.texts([source]))).tobytes() == found.tobytes()


@pytest.mark.parametrize("pool", ["first", "mean", "max"])
def test_tags_are_scored_from_the_pieces_of_words(pool: str) -> None:
    choices = {"head": "tags", "pool": pool}
    model, given = small.bert(dtype=torch.float32, **choices), small.texts(small.sentences([9, 4]))
    starts, lengths = np.array([1, 3, 4, 10]), np.array([2, 1, 4, 2])
    words = Sequences(torch.from_numpy(starts), torch.from_numpy(lengths), 4, 4, 13)
    with torch.no_grad():
        expected = model.head.words(model.encoder(given), words)
    assert_near(reader(model, choices).words(texts(given), starts, lengths), expected, MOST)


def test_pieces_in_gaps_are_scored_at_their_places() -> None:
    model, given = small.bert(dtype=torch.float32), small.texts(small.sentences([9, 4]))
    fast, places = reader(model, {}), np.array([2, 7, 11])
    with torch.no_grad():
        expected = model.head.scores(model(given)[torch.from_numpy(places)])
    assert_near(fast.pieces(texts(given), places), expected, MOST)


@pytest.mark.parametrize("family", ["bert", "rnn-encoder"])
def test_words_that_are_not_given_are_missed(family: str) -> None:
    from regard.engine.texts import Texts

    choices = {"word_features": 11} if family == "bert" else {"units": "words", "head": "tags"}
    fast = ENGINES[family](Family(family, choices).model(torch.float32), choices)
    with pytest.raises(ValueError, match="needs the words"):
        fast(Texts(SOURCES[0], np.array([len(SOURCES[0])])))


def test_segments_begin_behind_the_first_end() -> None:
    from regard.engine.texts import segments_after
    from regard.models.inputs import separate

    given = small.texts([np.array([4, 5, 0, 6, 0]), np.array([3, 0, 7, 8, 0, 0]), np.array([2])])
    found = segments_after(given.ids_T.numpy(), texts(given).lengths_B, 0)
    assert found.tolist() == separate(given, 0).segments_T.tolist()  # type: ignore[union-attr]
