"""Engines that read texts beside the models: every combination of words, every head; neighbours to the bit."""

import numpy as np
import pytest
import torch

from regard.models.inputs import Tokens
from regard.nn.embeddings import WordRows
from regard.nn.heads import CRFTags, IndependentTags
from regard.nn.layout import Sequences
from regard.text.tags import ForbiddenTransitions, forbidden
from tests.engine.engines import MOST, both, texts
from tests.laws.families import SOURCES, Family, held
from tests.models import small_models as small
from tests.models.small_models import assert_near


@pytest.mark.one_of(6)
@held("bert")
@pytest.mark.parametrize("segments", [False, True])
def test_what_a_head_says_is_what_the_models_says(family: Family, segments: bool) -> None:
    model, fast = both(family)
    given = small.texts(SOURCES, segments=segments and family.choices["segments"])
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
    (model, fast), given = both(family), small.texts(SOURCES)
    given = in_words(given) if joined else given
    with torch.no_grad():
        assert_near(fast.read(texts(given)), model.encoder(given), MOST)
        assert_near(fast(texts(given)), model(given), MOST)


@pytest.mark.one_of(4)
@held("bert", "rnn-encoder")
def test_a_text_alone_has_the_bits_that_it_has_among_others(family: Family) -> None:
    _, fast = both(family)
    among = fast.read(texts(small.texts(SOURCES)))
    for source, found in zip(SOURCES, np.split(among, np.cumsum([len(one) for one in SOURCES])[:-1]), strict=True):
        assert fast.read(texts(small.texts([source]))).tobytes() == found.tobytes()


@pytest.mark.parametrize("pool", ["first", "mean", "max"])
def test_tags_are_scored_from_the_pieces_of_words(pool: str) -> None:
    model, fast = both(Family("bert", {"head": "tags", "pool": pool}))
    given, starts, lengths = small.texts(small.sentences([9, 4])), np.array([1, 3, 4, 10]), np.array([2, 1, 4, 2])
    words = Sequences(torch.from_numpy(starts), torch.from_numpy(lengths), 4, 4, 13)
    with torch.no_grad():
        expected = model.head.words(model.encoder(given), words)
    assert_near(fast.words(texts(given), starts, lengths), expected, MOST)


def test_pieces_in_gaps_are_scored_at_their_places() -> None:
    (model, fast), given = both(Family("bert", {})), small.texts(small.sentences([9, 4]))
    places = np.array([2, 7, 11])
    with torch.no_grad():
        expected = model.head.scores(model(given)[torch.from_numpy(places)])
    assert_near(fast.pieces(texts(given), places), expected, MOST)


@pytest.mark.parametrize("family", ["bert", "rnn-encoder"])
def test_words_that_are_not_given_are_missed(family: str) -> None:
    choices = {"word_features": 11} if family == "bert" else {"units": "words", "head": "tags"}
    given = small.texts(SOURCES[:1])
    with pytest.raises(ValueError, match="needs the words"):
        both(Family(family, choices))[1](texts(Tokens(given.ids_T, given.sequences)))


def test_segments_begin_behind_the_first_end() -> None:
    from regard.engine.stack import segments_after
    from regard.models.inputs import separate

    given = small.texts([np.array([4, 5, 0, 6, 0]), np.array([3, 0, 7, 8, 0, 0]), np.array([2])])
    found = segments_after(given.ids_T.numpy(), texts(given).lengths_B, 0)
    assert found.tolist() == separate(given, 0).segments_T.tolist()  # type: ignore[union-attr]


TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
LENGTHS = np.array([4, 1, 7, 2])


@pytest.mark.parametrize("crf", [False, True])
@pytest.mark.parametrize("limited", [False, True])
def test_the_best_tags_and_their_probabilities_are_the_models(crf: bool, limited: bool) -> None:
    from regard.engine.heads import TagDecoder

    random = torch.Generator().manual_seed(3)
    chain = CRFTags(5) if crf else IndependentTags(5)
    field = None
    if isinstance(chain, CRFTags):
        parts = (chain.field.transition_CC, chain.field.start_C, chain.field.end_C)
        for part in parts:
            part.data = torch.randn(part.shape, generator=random)
        field = [part.detach().numpy() for part in parts]
    limits = forbidden(TAGS, "bio") if limited else ForbiddenTransitions()
    chain.limit(limits)
    fast, sequences = TagDecoder(field, 5, limits), Sequences.end_to_end(LENGTHS.tolist())
    for _ in range(20):
        score_RC = torch.randn(int(LENGTHS.sum()), 5, generator=random) * 2
        tags_R, probability_R = fast.choose(score_RC.double().numpy(), LENGTHS, heat=1.3)
        expected_R = chain.decode(score_RC, sequences)
        assert tags_R.tolist() == expected_R.tolist()
        known_R = chain.probabilities(score_RC / 1.3, sequences).gather(1, expected_R[:, None])[:, 0]
        np.testing.assert_allclose(probability_R, known_R.numpy(), atol=1e-5)
