"""Diverse beam search against a plain statement of its rule, and as a beam where nothing is diverse."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols, Trace
from regard.decoding.search import search
from regard.system.errors import UsageError
from tests.decoding.table_step import END, Table, TableStep
from tests.decoding.test_search import allowed, found_by, penalised, plain, rules, sentence, sources, tables
from tests.refusals import refused


class Group:
    """A beam of a few rows, and its best outputs."""

    def __init__(self, size, added=lambda tokens: 0.0) -> None:
        self.live, self.ended, self.size, self.added = [((), 0.0)], [], size, added

    def step(self, continuations, length, limit, decoding):
        """Keeps the best ``size`` rows; the tokens of those that go on."""
        before, self.live = self.live, []
        for rank, (negative, *_, token, tokens) in enumerate(sorted(continuations)):
            if rank >= self.size and (not decoding.refill or token == END or len(self.live) == self.size):
                continue
            if token == END:
                score = penalised(-negative, length, decoding) + self.added(tokens)
                self.ended.append((score, tokens, True))
            else:
                self.live.append(((*tokens, token), -negative))
        chosen, self.ended = [row[-1] for row, _ in self.live], sorted(self.ended, key=lambda one: -one[0])[: self.size]
        full = len(self.ended) == self.size
        able = [penalised(total, limit, decoding) > self.ended[-1][0] for _, total in self.live] if full else [True]
        if not any(able) or (full and decoding.stopping == "first"):
            self.live = []
        if (not self.live and not self.ended) or (length == limit and not self.ended):
            cut = self.live or before
            self.ended = [(penalised(total, max(1, len(tokens)), decoding), tokens, False) for tokens, total in cut]
            self.live = []
        return chosen


def textbook(table, source, decoding, nbest, prefix=()):
    """Groups one after the other at each step, in plain loops; what is given costs nothing."""
    limit = len(source) + decoding.max_extra
    limit = min(limit, decoding.max_length or limit, math.ceil((decoding.max_share or limit) * len(source)))
    limit = max(limit, len(prefix) + 1)
    least = min(max(decoding.min_length, math.ceil(decoding.min_share * len(source))), limit - 1)
    groups = [Group(decoding.beam // decoding.groups) for _ in range(decoding.groups)]
    for length in range(1, limit + 1):
        taken = []
        for group in groups:
            continuations = []
            for parent, (tokens, total) in enumerate(group.live):
                free = allowed(table, source, tokens, decoding, least, ())
                if length <= len(prefix):
                    free = {prefix[length - 1]: 0.0}
                for token, log_probability in free.items():
                    fewer = 0.0 if length <= len(prefix) else decoding.diversity * taken.count(token)
                    own = log_probability - fewer
                    continuations.append((-(total + own), parent, -own, token, tokens))
            if group.live:
                taken += group.step(continuations, length, limit, decoding)
    every = [one for group in groups for one in group.ended]
    return sorted(every, key=lambda one: (not one[2], -one[0]))[:nbest]


@given(tables, sources, st.integers(1, 3), st.integers(2, 3), st.sampled_from([0.0, 0.3, 2.0]), rules, st.data())
def test_groups_are_the_textbooks_alone_and_among_others(table, sources, width, groups, diversity, rules, data):
    nbest = data.draw(st.integers(1, width * groups))
    token = st.integers(1, table.vocabulary - 1)
    prefixes = [data.draw(st.lists(token, max_size=3)) for _ in sources]
    own = {"groups": groups, "diversity": diversity, "refill": data.draw(st.booleans()), **rules}
    decoding = Decoding(beam=width * groups, max_extra=4, tokens=data.draw(st.sampled_from([16, 90])), **own)
    found = found_by(table, sources, decoding, nbest=nbest, prefixes=prefixes)
    for source, hypotheses, prefix in zip(sources, found, prefixes, strict=True):
        wanted = textbook(table, source, decoding, nbest, prefix)
        assert plain(hypotheses) == [(pytest.approx(score, rel=1e-12), *rest) for score, *rest in wanted]
        assert [hypotheses] == found_by(table, [source], decoding, nbest=nbest, prefixes=[prefix])


@given(tables, sources.filter(bool))
def test_without_diversity_every_group_is_the_beam(table, sources):
    decoding = Decoding(beam=6, groups=3, diversity=0.0, max_extra=3)
    beam = decoding.model_copy(update={"beam": 2, "groups": 1})
    found = found_by(table, sources, decoding, nbest=6)
    for hypotheses, own in zip(found, found_by(table, sources, beam, nbest=2), strict=True):
        assert plain(hypotheses) == [one for one in plain(own) for _ in range(3)]


def test_wide_groups_hold_the_best_of_all_outputs():
    """Of a small chain every output is scored: the first group is an exhaustive search, whatever the others do."""
    table, source = Table(4, seed=2, end=0.0), sentence(1)
    decoding = Decoding(beam=80, groups=2, diversity=1.0, max_extra=2, length_penalty=0.0)
    outputs = [words for n in range(4) for words in itertools.product(range(1, 4), repeat=n)]
    scored = {}
    for words in outputs:
        chain = (*words, END)
        scored[words] = sum(table.log_probabilities(source, chain[:n])[chain[n]] for n in range(len(chain)))
    [found] = found_by(table, [source], decoding, nbest=80)
    best = sorted(outputs, key=lambda words: -scored[words])
    assert found[0].tokens == best[0]
    assert {one.tokens for one in found} == set(outputs)


def test_the_source_is_read_once():
    step = TableStep(Table())
    found_by(step.table, [sentence(1), sentence(2, 3)], Decoding(beam=4, groups=4), step=step, nbest=4)
    assert step.opened == [3, 2]
    assert step.calls[:3] == ["start", "select", "step"]


def test_what_does_not_fit_is_refused():
    table = Table()
    with refused(UsageError, "decoding.groups", "do not divide a beam of 5"):
        found_by(table, [sentence(1)], Decoding(beam=5, groups=2))
    with refused(UsageError, "decoding.groups", "nor with a trace"):
        search(TableStep(table), [sentence(1)], Decoding(beam=4, groups=2), Symbols(table.start), trace=Trace())


@pytest.mark.usefixtures("watch_shapes")
def test_letters_mean_one_size():
    found_by(Table(), [sentence(1), sentence(*range(1, 5))], Decoding(beam=4, groups=2), nbest=4)
    assert np.isfinite(found_by(Table(), [sentence(1)], Decoding(beam=4, groups=2))[0][0].score)
