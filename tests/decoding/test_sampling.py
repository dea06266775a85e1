from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import Decoding
from regard.decoding.constraints import tokens_so_far
from regard.decoding.hypotheses import NO_ROWS, Choice, NBest, Sentence, Symbols
from regard.decoding.search import Scheduler, sample, search
from regard.decoding.strategies import Beam, random_sampling, uniforms
from regard.system.errors import RegardError, UsageError
from regard.system.keys import key
from tests.decoding.table_step import END, Table, TableAnswer, TableStep
from tests.refusals import refused

SETTINGS = [
    {},
    {"temperature": 1.6, "top_k": 4},
    {"top_p": 0.7, "min_p": 0.05},
    {"typical": 0.6, "repetition_penalty": 1.5},
]
RULES = {"min_length": 3, "no_repeat_ngram": 2}
sources = st.lists(st.lists(st.integers(1, 5), max_size=5).map(lambda ids: np.array([*ids, END])), max_size=6)
prompts = st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=5), max_size=6)


def symbols(table: Table, *without: int) -> Symbols:
    return Symbols(table.start, END, without)


def drawn(table: Table, sources, decoding: Decoding, *without: int, step=None, seed: int = 1, **options):
    """Samples of a table, by a step of its own unless one is given."""
    return sample(step or TableStep(table), sources, decoding, symbols(table, *without), seed=seed, **options)


@given(sources, st.integers(0, 1000), st.sampled_from([*SETTINGS, RULES]), st.integers(1, 3), st.randoms())
def test_neither_company_nor_budget_nor_order_matter(sources, seed, settings, samples, random):
    """Law *refilling*: what is drawn is a function of seed, index, sample and step."""
    table = Table(seed=seed)
    found = drawn(table, sources, Decoding(**settings, max_extra=6), seed=seed, samples=samples)
    for budget in (16, 40):
        decoding = Decoding(**settings, max_extra=6, tokens=budget)
        assert found == drawn(table, sources, decoding, seed=seed, samples=samples)
    choose, order = random_sampling(Decoding(**settings), seed), list(range(len(sources)))
    random.shuffle(order)
    for index in order:
        decoding = Decoding(**settings, max_extra=6, beam=1)
        scheduler = Scheduler(TableStep(table), choose, decoding, symbols(table))
        scheduler.put(index, sources[index], len(sources[index]) + 6, sample=samples - 1)
        [alone] = scheduler.run()
        assert alone.best.hypotheses == [found[index][samples - 1]]


def test_another_seed_index_or_sample_draws_another_output():
    table, source = Table(end=-30.0), np.array([2, END])  # none ends early: twelve long outputs are twelve
    found = [
        hypothesis.tokens
        for seed in (1, 2)
        for line in drawn(table, [source, source], Decoding(), seed=seed, samples=3)
        for hypothesis in line
    ]
    assert len(set(found)) == len(found) == 12


@given(sources, st.integers(0, 1000), st.sampled_from([(), (1,)]))
def test_without_temperature_it_is_greedy_search(sources, seed, without):
    table = Table(seed=seed)
    cold = Decoding(temperature=0.0, beam=1, max_extra=5, top_k=3, top_p=0.5)
    found = drawn(table, sources, cold, *without, seed=seed, samples=2)
    greedy = search(TableStep(table), sources, cold, symbols(table, *without))
    assert found == [[best, best] for [best] in greedy]


@given(prompts, st.integers(0, 1000))
def test_what_a_rule_bans_is_never_drawn_and_the_rest_as_often_as_without(prompts, seed):
    """Every token is that of a plain draw from what the rules leave; the prompt's n-grams count."""
    table, decoding = Table(seed=seed), Decoding(**RULES)
    texts = [np.array([*prompt[:-1]], np.int64) for prompt in prompts]
    firsts = [prompt[-1] for prompt in prompts]
    found = drawn(table, texts, decoding, seed=seed, firsts=firsts, limits=[9] * len(texts))
    for index, (prompt, [output]) in enumerate(zip(prompts, found, strict=True)):
        whole = [*prompt, *output.tokens, *([END] if output.finished else [])]
        for step in range(len(prompt), len(whole)):
            before = whole[:step]
            banned = {after for last, after in pairwise(before) if last == before[-1]}
            banned |= {END} if step - len(prompt) < 3 else set()
            line = table.answered(tuple(prompt[:-1]), tuple(before[len(prompt) - 1 :]))
            uniform = (key(seed, "sample", index, 0, step - len(prompt)) >> 11) * 2.0**-53
            assert TableAnswer(line[None]).sample(np.array([uniform]), decoding, tuple(banned)) == [whole[step]]


