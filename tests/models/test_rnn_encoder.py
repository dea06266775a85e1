"""Recurrent readers: against torch's own recurrence and plain steps, with each kind of pool."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.config import RnnEncoderSection
from regard.models.build import classes, rnn_encoder
from regard.models.captured_attention import capture_layers
from regard.nn.dropout import reseed
from regard.nn.embeddings import WordRows
from tests.laws.families import FEW
from tests.models.small_models import CLASSES, PIECES, assert_near, same, sentences, texts
from tests.models.small_models import rnn_encoder as small

GIVEN = sentences([5, 1, 7, 3])
KERNELS = {"elman": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def test_words_are_dropped_as_wholes() -> None:
    model = small(units="words", dropout=0.5, head="tags").train()
    given = replace(texts(sentences([6])), words=WordRows(torch.tensor([1, 1, 1, 2, 2, 2]), torch.zeros(0, 5).long()))
    dropped: list[torch.Tensor] = []
    model.encoder.stack.register_forward_pre_hook(lambda _, entering: dropped.append(entering[0]))
    reseed(1)
    hidden_TD = model.encoder(given)
    mean_WD = model.encoder.input.tokens(given.ids_T).unflatten(0, (2, 3)).mean(1) * 12**0.5
    kept = dropped[0] != 0
    assert 0 < kept.sum() < kept.numel()
    assert_near(dropped[0], torch.where(kept, 2 * mean_WD, 0.0), 1e-9)
    assert same(hidden_TD[0].detach(), hidden_TD[2].detach())


def test_the_query_begins_at_zero_and_is_heard_text_by_text() -> None:
    section = RnnEncoderSection(d_model=12, pool="attention")
    model = rnn_encoder(section, PIECES, classes(section, CLASSES), 3).eval()
    assert not model.head.pool.query.any()
    weights = capture_layers(model, "rnn-encoder", lambda: model(texts(GIVEN)))["pool"][0]
    assert [weight.shape for weight in weights] == [(1, 1, 5), (1, 1, 1), (1, 1, 7), (1, 1, 3)]


def test_an_empty_text_is_read_among_others() -> None:
    model = small(pool="attention")
    with torch.no_grad():
        among = model(texts([GIVEN[0], GIVEN[1][:0], GIVEN[2]]))
        assert_near(among[[0, 2]], model(texts([GIVEN[0], GIVEN[2]])), 1e-9)
        assert_near(among[1], model.head.classes(torch.zeros(1, 12, dtype=torch.float64))[0], 1e-9)


@pytest.mark.one_of(5)
@pytest.mark.parametrize("choices", FEW["rnn-encoder"], ids=str)
def test_order_is_told_without_positions_and_one_way_no_later_token_is_seen(choices) -> None:
    model, ids = small(**choices), sentences([7])[0]
    other = ids.copy()
    other[5:] = other[5:][::-1] + 1
    with torch.no_grad():
        forwards, backwards = model.encoder(texts(GIVEN)), model.encoder(texts([one[::-1].copy() for one in GIVEN]))
        assert (forwards[:5] - backwards[:5].flip(0)).abs().max() > 0.01
        one, two = model.encoder(texts([ids]))[:5], model.encoder(texts([other]))[:5]
    assert same(one, two) != choices["two_way"]


def test_a_recurrence_over_words_misses_them() -> None:
    with pytest.raises(ValueError, match="words"):
        small(units="words", head="tags").encoder(replace(texts(GIVEN), words=None))
