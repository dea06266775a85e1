import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.scoring import score
from tests.decoding.table_step import END, Table, TableStep

texts = st.lists(st.integers(1, 5), max_size=6).map(lambda ids: np.array([*ids, END]))


@given(st.lists(st.tuples(texts, texts), max_size=8), st.integers(0, 99), st.integers(1, 40))
def test_every_token_has_the_models_probability_whatever_is_read_beside_it(pairs, seed, room):
    table = Table(seed=seed)
    step = TableStep(table)
    found = score(step, [one for one, _ in pairs], [two for _, two in pairs], table.start, room)
    assert len(found) == len(pairs)
    for (source, output), log_probability_T in zip(pairs, found, strict=True):
        before = [tuple(output[:place].tolist()) for place in range(len(output))]
        wanted = [table.log_probabilities(source, one)[token] for one, token in zip(before, output, strict=True)]
        assert log_probability_T.tolist() == wanted
    assert step.fullest <= max(room, *(len(one) for one, _ in pairs), 0) if pairs else step.calls == []


@pytest.mark.usefixtures("watch_shapes")
def test_letters_mean_one_size():
    outputs = [np.array([2, 3, END]), np.array([END]), np.array([4, END])]
    score(TableStep(Table()), [np.array([1, END])] * 3, outputs, Table().start, 100)
