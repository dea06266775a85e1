import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import Decoding
from regard.decoding.hypotheses import NO_ROWS, NBest, Sentence, Symbols
from regard.decoding.search import search
from regard.decoding.strategies import Beam, Greedy
from regard.system.errors import RegardError, UsageError
from tests.decoding.table_step import END, Table, TableAnswer, TableStep
from tests.refusals import refused


def sentence(*tokens: int) -> np.ndarray:
    return np.array([*tokens, END], np.int64)


def symbols(table: Table, *without: int) -> Symbols:
    return Symbols(start=table.start, end=END, without=without)


def found_by(table: Table, sources, decoding: Decoding, *without: int, step=None, **options):
    """What a search over a table finds, by a step of its own unless one is given."""
    return search(step or TableStep(table), sources, decoding, symbols(table, *without), **options)


def penalised(log_probability: float, length: int, decoding: Decoding) -> float:
    base = length if decoding.length_penalty_by == "power" else (5 + length) / 6
    return log_probability / math.pow(base, decoding.length_penalty)


def allowed(table, source, tokens, decoding, least, without):
    """What a hypothesis may continue with, and how probable that is: every rule in plain loops."""
    n, found = decoding.no_repeat_ngram, {}
    seen = {tokens[i : i + n] for i in range(len(tokens) - n + 1)} if n else set()
    for token, log_probability in enumerate(table.log_probabilities(source, tokens)):
        repeats = (*tokens, token)[-n:] in seen if n and len(tokens) + 1 >= n else False
        if token not in without and not repeats and not (token == END and len(tokens) < least):
            found[token] = log_probability * (decoding.repetition_penalty if token in tokens else 1.0)
    return found


def textbook(table, source, decoding, nbest, without=(), prefix=()):
    """Beam search as a textbook has it, one sentence, plain loops; it never stops before it must.

    What is given costs nothing. Returns the n best ``(score, tokens, finished)``.
    """
    width, refill = decoding.beam, decoding.refill
    limit = len(source) + decoding.max_extra
    limit = min(limit, decoding.max_length or limit, math.ceil((decoding.max_share or limit) * len(source)))
    limit = max(limit, len(prefix) + 1)
    least = min(max(decoding.min_length, math.ceil(decoding.min_share * len(source))), limit - 1)
    live, finished = [((), 0.0)], []
    for length in range(1, limit + 1):
        continuations = []
        if decoding.stopping == "first" and len(finished) >= nbest:
            break
        for parent, (tokens, total) in enumerate(live):
            given = dict([(prefix[length - 1], 0.0)] if length <= len(prefix) else [])
            free = allowed(table, source, tokens, decoding, least, without)
            for token, log_probability in (given or free).items():
                continuations.append((-(total + log_probability), parent, -log_probability, token, tokens))
        before, live = live, []
        for rank, (negative, _, _, token, tokens) in enumerate(sorted(continuations)):
            if rank >= width and (not refill or token == END or len(live) == width):
                continue
            if token == END:
                finished.append((penalised(-negative, length, decoding), tokens, True))
            else:
                live.append(((*tokens, token), -negative))
        if not live and not finished:  # nothing was left for any of them
            live = before
            break
    if not finished:
        cut = [(penalised(total, max(1, len(tokens)), decoding), tokens, False) for tokens, total in live]
        finished = cut
    return sorted(finished, key=lambda entry: -entry[0])[:nbest]


def plain(hypotheses):
    return [(h.score, h.tokens, h.finished) for h in hypotheses]


tables = st.builds(
    Table,
    vocabulary=st.integers(3, 9),
    seed=st.integers(0, 10**6),
    sharpness=st.sampled_from([0.3, 1.5, 4.0]),
    end=st.sampled_from([-3.0, 0.0, 1.0, 3.0]),
)
sources = st.lists(st.lists(st.integers(1, 5), max_size=6).map(lambda tokens: sentence(*tokens)), max_size=7)
alphas = st.sampled_from([0.0, 0.6, 1.0, 2.0])