def test_log_probabilities_are_the_models_own():
    table, source = Table(end=0.0), np.array([2, 5, END])
    decoding = Decoding(temperature=2.0, top_p=0.9, repetition_penalty=1.4)
    for [hypothesis] in drawn(table, [source] * 20, decoding, seed=4):
        whole = hypothesis.tokens + (END,) * hypothesis.finished
        wanted = [table.log_probabilities(source, whole[:i])[token] for i, token in enumerate(whole)]
        assert hypothesis.token_log_probabilities == tuple(wanted)
        assert 1 not in hypothesis.tokens or 1 not in symbols(table).without


@given(prompts, st.integers(0, 1000), st.integers(1, 3))
def test_prompts_begin_with_their_last_token(prompts, seed, width):
    """A language model: what it has read is one text, whether it stands before or behind the first token."""
    table = Table(seed=seed)
    parts, firsts = [np.array(prompt[:-1], np.int64) for prompt in prompts], [prompt[-1] for prompt in prompts]
    limits = [3 + len(prompt) for prompt in prompts]
    decoding = Decoding(beam=width, tokens=40)
    found = search(TableStep(table), parts, decoding, symbols(table), firsts=firsts, limits=limits)
    for prompt, limit, [hypothesis] in zip(prompts, limits, found, strict=True):
        whole = hypothesis.tokens + (END,) * hypothesis.finished
        wanted = [table.log_probabilities(prompt, whole[:i])[token] for i, token in enumerate(whole)]
        assert hypothesis.token_log_probabilities == tuple(wanted)
        assert len(whole) <= limit
        assert hypothesis.finished or len(whole) == limit


def test_a_model_may_write_from_nothing_and_keeps_to_the_budget():
    table = Table(end=-3.0)
    for firsts in (None, [END] * 30):
        step = TableStep(table)
        nothing, options = [np.zeros(0, np.int64)] * 30, {"firsts": firsts, "limits": [8] * 30}
        found = drawn(table, nothing, Decoding(tokens=64), step=step, **options)
        assert len({line[0].tokens for line in found}) > 20
        assert max(step.rows) == 64 // 8


def test_a_prompt_is_part_of_what_must_not_be_repeated_and_a_source_is_not():
    table = Table(4, sharpness=0.01, end=-30.0)
    strict = Decoding(repetition_penalty=10.0, temperature=0.01)
    [[found]] = drawn(table, [np.array([1, 2])], strict, firsts=[1], limits=[1])
    assert found.tokens == (3,)
    free = drawn(table, [np.array([1, 2])] * 9, Decoding(repetition_penalty=10.0, top_k=3), limits=[1] * 9)
    assert {line[0].tokens for line in free} & {(1,), (2,)}


def test_what_a_row_has_seen():
    sentences = [
        Sentence(0, np.array([5, 6]), 9, NBest(1), first=7),
        Sentence(1, np.array([5, 6, 7]), 9, NBest(1)),
        Sentence(2, np.zeros(0, np.int64), 9, NBest(1), first=3),
    ]
    rows = NO_ROWS.open(sentences, 8)
    assert rows.token_N.tolist() == [7, 8, 3]
    assert tokens_so_far(rows).tolist() == [[5, 6, 7], [-1, -1, -1], [-1, -1, 3]]
    grown = rows.extend(Choice(None, np.array([1, 2, 4]), np.zeros(3))).extend(Choice(None, np.arange(3), np.zeros(3)))
    assert tokens_so_far(grown).tolist() == [[5, 6, 7, 1, 0], [-1, -1, -1, 2, 1], [-1, -1, 3, 4, 2]]
    shorter = grown.keep(np.array([True, False, False])).open(sentences[2:], 8)
    assert tokens_so_far(shorter).tolist() == [[5, 6, 7, 1, 0], [-1, -1, -1, -1, 3]]
    assert tokens_so_far(NO_ROWS.open(sentences[1:2], 8)).shape == (1, 0)


def test_numbers_are_even_and_unlike_each_other():
    rows = NO_ROWS.open([Sentence(i, np.array([1]), 9, NBest(1), sample=j) for i in range(50) for j in range(40)], 8)
    uniform_N = uniforms(rows, 3)
    assert len(set(uniform_N.tolist())) == 2000
    assert 0 <= uniform_N.min() <= uniform_N.max() < 1
    assert abs(np.histogram(uniform_N, 10, (0, 1))[0] - 200).max() < 70


def test_where_every_token_is_excluded_the_output_is_empty_and_unfinished():
    table = Table(vocabulary=2)
    [[found]] = drawn(table, [np.array([1, END])], Decoding(), 0, 1)
    assert found.tokens == ()
    assert not found.finished


