from typing import Any

import numpy as np
import pytest

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols
from regard.decoding.search import search
from regard.models.decoding import stepper
from tests.laws.families import FEW
from tests.models.decoding.rows_by_hand import SOURCES, Rows, compare_weights, leave_and_enter, search_at_random
from tests.models.small_models import PIECES, sentences
from tests.models.small_models import rnn as small

FEWER = pytest.mark.parametrize("choices", FEW["rnn"], ids=lambda c: f"{c['cell']}-{c['score']}-{c['input_feeding']}")


@FEWER
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.one_of(18)
def test_a_random_search_is_the_forward_pass_of_each_row(choices, seed: int) -> None:
    search_at_random(stepper(small(**choices)), seed, 6)


@FEWER
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.one_of(14)
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
    def held(state: Any) -> list[int]:
        lengths: list[int] = state.layout.keys.lengths_B.tolist()
        assert len(state.memory_SD) == len(state.key_SD) == sum(lengths)
        return lengths

    leave_and_enter(stepper(small()), held)


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


@pytest.mark.one_of(3)
@FEWER
def test_weights_are_those_of_the_forward_pass(choices) -> None:
    model = small(**choices)
    if choices["score"] != "none":
        return compare_weights(model, "decoder.cross.weight", heads=1)
    step = stepper(model, weights=True)
    assert step.step(step.start(SOURCES), np.array([PIECES] * 3))[1].context() is None
