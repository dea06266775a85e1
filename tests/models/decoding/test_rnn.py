import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.rows import Symbols
from regard.decoding.search import search
from regard.models.decoding import stepper
from regard.nn.hooks import capture
from tests.laws.families import FEW
from tests.models.decoding.rows_by_hand import SOURCES, Rows, all_at_once, search_at_random
from tests.models.small_models import PIECES, assert_near, sentences
from tests.models.small_models import rnn as small

FEWER = pytest.mark.parametrize("choices", FEW["rnn"], ids=lambda c: f"{c['cell']}-{c['score']}-{c['input_feeding']}")
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])


@FEWER
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.one_of(4)
def test_a_random_search_is_the_forward_pass_of_each_row(choices, seed: int) -> None:
    search_at_random(stepper(small(**choices)), seed, 6)


@FEWER
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.one_of(3)
def test_a_sentence_is_translated_alike_in_any_company(choices, beam: int) -> None:
    model, symbols = small(**choices), Symbols(PIECES)
    sources = sentences([3, 6, 1, 4, 2])
    alone = [search(stepper(model), [s], options(beam, 10_000), symbols, nbest=beam)[0] for s in sources]
    for tokens in (16, 10_000):  # a small budget: sentences wait and enter
        among = search(stepper(model), sources, options(beam, tokens), symbols, nbest=beam)
        for one, other in zip(among, alone, strict=True):
            assert [h.tokens for h in one] == [h.tokens for h in other]
            assert np.allclose([h.score for h in one], [h.score for h in other], atol=1e-9)


def options(beam: int, tokens: int) -> Decoding:
    return Decoding(beam=beam, max_extra=3, tokens=tokens)


def test_a_sentence_whose_last_row_left_is_forgotten() -> None:
    rows = Rows(stepper(small()), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([2, 2, 0])
    assert rows.state.layout.keys.lengths_B.tolist() == [6, 4]
    assert len(rows.state.memory_SD) == len(rows.state.key_SD) == 10
    rows.read([3, 4, 5])
    rows.select([0])
    assert len(rows.state.memory_SD) == 6
    rows.read([7])
    rows.admit(sentences([9, 2], seed=4))
    assert rows.state.layout.keys.lengths_B.tolist() == [6, 9, 2]
    rows.read([6, PIECES, PIECES])


def test_rows_of_the_same_sentences_keep_the_memory_as_it_is() -> None:
    rows = Rows(stepper(small()), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([0, 0, 1, 1, 2, 2])
    rows.read([3, 4, 5, 6, 7, 8])
    before = rows.state
    rows.select([1, 0, 2, 2, 5, 4])
    assert rows.state.memory_SD is before.memory_SD
    assert rows.state.layout is before.layout
    rows.read([3, 4, 5, 6, 7, 8])


def test_no_gradient_is_kept() -> None:
    step = stepper(small())
    state, answer = step.step(step.start(SOURCES), np.array([PIECES] * 3))
    assert not any(x.requires_grad for x in (*state.carried, state.key_SD, state.memory_SD))
    assert answer.all().shape == (3, PIECES)


@FEWER
def test_weights_are_those_of_the_forward_pass(choices) -> None:
    model = small(**choices)
    rows = Rows(stepper(model, weights=True), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([0, 0, 1, 2, 2, 2])
    tokens = [3, 4, 5, 6, 7, 8]
    rows.state, answer = rows.step.step(rows.state, np.array(tokens))
    weight_NHS = answer.context()
    if choices["score"] == "none":
        assert weight_NHS is None
        return
    assert weight_NHS.shape == (6, 1, 6)
    for row, ((source, read), token) in enumerate(zip(rows.rows, tokens, strict=True)):
        with capture(["decoder.cross.weight"]) as heard:
            all_at_once(model, source, [*read, token])
        assert_near(weight_NHS[row, :, : len(source)], heard["decoder.cross.weight"][-1][:, -1], 1e-9)
        assert not weight_NHS[row, :, len(source) :].any()
    assert stepper(model).step(stepper(model).start(SOURCES), np.array([PIECES] * 3))[1].context() is None