def test_what_does_not_fit_is_refused():
    table, source = Table(), np.array([2, END])
    for where, holds, options in (
        ("samples", (), {"samples": 0}),
        ("firsts", ("1", "2"), {"firsts": [2, 3]}),
        ("limits", (), {"limits": [0]}),
    ):
        with refused(UsageError, where, *holds):
            drawn(table, [source], Decoding(), **options)


def test_a_model_that_answers_with_no_numbers_is_named():
    class Answer:
        def sample(self, uniform_N, decoding, without=(), seen_NS=None, banned_NF=None):
            return np.zeros(len(uniform_N), np.int64)

        def of(self, tokens_N):
            return np.full(len(tokens_N), np.nan)

    rows = NO_ROWS.open([Sentence(0, np.array([1]), 9, NBest(1))], 8)
    with refused(RegardError, "log-probabilities"):
        random_sampling(Decoding(), 1)(rows, Answer())


@pytest.mark.usefixtures("watch_shapes")
def test_letters_mean_one_size():
    table, decoding = Table(), Decoding(repetition_penalty=1.2, tokens=30)
    texts = [np.array([*range(1, n), END]) for n in (3, 7, 5)]
    drawn(table, texts, decoding, samples=3, firsts=[1, 2, 3])


def tokens_of(step, source, decoding, symbols, seed, sample=0):
    """Every token of a sample as it is drawn."""
    choose = random_sampling(decoding, seed, symbols.without)
    scheduler = Scheduler(step, choose, decoding.model_copy(update={"beam": 1}), symbols)
    scheduler.put(0, source, sample=sample)
    return scheduler.tokens()


@given(sources.filter(bool), st.integers(0, 1000), st.integers(1, 3))
def test_tokens_come_as_they_are_drawn_and_make_the_same_outputs(sources, seed, samples):
    table, decoding = Table(seed=seed), Decoding(max_extra=5, tokens=30)
    for number, wanted in enumerate(drawn(table, sources[:1], decoding, seed=seed, samples=samples)[0]):
        heard = tokens_of(TableStep(table), sources[0], decoding, symbols(table), seed, number)
        assert wanted.tokens + (END,) * wanted.finished == tuple(heard)


def test_tokens_come_before_the_next_step():
    step = TableStep(Table(end=-100.0))
    tokens = tokens_of(step, np.array([2, END]), Decoding(max_extra=4), symbols(step.table), seed=1)
    counts = [(count, len(step.rows)) for count, _ in enumerate(tokens, 1)]
    assert counts == [(count, count) for count in range(1, 7)]


def test_an_output_without_a_token_has_none():
    table = Table(vocabulary=2)
    assert list(tokens_of(TableStep(table), np.array([1, END]), Decoding(), symbols(table, 0, 1), seed=1)) == []


def test_a_beam_cannot_be_followed():
    scheduler = Scheduler(TableStep(Table()), Beam(2), Decoding(beam=2), symbols(Table()))
    with refused(UsageError, "decoding.beam"):
        next(scheduler.tokens())


@given(sources.filter(bool), st.integers(0, 1000))
def test_outputs_end_where_they_are_stopped(sources, seed):
    """As if the same output had been cut behind the first token that stops."""
    table, decoding = Table(seed=seed), Decoding(max_extra=8)
    free = drawn(table, sources, decoding, seed=seed)
    stopped = drawn(table, sources, decoding, seed=seed, stop=lambda tokens: tokens[-1] in (3, 4))
    for [whole], [part] in zip(free, stopped, strict=True):
        places = [i for i, token in enumerate(whole.tokens) if token in (3, 4)]
        if not places:
            assert part == whole
            continue
        length = places[0] + 1
        assert part.tokens == whole.tokens[:length]
        assert part.token_log_probabilities == whole.token_log_probabilities[:length]
        assert not part.finished


def test_a_beam_keeps_what_was_stopped_beside_what_finished():
    table = Table(seed=2, end=0.0)
    stop = lambda tokens: tokens[-1] == 3  # noqa: E731
    scheduler = Scheduler(TableStep(table), Beam(4), Decoding(beam=4), symbols(table), stop=stop)
    scheduler.put(0, np.array([2, END]), 8, nbest=4)
    [sentence] = scheduler.run()
    assert len(sentence.best.hypotheses) == 4
    for hypothesis in sentence.best.hypotheses:
        assert 3 not in hypothesis.tokens[:-1]
        assert hypothesis.finished == (hypothesis.tokens[-1:] != (3,))
