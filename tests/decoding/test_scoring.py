from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import Decoding
from regard.decoding.rows import Symbols
from regard.decoding.search import score, search
from regard.system.errors import UsageError
from tests.decoding.table_step import END, Table, TableStep

texts = st.lists(st.integers(1, 7), max_size=6)


@given(st.lists(st.tuples(texts, texts), max_size=8), st.integers(0, 1000), st.sampled_from([0.0, 0.6]))
def test_a_target_is_scored_token_by_token(pairs, seed, alpha):
    table = Table(seed=seed)
    sources = [np.array([*source, END]) for source, _ in pairs]
    decoding = Decoding(length_penalty=alpha, tokens=30)
    found = score(TableStep(table), sources, [np.array(target) for _, target in pairs], decoding, Symbols(table.start))
    for source, (_, target), hypothesis in zip(sources, pairs, found, strict=True):
        whole = [*target, END]
        wanted = [table.log_probabilities(source, whole[:i])[token] for i, token in enumerate(whole)]
        assert hypothesis.tokens == tuple(target)
        assert hypothesis.finished
        assert hypothesis.token_log_probabilities == tuple(wanted)
        assert hypothesis.score == pytest.approx(sum(wanted) / ((5 + len(whole)) / 6) ** alpha, rel=1e-12)


def test_what_search_found_scores_the_same():
    table, decoding = Table(), Decoding(beam=4)
    sources = [np.array([*range(1, n), END]) for n in (1, 5, 7)]
    found = [best for [best] in search(TableStep(table), sources, decoding, Symbols(table.start))]
    assert found == score(
        TableStep(table), sources, [np.array(h.tokens, np.int64) for h in found], decoding, Symbols(table.start)
    )


def test_an_impossible_target_scores_minus_infinity():
    class Never(Table):
        def log_probabilities(self, source, prefix):
            return np.array([-0.1, -3.0, -np.inf, -5.0])

    [found] = score(TableStep(Never(4)), [np.array([3, END])], [np.array([1, 2, 1])], Decoding(), Symbols(4))
    assert found.score == -np.inf
    assert found.tokens == (1, 2, 1)


def test_targets_that_do_not_fit_are_refused():
    table = Table()
    with pytest.raises(UsageError, match="1 sources but 0 targets"):
        score(TableStep(table), [np.array([END])], [], Decoding(), Symbols(table.start))
    with pytest.raises(UsageError, match="holds </s>"):
        score(TableStep(table), [np.array([END])], [np.array([3, END])], Decoding(), Symbols(table.start))
