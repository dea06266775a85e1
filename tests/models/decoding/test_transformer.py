import numpy as np
import pytest

from regard.models.decoding import transformer
from regard.models.decoding.transformer import TransformerStepper
from tests.models.decoding.rows_by_hand import SOURCES, Rows, compare_weights, leave_and_enter, search_at_random
from tests.models.small_models import PIECES, section, small


@pytest.mark.one_of(10)
@pytest.mark.parametrize("choices", [{}, {"norm_place": "pre", "positions": "learned", "d_k": 2, "d_v": 5}])
@pytest.mark.parametrize("seed", range(4))
def test_a_random_search_is_the_forward_pass_of_each_row(choices, seed: int) -> None:
    search_at_random(TransformerStepper(small(section(**choices))), seed, 8)


def test_arenas_grow_beyond_their_first_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "ROOM", 2)
    rows = Rows(TransformerStepper(small()), SOURCES)
    for length in range(9):
        rows.read([PIECES if not length else 2 + (length + row) % 7 for row in range(len(rows.rows))])
        if length == 3:
            rows.select([2, 2, 1, 1, 1])
    assert rows.state.pasts[0].stride >= 9


def test_a_sentence_whose_last_row_left_is_forgotten() -> None:
    leave_and_enter(TransformerStepper(small()), lambda state: state.memory_lengths_B.tolist())


def test_select_nothing_changed() -> None:
    rows = Rows(TransformerStepper(small()), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([0, 1, 2])
    rows.read([3, 4, 5])


def test_no_gradient_is_kept() -> None:
    step = TransformerStepper(small())
    state, answer = step.step(step.start(SOURCES), np.array([PIECES] * 3))
    assert not state.pasts[0].key_SHK.requires_grad
    assert answer.all().shape == (3, PIECES)


def test_cross_attention_weights_are_those_of_the_forward_pass() -> None:
    compare_weights(small(), "decoder.1.cross.weight", heads=3)
