import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import Decoding
from regard.decoding.automaton import Automaton
from regard.decoding.hypotheses import NO_ROWS, Choice, NBest, Sentence
from regard.decoding.terms import Letters, Term, Terms
from tests.decoding.table_step import Table, TableStep
from tests.decoding.test_search import found_by, sentence

SIZE = 6
TOKENS = st.integers(1, 3)
forms = st.lists(st.lists(TOKENS, min_size=1, max_size=3).map(tuple), min_size=1, max_size=2, unique=True).map(tuple)
term_lists = st.lists(
    st.builds(Term, forms, st.integers(1, 2)), min_size=1, max_size=3, unique_by=lambda one: one.forms
)
NO_LETTERS = Letters(np.zeros(SIZE + 1, np.bool_), np.zeros(SIZE + 1, np.bool_))


@st.composite
def letters(draw):
    """Of tokens and forms that can stand anywhere: token 3 begins with no letter."""
    begin, end = (np.array([False, *draw(st.tuples(st.booleans(), st.booleans())), *[False] * 4]) for _ in range(2))
    return Letters(begin, end)


@st.composite
def several(draw, given=None):
    """The terms of a sentence, each with a form that can begin behind any token."""
    own, one = draw(letters()) if given is None else given, []
    for term in draw(term_lists):
        free = any(not own.begin_V[form[0]] for form in term.forms)
        one.append(term if free else Term((*term.forms, (3, *term.forms[0])), term.times))
    return Terms(tuple(one), own)


def count(tokens, term, letters):
    """How often a term is in an output, word by word, no token twice: the one that ends first is taken."""
    found, begin = 0, 0
    for end in range(1, len(tokens) + 1):
        for form in term.forms:
            first = end - len(form)
            if first < begin or tuple(tokens[first:end]) != form:
                continue
            before = first > 0 and letters.end_V[tokens[first - 1]] and letters.begin_V[form[0]]
            behind = end < len(tokens) and letters.begin_V[tokens[end]] and letters.end_V[form[-1]]
            if not before and not behind:
                found, begin = found + 1, end
                break
    return found


def contains(tokens, terms):
    return all(count(tokens, term, terms.letters) >= term.times for term in terms.terms)


def progress_of(tokens, terms):
    progress = terms.start
    for token in tokens:
        progress = terms.after(progress, token, int(terms.letters.kind_V[token]))
    return progress


@given(several(), st.lists(st.integers(1, 5), max_size=12))
def test_progress_is_what_a_plain_count_says(terms, tokens):
    left = terms.left(progress_of(tokens, terms))
    pairs = zip(terms.terms, left, strict=True)
    assert all(max(0, term.times - count(tokens, term, terms.letters)) == times for term, times in pairs)
    assert (terms.need(progress_of(tokens, terms)) == 0) == contains(tokens, terms)


@given(several(), st.lists(st.integers(1, 5), max_size=8))
def test_a_wanted_token_makes_what_is_needed_fewer(terms, tokens):
    progress = progress_of(tokens, terms)
    while need := terms.need(progress):
        watched, wanted = terms.watched(progress)
        kind_V = terms.letters.kind_V
        progress = min((terms.after(progress, t, int(kind_V[t])) for t in watched[:wanted]), key=terms.need)
        assert terms.need(progress) < need


@given(several(), st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=6), min_size=1, max_size=5))
def test_states_read_from_histories_are_those_that_rows_carry(terms, outputs):
    automaton = Automaton(terms.letters)
    longest = max(map(len, outputs))
    one = [Sentence(i, sentence(1), 99, NBest(1), terms=terms) for i in range(len(outputs))]
    rows = NO_ROWS.open(one, SIZE)
    state_N = np.array([automaton.start(terms) for _ in outputs])
    for place in range(longest):
        token_N = np.array([output[place % len(output)] for output in outputs])
        rows = rows.extend(Choice(None, token_N, np.zeros(len(outputs))))
        state_N = automaton.after(state_N, token_N[:, None])[:, 0]
        assert state_N.tolist() == automaton.of(rows).tolist()
    tokens = rows.with_histories().tokens_NT[:, :longest].tolist()
    assert automaton.need(state_N).tolist() == [terms.need(progress_of(line, terms)) for line in tokens]