@given(tables, sources, st.integers(1, 6), alphas, st.data())
def test_beam_search_is_the_textbooks(table, sources, width, alpha, data):
    nbest = data.draw(st.integers(1, width))
    without = data.draw(st.sampled_from([(), (1,)]))
    token = st.integers(1, table.vocabulary - 1)
    prefixes = [data.draw(st.lists(token, max_size=3)) for _ in sources]
    refill = width > 1 and data.draw(st.booleans())
    decoding = Decoding(beam=width, length_penalty=alpha, max_extra=4, tokens=30, refill=refill)
    found = found_by(table, sources, decoding, *without, nbest=nbest, prefixes=prefixes)
    assert len(found) == len(sources)
    for source, hypotheses, prefix in zip(sources, found, prefixes, strict=True):
        wanted = textbook(table, source, decoding, nbest, without, prefix)
        assert plain(hypotheses) == [(pytest.approx(score, rel=1e-12), *rest) for score, *rest in wanted]


rules = st.fixed_dictionaries(
    {},
    optional={
        "min_length": st.integers(0, 12),
        "max_length": st.integers(1, 9),
        "min_share": st.sampled_from([0.5, 1.3]),
        "max_share": st.sampled_from([0.4, 1.0, 1.6]),
        "no_repeat_ngram": st.integers(1, 4),
        "repetition_penalty": st.sampled_from([1.2, 3.0]),
        "stopping": st.just("first"),
        "length_penalty_by": st.just("power"),
    },
).filter(lambda drawn: drawn.get("min_length", 0) <= drawn.get("max_length", 12))  # else it is refused


@given(tables, sources, st.integers(1, 5), alphas, rules, st.data())
def test_every_rule_and_each_pair_is_the_textbooks(table, sources, width, alpha, rules, data):
    nbest = data.draw(st.integers(1, width))
    prefixes = [data.draw(st.lists(st.integers(1, table.vocabulary - 1), max_size=3)) for _ in sources]
    refill = width > 1 and data.draw(st.booleans())
    decoding = Decoding(beam=width, length_penalty=alpha, max_extra=4, tokens=30, refill=refill, **rules)
    found = found_by(table, sources, decoding, nbest=nbest, prefixes=prefixes)
    for source, hypotheses, prefix in zip(sources, found, prefixes, strict=True):
        wanted = textbook(table, source, decoding, nbest, prefix=prefix)
        assert plain(hypotheses) == [(pytest.approx(score, rel=1e-12), *rest) for score, *rest in wanted]
        assert [hypotheses] == found_by(table, [source], decoding, nbest=nbest, prefixes=[prefix])


def test_a_longest_output_holds_beside_a_limit_and_a_prefix_fits_in_any_case():
    step, decoding = TableStep(Table(end=-30.0)), Decoding(beam=2, max_length=3)
    [[found]] = search(step, [sentence(1)], decoding, symbols(step.table), limits=[9])
    assert (len(found.tokens), found.finished) == (3, False)
    [[found]] = search(step, [sentence(1)], decoding, symbols(step.table), prefixes=[(2, 3, 4, 5, 6)])
    assert found.tokens[:5] == (2, 3, 4, 5, 6)


@given(tables, sources.filter(bool))
def test_a_beam_one_wide_chooses_as_greedy_does(table, sources):
    rows = NO_ROWS.open([Sentence(i, source, 9, NBest(1)) for i, source in enumerate(sources)], table.start)
    answer = TableAnswer(np.array([table.log_probabilities(source, ()) for source in sources]))
    one, other = Beam(1)(rows, answer), Greedy()(rows, answer)
    assert one.parents().tolist() == other.parents().tolist()
    assert one.token_M.tolist() == other.token_M.tolist() == Greedy(scores=False)(rows, answer).token_M.tolist()
    assert one.token_log_probability_M.tolist() == other.token_log_probability_M.tolist()


@given(tables, sources, st.integers(1, 4), st.randoms())
def test_neither_company_nor_order_nor_budget_matter(table, sources, width, random):
    """Law *refilling*: to the bit."""
    usual = Decoding(beam=width, max_extra=6)
    alone = [found_by(table, [source], usual, nbest=width)[0] for source in sources]
    order = list(range(len(sources)))
    random.shuffle(order)
    for budget in (16, 40, 100_000):
        decoding = Decoding(beam=width, max_extra=6, tokens=budget)
        found = found_by(table, [sources[i] for i in order], decoding, nbest=width)
        assert found == [alone[i] for i in order]


