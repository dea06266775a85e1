"""Recurrent readers: against torch's own recurrence and plain steps, with each kind of pool."""

from dataclasses import replace
from itertools import groupby

import pytest
import torch
from torch import nn

from regard.config import RnnEncoderSection
from regard.models.build import classes, rnn_encoder
from regard.models.captured_attention import capture_layers
from regard.nn.dropout import reseed
from regard.nn.embeddings import WordRows
from regard.nn.layout import Sequences
from regard.text.word_features import FEATURES
from tests.laws.families import FEW
from tests.models.small_models import CLASSES, PIECES, assert_near, same, sentences, texts
from tests.models.small_models import rnn_encoder as small

GIVEN = sentences([5, 1, 7, 3])
KERNELS = {"elman": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


@pytest.mark.parametrize("two_way", [False, True])
@pytest.mark.parametrize("cell", KERNELS)
def test_hidden_vectors_are_those_of_torch_text_by_text(cell: str, two_way: bool) -> None:
    model = small(cell=cell, two_way=two_way, layers=2)
    size = 6 if two_way else 12
    kernel = KERNELS[cell](12, size, num_layers=2, bidirectional=two_way).double()
    for layer, part in enumerate(model.encoder.stack.layers):
        named = {name.replace("_l0", f"_l{layer}"): value for name, value in part.kernel.state_dict().items()}
        assert not kernel.load_state_dict(named, strict=False).unexpected_keys
    with torch.no_grad():
        rows = [kernel(model.encoder.input.tokens.weight[ids] * 12**0.5)[0] for ids in GIVEN]
        assert_near(model.encoder(texts(GIVEN, tail=2))[:16], torch.cat(rows), 1e-9)


@pytest.mark.parametrize("two_way", [False, True])
def test_over_words_each_is_the_mean_of_its_pieces_which_share_what_is_read(two_way: bool) -> None:
    model = small(cell="lstm", units="words", word_features=11, two_way=two_way, head="tags")
    numbers = [[0, 1, 1, 2, 2, 2, 0], [3, 4, 4, 0]]
    given = texts(sentences([7, 4]), tail=1)
    word_T = torch.tensor([*numbers[0], *numbers[1], 0])
    features_WE = torch.arange(4 * FEATURES).view(4, FEATURES) % 11
    given = replace(given, words=WordRows(word_T, features_WE))
    with torch.no_grad():
        x_TD = model.encoder.input(given.ids_T, given.sequences.positions_T, 7, words=given.words)
        found, wanted, begin = model.encoder(given), [], 0
        for one in numbers:
            runs = [list(run) for _, run in groupby(range(begin, begin + len(one)), lambda at: int(word_T[at]))]
            means = torch.stack([x_TD[run].mean(0) for run in runs])
            hidden, _ = model.encoder.stack(means, Sequences.end_to_end([len(runs)]))
            wanted += [row for row, run in zip(hidden, runs, strict=True) for _ in run]
            begin += len(one)
        assert_near(found[:11], torch.stack(wanted), 1e-9)
        assert not found[11:].any()
    with pytest.raises(ValueError, match="words"):
        model.encoder(replace(given, words=None))


def test_embeddings_can_be_of_another_size_than_states() -> None:
    model = small(d_embedding=10, word_features=11, units="words", head="tags")
    assert (model.encoder.input.tokens.weight.shape, model.encoder.input.words.weight.shape) == ((PIECES, 10), (11, 10))
    assert model.encoder(texts(GIVEN)).shape == (16, 12)


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


@pytest.mark.parametrize("pooler", [False, True])
def test_classes_are_scored_from_what_was_attended_to(pooler: bool) -> None:
    model = small(pool="attention", pooler=pooler)
    with torch.no_grad():
        hidden_TD = model.encoder(texts(GIVEN))
        scores = torch.tanh(hidden_TD @ model.head.pool.score.memory.weight.T + model.head.pool.query)
        scores = scores @ model.head.pool.score.direction
        rows = zip(scores.split([5, 1, 7, 3]), hidden_TD.split([5, 1, 7, 3]), strict=True)
        vector_BD = torch.stack([score.softmax(0) @ hidden for score, hidden in rows])
        if pooler:
            vector_BD = torch.tanh(model.head.dense(vector_BD))
        assert_near(model(texts(GIVEN)), model.head.classes(vector_BD), 1e-9)


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