source_lists = st.lists(
    st.lists(st.integers(1, 5), max_size=4).map(lambda tokens: sentence(*tokens)), min_size=1, max_size=6
)
tables = st.builds(Table, vocabulary=st.just(SIZE), seed=st.integers(0, 10**6), end=st.sampled_from([-3.0, 0.5, 3.0]))


@given(tables, source_lists, st.integers(1, 6), st.data())
def test_what_can_be_met_is_met_in_every_output(table, sources, width, data):
    own = data.draw(letters())
    asked = data.draw(st.lists(st.none() | several(own), min_size=len(sources), max_size=len(sources)))
    nbest = data.draw(st.integers(1, width))
    prefixes = [data.draw(st.lists(TOKENS, max_size=2).map(tuple)) for _ in sources]
    rules = data.draw(st.fixed_dictionaries({}, optional={"max_length": st.integers(5, 9), "min_length": TOKENS}))
    rules |= data.draw(st.sampled_from([{}, {"max_length": 1, "min_length": 1}, {"max_length": 3, "min_length": 2}]))
    refill = width > 1 and data.draw(st.booleans())
    decoding = Decoding(beam=width, max_extra=3, refill=refill, **rules)
    options = {"nbest": nbest, "prefixes": prefixes, "terms": asked}
    found = found_by(table, sources, decoding, **options)
    for hypotheses, terms, prefix in zip(found, asked, prefixes, strict=True):
        for one in hypotheses:
            assert one.tokens[: len(prefix)] == prefix
            assert terms is None or contains(one.tokens, terms)
            assert sum(one.token_log_probabilities) == pytest.approx(one.log_probability)


@given(tables, source_lists, st.integers(1, 5), st.sampled_from([0.0, 2.0]), st.data())
def test_neither_company_nor_its_terms_matter(table, sources, width, bonus, data):
    own = data.draw(letters())
    asked = data.draw(st.lists(st.none() | several(own), min_size=len(sources), max_size=len(sources)))
    order = data.draw(st.permutations(range(len(sources))))
    decoding = Decoding(beam=width, max_extra=3, term_bonus=bonus, refill=width > 1 and data.draw(st.booleans()))
    alone = [
        found_by(table, [source], decoding, nbest=width, terms=[terms])[0]
        for source, terms in zip(sources, asked, strict=True)
    ]
    for budget in (16, 60, 10**6):
        tight = decoding.model_copy(update={"tokens": budget})
        some = [asked[i] for i in order]
        assert found_by(table, [sources[i] for i in order], tight, nbest=width, terms=some) == [alone[i] for i in order]
    # A sentence without terms among some with them is found as if nobody had asked for any.
    assert alone == [
        found_by(table, [source], decoding, nbest=width)[0] if terms is None else found
        for source, terms, found in zip(sources, asked, alone, strict=True)
    ]


def test_a_word_that_goes_on_does_not_meet_a_term_and_one_that_is_asked_for_twice_comes_twice():
    begin, end = np.array([False] * 7), np.array([False] * 7)
    begin[2] = end[[1, 2]] = True  # 1 is " Haus", 2 is "boot", 3 a dot
    terms = Terms((Term(((1,),), 2),), Letters(begin, end))
    outputs = {(1, 3, 1): 0, (1, 2, 1): 1, (1, 2): 2, (1, 1): 0, (3,): 2}
    assert {tokens: terms.need(progress_of(tokens, terms)) for tokens in outputs} == outputs
    step = TableStep(Table(SIZE, end=9.0))
    for width in (1, 2, 5):
        [[found]] = found_by(step.table, [sentence(4)], Decoding(beam=width), terms=[terms])
        assert found.finished
        assert count(found.tokens, terms.terms[0], terms.letters) >= 2


def test_a_search_steps_no_more_rows_than_it_may_have():
    terms = Terms((Term(((1, 2, 3), (3, 3))), Term(((2, 1),))), NO_LETTERS)
    table = Table(SIZE)
    for width, most in ((1, 4), (3, 5), (6, 6)):
        step = TableStep(table)
        found_by(table, [sentence(4)], Decoding(beam=width), step=step, terms=[terms])
        assert terms.banks == 5
        assert max(step.rows) <= most == max(width, min(5, width + 3))