@given(tables, sources.filter(bool), st.integers(1, 4))
def test_hypotheses_add_up_and_keep_to_the_limit(table, sources, width):
    decoding = Decoding(beam=width, max_extra=3)
    for source, found in zip(sources, found_by(table, sources, decoding, 1, nbest=width), strict=True):
        assert 1 <= len(found) <= width
        assert len({h.tokens for h in found}) == len(found)
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        assert all(h.finished for h in found) or not any(h.finished for h in found)
        for h in found:
            assert len(h.tokens) + h.finished <= len(source) + 3
            assert len(h.tokens) + h.finished == len(h.token_log_probabilities)
            assert h.finished or len(h.tokens) == len(source) + 3
            assert sum(h.token_log_probabilities) == pytest.approx(h.log_probability, rel=1e-12)
            assert END not in h.tokens
            assert 1 not in h.tokens


def test_an_immediate_end_is_an_empty_output():
    table = Table(end=100.0)
    step = TableStep(table)
    assert [h.tokens for [h] in search(step, [sentence(), sentence(3, 4)], Decoding(), symbols(table))] == [(), ()]
    assert step.calls == ["start", "step"]


def test_no_sources_ask_nothing_of_the_model():
    step = TableStep(Table())
    assert search(step, [], Decoding(), symbols(step.table)) == []
    assert step.calls == []


def test_where_every_token_is_excluded_the_output_is_empty_and_unfinished():
    table = Table(vocabulary=2)
    for width in (1, 2):
        [[found]] = search(_Masked(table), [sentence(3)], Decoding(beam=width), symbols(table, 0, 1))
        assert found.tokens == ()
        assert not found.finished


class _Masked(TableStep):
    """Excludes by minus infinity instead of leaving columns out."""

    def step(self, state, tokens_N):
        state, answer = super().step(state, tokens_N)
        return state, _MaskedAnswer(answer.all())


class _MaskedAnswer(TableAnswer):
    def best(self, k, without=()):
        table_NV = self._table_NV.copy()
        table_NV[:, list(without)] = -np.inf
        return TableAnswer(table_NV).best(k)


@given(tables, sources, st.integers(1, 4))
def test_minus_infinity_excludes_as_a_missing_column_does(table, sources, width):
    decoding = Decoding(beam=width, max_extra=4)
    found = found_by(table, sources, decoding, 1, step=_Masked(table), nbest=width)
    assert found == found_by(table, sources, decoding, 1, nbest=width)


class _Coarse(Table):
    """Log-probabilities in whole halves, exact in floating point: ties everywhere."""

    def log_probabilities(self, source, prefix):
        return np.ceil(super().log_probabilities(source, prefix) * 2.0) / 2.0


@given(st.integers(1, 40), alphas, st.integers(0, 10**6), st.sampled_from([0.0, 1.0]))
def test_ties_go_to_the_smaller_parent_then_the_smaller_token(width, alpha, seed, sharpness):
    table, source = _Coarse(9, seed, sharpness), sentence(3)
    decoding = Decoding(beam=width, length_penalty=alpha, max_extra=2)
    [found] = search(TableStep(table), [source], decoding, symbols(table), nbest=width)
    wanted = textbook(table, source, decoding, width)
    assert plain(found) == [(pytest.approx(score), *rest) for score, *rest in wanted]


def test_a_row_that_cannot_improve_leaves_before_the_limit():
    """The bound: rows go as soon as even the longest output allowed could not lift them over the n best."""
    step = TableStep(Table(sharpness=3.0, end=2.0))
    search(step, [sentence(2, 3)], Decoding(beam=5, max_extra=200), symbols(step.table))
    assert len(step.rows) < 50
    assert step.rows[-1] < 5


@pytest.mark.parametrize("nbest", [4, 0])
def test_more_hypotheses_than_the_beam_are_refused_at_once(nbest):
    with refused(UsageError, "nbest", str(nbest), "3"):
        search(TableStep(Table()), [sentence(2)], Decoding(beam=3), symbols(Table()), nbest=nbest)


@pytest.mark.parametrize("width", [1, 3])
def test_a_model_that_answers_with_no_numbers_is_named(width):
    class Broken(Table):
        def log_probabilities(self, source, prefix):
            return np.full(self.vocabulary, np.nan)

    with refused(RegardError, "log-probabilities"):
        search(TableStep(Broken()), [sentence(2)], Decoding(beam=width), symbols(Table()))
