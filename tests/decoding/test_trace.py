import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols, Trace
from regard.decoding.search import search
from tests.decoding.table_step import END, Table, TableStep


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6), st.integers(0, 1000), st.integers(1, 4))
def test_the_tree_can_be_grown_again_from_the_trace(lengths, seed, width):
    """Every row's history, walked from the trace, has the model's log-probabilities, and the best one is the result."""
    table, trace = Table(seed=seed, end=0.0), Trace(k=3, without=(1,))
    sources = [np.array([*range(1, n), END]) for n in lengths]
    decoding = Decoding(beam=width, max_extra=4, tokens=32)
    found = search(TableStep(table), sources, decoding, Symbols(table.start), nbest=width, trace=trace)
    assert found == search(TableStep(table), sources, decoding, Symbols(table.start), nbest=width)
    for index, source in enumerate(sources):
        entering, finished, left = [((), 0.0)], [], []
        for step in trace[index]:
            for (tokens, _), ids, logs in zip(entering, step.candidates, step.candidate_log_probabilities, strict=True):
                line = table.log_probabilities(source, tokens)
                order = [token for token in np.argsort(-line) if token != 1][:3]
                assert ids == tuple(order)
                assert logs == tuple(line[order])
            chosen = []
            for parent, token, log in zip(step.parents, step.tokens, step.token_log_probabilities, strict=True):
                tokens, total = entering[parent]
                assert log == table.log_probabilities(source, tokens)[token]
                chosen.append(((*tokens, token), total + log))
            assert step.log_probabilities == tuple(total for _, total in chosen)
            finished += [c for c, fate in zip(chosen, step.fates, strict=True) if fate == "finished"]
            left += [c for c, fate in zip(chosen, step.fates, strict=True) if fate == "left"]
            live = [c for c, fate in zip(chosen, step.fates, strict=True) if fate == "live"]
            assert [row for row in step.rows if row >= 0] == list(range(len(live)))
            assert [row >= 0 for row in step.rows] == [fate == "live" for fate in step.fates]
            entering = live
        assert not entering
        for hypothesis in found[index]:
            ending, where = ((END,), finished) if hypothesis.finished else ((), left)
            assert (hypothesis.tokens + ending, hypothesis.log_probability) in where


def test_a_trace_is_plain_values():
    table, trace = Table(), Trace(k=2)
    search(TableStep(table), [np.array([2, END])], Decoding(beam=2, max_extra=2), Symbols(table.start), trace=trace)
    steps = json.loads(json.dumps([asdict(step) for step in trace[0]]))
    assert [step["tokens"] for step in steps] == [list(step.tokens) for step in trace[0]]
    with pytest.raises(KeyError):
        trace[1]
