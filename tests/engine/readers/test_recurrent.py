"""Recurrent readers beside the models: every combination of words; neighbours to the bit."""

import numpy as np
import pytest
import torch

from regard.models.inputs import Tokens
from regard.nn.embeddings import WordRows
from tests.engine.engines import recurrent, texts
from tests.laws.families import SOURCES, Family, held
from tests.models import small_models as small
from tests.models.small_models import assert_near, tolerance

MOST = tolerance(torch.float32)


def in_words(given: Tokens) -> Tokens:
    """The same tokens, some of them together a word, some of none."""
    word_T = torch.tensor([0, 1, 1, 2, 3, 4, 4, 4, 5, 5, 0, 0, 6, 6, 7, 7])
    assert given.words is not None
    return Tokens(given.ids_T, given.sequences, None, WordRows(word_T, given.words.features_WE[:7]))


@pytest.mark.one_of(4)
@held("rnn-encoder")
@pytest.mark.parametrize("joined", [False, True])
def test_what_a_head_says_is_what_the_models_says(family: Family, joined: bool) -> None:
    model, given = family.model(torch.float32), small.texts(SOURCES)
    given = in_words(given) if joined else given
    fast = recurrent(model, family.choices)
    with torch.no_grad():
        assert_near(fast.read(texts(given)), model.encoder(given), MOST)
        assert_near(fast(texts(given)), model(given), MOST)


@held("rnn-encoder")
def test_a_text_alone_has_the_bits_that_it_has_among_others(family: Family) -> None:
    fast = recurrent(family.model(torch.float32), family.choices)
    among = fast.read(texts(small.texts(SOURCES)))
    for source, found in zip(SOURCES, np.split(among, np.cumsum([len(one) for one in SOURCES])[:-1]), strict=True):
        assert fast.read(texts(small.texts([source]))).tobytes() == found.tobytes()


def test_words_that_are_not_given_are_missed() -> None:
    from regard.engine.texts import Texts

    choices = {"units": "words", "head": "tags"}
    fast = recurrent(small.rnn_encoder(dtype=torch.float32, **choices), choices)
    with pytest.raises(ValueError, match="needs the words"):
        fast(Texts(SOURCES[0], np.array([len(SOURCES[0])])))
