"""The engine beside the model's own step, row by row, in every combination of words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from regard.system.kernels.packing import Precision
from tests.engine.engines import Beside, pair
from tests.laws.families import SOURCES, Family, held
from tests.models.small_models import PIECES, assert_near, sentences

PLAIN = Family("transformer", {})
STUDENT = Family("transformer", {"decoder_cell": "ssru"})


@pytest.mark.one_of(12)
@held("transformer", transformer=3)
def test_every_step_is_that_of_the_model(family: Family) -> None:
    """Rows are repeated, reordered and left out; sentences enter and leave meanwhile, one of a single token."""
    beside = Beside(family)
    beside.start(SOURCES)
    beside.step(np.full(4, PIECES))
    beside.select([0, 0, 1, 2, 3, 3])
    beside.read(6)
    beside.select([1, 0, 2, 5, 4])  # the third sentence leaves
    beside.read(5)
    beside.admit(sentences([6, 1], seed=4))
    beside.step(np.append(beside.random.integers(2, PIECES, 5), [PIECES, PIECES]))
    beside.select([2, 3, 5, 5, 6])
    beside.read(5)
    beside.read(5)
    assert beside.states[1].sentence_N.tolist() == beside.states[0].sentence_N.tolist() == [0, 1, 2, 2, 3]


@pytest.mark.parametrize("family", [PLAIN, STUDENT])
def test_many_steps_and_sentences_outgrow_every_room(family: Family) -> None:
    beside = Beside(family)
    beside.start(sentences([9, 30]))
    beside.step(np.full(2, PIECES))
    for now in range(40):
        rows = len(beside.states[1].lengths_N)
        beside.select([0, 0, *range(1, min(rows, 4))] if now % 3 == 0 else [*range(rows)][::-1][: rows - now % 2][::-1])
        if now % 5 == 4:
            beside.admit(sentences([now + 3], seed=now))
        rows = len(beside.states[1].lengths_N)
        new = beside.states[1].lengths_N == 0
        beside.step(np.where(new, PIECES, beside.random.integers(2, PIECES, rows)))


def test_rows_that_move_before_their_first_token_begin_at_zero() -> None:
    beside = Beside(STUDENT)
    beside.start(sentences([4]))
    beside.step(np.full(1, PIECES))
    beside.admit(sentences([6, 2]))
    beside.select([1, 1, 2])
    beside.step(np.full(3, PIECES))
    beside.read(3)


def test_a_head_may_have_values_of_another_size() -> None:
    beside = Beside(Family("transformer", {"d_k": 5, "d_v": 3, "decoder_heads": 2}))
    beside.start(SOURCES)
    beside.step(np.full(4, PIECES))
    beside.select([3, 2, 2])
    beside.read(3)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("family", [PLAIN, STUDENT])
def test_weights_change_nothing_and_do_not_depend_on_other_rows(family: Family, precision: Precision) -> None:
    """To the bit; of fewer bits they are near those of fp32."""
    (_, plain), (_, whole) = pair(family.choices, precision=precision), pair(family.choices)

    def steps(fast: Any, sources: Sequence[np.ndarray]) -> list[Any]:
        state, found = fast.start(sources), []
        for token in (PIECES, 3, 7):
            state, answer = fast.step(state, np.full(len(sources), token))
            found.append(answer)
        return found

    for answer, seen, near in zip(
        *(steps(one, SOURCES) for one in (plain, plain.with_weights(), whole.with_weights())), strict=True
    ):
        assert answer.context() is None
        assert (answer.all() == seen.all()).all()
        assert_near(seen.context(), near.context(), 1e-6 if precision == "fp32" else 0.02)
        assert_near(seen.context().sum(2), np.ones(seen.context().shape[:2]), 1e-5)
    together = steps(plain.with_weights(), SOURCES)
    for row, source in enumerate(SOURCES):
        for one, other in zip(steps(plain.with_weights(), [source]), together, strict=True):
            weight_HS, among_HS = one.context()[0], other.context()[row]
            assert (weight_HS == among_HS[:, : len(source)]).all()
            assert not among_HS[:, len(source) :].any()


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_the_states_of_a_recurrence_stay_fp32(precision: Precision) -> None:
    _, fast = pair(STUDENT.choices, precision=precision)
    state = fast.start(SOURCES)
    assert {(past.dtype.name, past.shape[1]) for past in state.past.of_layer} == {("float32", 12)}
    assert {memory.dtype.name for memory in state.memory.of_layer} == {"uint16"}


def test_a_source_without_tokens_has_no_memory() -> None:
    beside = Beside(PLAIN)
    beside.torch.weights = beside.fast.weights = False  # torch gives no row of such a source
    beside.start([*sentences([4]), np.zeros(0, np.int64)])
    beside.step(np.full(2, PIECES))
    beside.read(2)


def test_a_text_longer_than_learned_positions_is_refused() -> None:
    _, fast = pair({"positions": "learned"})
    with pytest.raises(ValueError, match="a sequence of 70 tokens is longer than the 64 learned positions"):
        fast.start(sentences([70]))


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_weights_that_are_not_numbers_are_seen(precision: Precision) -> None:
    _, fast = pair({}, broken=True, precision=precision)
    state = fast.start(SOURCES[:1])
    assert np.isnan(fast.step(state, np.array([PIECES]))[1].best(3)[1]).all()
