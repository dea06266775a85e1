"""Each feature of search, and each pair of them, against all outputs of a small chain; draws against exact odds.

Every rule is said once, in plain Python: of an output as a whole. A beam that holds all rows is exhaustive, whatever it
allots its places to; with ``stopping="first"`` among the outputs that are no longer than the n-th to end. Groups of a
beam keep away from each other's tokens, so theirs are compared with the same search in plain loops.
Rows with terms keep room below the limit as if no two terms shared a token, so these terms share none.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from regard.config import Decoding
from regard.decoding.ensemble import EnsembleStep
from regard.decoding.hypotheses import Hypothesis, Symbols
from regard.decoding.search import sample, search
from regard.decoding.terms import Letters, Term, Terms
from regard.system.errors import UsageError
from tests.decoding.table_step import END, Table, TableStep, chances
from tests.decoding.test_coverage import HEADS, Attentive, weights
from tests.decoding.test_diverse import Group
from tests.decoding.test_search import penalised
from tests.decoding.test_terms import contains

Said = tuple[int, ...]
SIZE = 4
NONE = np.zeros(SIZE + 1, np.bool_)
FREE = Letters(NONE, NONE)
WORDS = Letters(np.arange(SIZE + 1) == 2, np.arange(SIZE + 1) == 1)  # 2 goes on with the word that ends with 1
TERMS = [
    Terms((Term(((1, 2), (2, 1))),), FREE),
    Terms((Term(((1,),), 2),), FREE),
    Terms((Term(((1,), (3, 3))),), WORDS),
    Terms((Term(((1, 2),)), Term(((3, 3),))), FREE),
]
FEATURES: dict[str, dict[str, Any]] = {
    "min_length": {"min_length": 2},
    "min_share": {"min_share": 1.2},
    "max_length": {"max_length": 3},
    "max_share": {"max_share": 1.3},
    "no_repeat_ngram": {"no_repeat_ngram": 2},
    "repetition_penalty": {"repetition_penalty": 1.7},
    "gnmt": {"length_penalty": 1.5},
    "power": {"length_penalty_by": "power"},
    "first": {"stopping": "first"},
    "refill": {"refill": True},
    "coverage": {"coverage_penalty": 0.8},
    "groups": {"groups": 2, "diversity": 0.7},
    "bonus": {"term_bonus": 1.5},
    "terms": {},
    "forbidden": {},
    "prefix": {},
    "suppress": {},
    "prompt": {},
    "ensemble": {},
}
DRAWING: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 0.6},
    "top_k": {"top_k": 2},
    "top_p": {"top_p": 0.8},
    "min_p": {"min_p": 0.2},
    "typical": {"typical": 0.7},
}
OF_DRAWS = "min_length max_length max_share no_repeat_ngram repetition_penalty prefix suppress prompt ensemble".split()
REFUSED = {frozenset(pair) for pair in [("groups", "terms"), ("groups", "bonus"), ("groups", "forbidden")]}
PAIRS = [*((one,) for one in FEATURES), *itertools.combinations(FEATURES, 2)]


@dataclass(frozen=True)
class Case:
    """What is asked of a search."""

    names: tuple[str, ...]
    seed: int

    @cached_property
    def decoding(self) -> Decoding:
        settings = {key: value for name in self.names for key, value in {**FEATURES, **DRAWING}[name].items()}
        return Decoding(**{"beam": 4, "max_extra": 2, "tokens": 10**6, **settings})

    def __contains__(self, name: str) -> bool:
        return name in self.names

    @property
    def tables(self) -> list[Table]:
        return [Table(SIZE, self.seed + 100 * number, end=-1.0) for number in range(1 + ("ensemble" in self))]

    @property
    def read(self) -> Said:
        """The source, or a prompt."""
        return (3, 1) if "prompt" in self else ((3, END), (2, 1, END))[self.seed % 2]

    @property
    def prefix(self) -> Said:
        return ((2,), (3, 2))[self.seed % 2] if "prefix" in self else ()

    @property
    def terms(self) -> Terms | None:
        return TERMS[self.seed % len(TERMS)] if "terms" in self or "bonus" in self else None

    @property
    def forbidden(self) -> tuple[Said, ...]:
        return ((1, 1), (2, 1, 2), (2, 2)) if "forbidden" in self else ()

    @property
    def without(self) -> Said:
        return (3,) if "suppress" in self and "prefix" not in self else (1,) if "suppress" in self else ()

    @property
    def limit(self) -> int:
        """The most tokens, the end counted."""
        wanted, longest = self.decoding, len(self.read)
        most = min(longest + 2, wanted.max_length or 9, math.ceil((wanted.max_share or 9) * longest))
        need = 0 if self.terms is None else self.terms.need(self.terms.start)
        return max(len(self.prefix) + need + 1, min(most + need, wanted.max_length or 9))

    @property
    def least(self) -> int:
        share = 0 if "prompt" in self else math.ceil(self.decoding.min_share * len(self.read))
        return min(max(self.decoding.min_length, share), self.limit - 1)

    @property
    def options(self) -> dict[str, Any]:
        """What a search is given beside sources."""
        found: dict[str, Any] = {"prefixes": [self.prefix]}
        if "prompt" in self:
            need = 0 if self.terms is None else self.terms.need(self.terms.start)
            found |= {"firsts": [self.read[-1]], "limits": [self.limit - need]}
        return found

    @property
    def source(self) -> np.ndarray:
        return np.array(self.read[: -1 if "prompt" in self else None], np.int64)

    def step(self) -> Any:
        steps = [Attentive(table) if "coverage" in self else TableStep(table) for table in self.tables]
        return EnsembleStep(steps) if "ensemble" in self else steps[0]


def may_begin(said: Said, case: Case) -> bool:
    """The rules that what an output begins with keeps, too."""
    n, whole = case.decoding.no_repeat_ngram, (*(case.read if "prompt" in case else ()), *said)
    ngrams = [whole[i : i + n] for i in range(len(whole) - n + 1)] if n else []
    has = any(said[i : i + len(one)] == one for one in case.forbidden for i in range(len(said)))
    begins = all(one == other for one, other in zip(said, case.prefix, strict=False))
    free = not {*case.without} & {*said[len(case.prefix) :]}
    return len({*ngrams}) == len(ngrams) and not has and begins and free


def may_end(said: Said, case: Case) -> bool:
    """The rules of whole outputs."""
    asked = case.terms if "bonus" not in case else None
    return (
        case.least <= len(said) < case.limit
        and len(said) >= len(case.prefix)
        and (asked is None or contains(said, asked))
    )


@cache
def mean(tables: tuple[Table, ...], read: Said, said: Said) -> np.ndarray:
    """The logarithms of the mean of probabilities."""
    return np.log(np.mean([np.exp(table.log_probabilities(read, said)) for table in tables], axis=0))


def log_probability(said: Said, token: int, case: Case) -> float:
    """Of one more token: the models' mean; worse where it repeats one; certain where it was given."""
    if len(said) < len(case.prefix):
        return 0.0
    line = mean(tuple(case.tables), case.read, said)
    before = (*case.read, *said) if "prompt" in case else said
    return float(line[token]) * (case.decoding.repetition_penalty if token in before else 1.0)


def coverage(said: Said, case: Case) -> float:
    """``β Σ log min(1, attention)`` over the source, of all that was read up to the end."""
    if "coverage" not in case:
        return 0.0
    covered = np.zeros(len(case.source))
    for table, place in itertools.product(case.tables, range(len(said) + 1)):
        covered += weights(table.seed, case.source.tolist(), said[:place]).sum(0) / (HEADS * len(case.tables))
    return float(case.decoding.coverage_penalty * np.log(np.minimum(covered, 1.0).clip(1e-30)).sum())


def gain(said: Said, case: Case) -> float:
    """What is added for tokens of terms while outputs are compared."""
    terms, progress = case.terms, None if case.terms is None else case.terms.start
    if terms is None or progress is None or "bonus" not in case:
        return 0.0
    for token in said:
        progress = terms.after(progress, token, int(terms.letters.kind_V[token]))
    return case.decoding.term_bonus * (terms.need(terms.start) - terms.need(progress))


def scores(said: Said, case: Case) -> tuple[float, float]:
    """Of an output that ends: what it is compared by, and what is told."""
    whole = (*said, END)
    total = sum(log_probability(whole[:place], token, case) for place, token in enumerate(whole))
    told = penalised(total, len(whole), case.decoding) + coverage(said, case)
    return told + penalised(gain(said, case), len(whole), case.decoding), told


def every_output(case: Case) -> Iterator[Said]:
    """All that keep the rules."""
    words = range(1, SIZE)
    outputs = itertools.chain.from_iterable(itertools.product(words, repeat=n) for n in range(case.limit))
    return (said for said in outputs if may_end(said, case) and may_begin(said, case))


def best_outputs(case: Case, n: int) -> list[tuple[float, Said, bool]]:
    """The n best of all outputs."""
    every = sorted(every_output(case), key=len)
    if "first" in case and len(every) > n:
        every = [said for said in every if len(said) <= len(every[n - 1])]
    ranked = sorted(((*scores(said, case), said) for said in every), reverse=True)
    return [(told, said, True) for _, told, said in ranked[:n]]


def best_of_groups(case: Case, n: int) -> list[tuple[float, Said, bool]]:
    """Diverse beam search in plain loops: at each step one group after the other, under all rules."""
    groups = [Group(case.decoding.beam // 2, lambda said: coverage(said, case)) for _ in range(2)]
    for length in range(1, case.limit + 1):
        taken: list[int] = []
        for group in groups:
            further = [
                (total, parent, log_probability(said, token, case) - fewer * (length > len(case.prefix)), token, said)
                for parent, (said, total) in enumerate(group.live)
                for token in range(SIZE)
                if (may_begin((*said, token), case) if token != END else case.least <= len(said) >= len(case.prefix))
                for fewer in [case.decoding.diversity * taken.count(token)]
            ]
            own = [(-(total + one), parent, -one, token, said) for total, parent, one, token, said in further]
            taken += group.step(own, length, case.limit, case.decoding) if group.live else []
    every = [one for group in groups for one in group.ended]
    return sorted(every, key=lambda one: (not one[2], -one[0]))[:n]


def found_by(case: Case, n: int, width: int) -> list[Hypothesis]:
    decoding = case.decoding.model_copy(update={"beam": width})
    rules = {"terms": [case.terms], "forbidden": [case.forbidden]} if case.terms or case.forbidden else {}
    symbols = Symbols(SIZE, END, case.without)
    [found] = search(case.step(), [case.source], decoding, symbols, nbest=n, **case.options, **rules)
    return found


@pytest.mark.one_of(15)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("names", PAIRS, ids=" ".join)
def test_a_beam_of_everything_finds_the_best_of_all_outputs(names: tuple[str, ...], seed: int) -> None:
    case = Case(names, seed + len(names[-1]))
    if set(names) == {"coverage", "bonus"}:
        with pytest.raises(ValidationError, match="leave one out"):
            assert case.decoding
        return
    if frozenset(names) in REFUSED:
        with pytest.raises(UsageError, match="groups go neither"):
            found_by(case, 4, 4)
        return
    diverse = "groups" in case
    found = found_by(case, 4, 4) if diverse else found_by(case, 12, 1000)
    wanted = best_of_groups(case, 4) if diverse else best_outputs(case, 12)
    assert wanted
    assert [(one.score, one.tokens, one.finished) for one in found] == [
        (pytest.approx(score, rel=1e-9), *rest) for score, *rest in wanted
    ]


@pytest.mark.one_of(8)
@pytest.mark.parametrize("name", sorted(FEATURES.keys() - {"refill", "groups"}))
def test_each_feature_tells(name: str) -> None:
    """Of no rule the outputs are those of a search without any."""
    asked, plain = ([best_outputs(Case(names, seed), 20) for seed in range(2)] for names in ((name,), ()))
    assert asked != plain


def odds(case: Case, said: Said = (), p: float = 1.0) -> dict[Said, float]:
    """The exact probability of every output, its end counted."""
    if said[-1:] == (END,) or len(said) == case.limit:
        return {said: p}
    if len(said) < len(case.prefix):
        return odds(case, (*said, case.prefix[len(said)]), p)
    banned = [token for token in range(1, SIZE) if not may_begin((*said, token), case)]
    line = mean(tuple(case.tables), case.read, said)
    never, before = (*banned, *[END] * (len(said) < case.least)), (*(case.read if "prompt" in case else ()), *said)
    found: dict[Said, float] = {}
    for token, q in chances(line, case.decoding, never, before).items():
        found |= odds(case, (*said, token), p * q)
    return found or {said: p}


@pytest.mark.one_of(20)
@pytest.mark.parametrize(
    "names",
    [*((one,) for one in [*OF_DRAWS, *DRAWING]), *itertools.combinations([*OF_DRAWS, *DRAWING], 2)],
    ids=" ".join,
)
def test_draws_come_as_often_as_they_should(names: tuple[str, ...]) -> None:
    """χ² of whole outputs against their exact probabilities, under each rule and each pair."""
    case, count = Case(names, len(names[-1])), 600
    exact = odds(case)
    assert sum(exact.values()) == pytest.approx(1.0)
    step = EnsembleStep([TableStep(table) for table in case.tables])
    symbols = Symbols(SIZE, END, case.without)
    [found] = sample(step, [case.source], case.decoding, symbols, seed=1, samples=count, **case.options)
    seen = Counter(one.tokens + (END,) * one.finished for one in found)
    assert seen.keys() <= exact.keys()
    often = {output: p for output, p in exact.items() if p * count >= 5}
    cells = [(seen[output], p) for output, p in often.items()]
    cells.append((count - sum(seen[output] for output in often), 1.0 - sum(often.values())))
    square = sum((observed - p * count) ** 2 / (p * count) for observed, p in cells if p * count > 1)
    assert square < len(cells) + 4 * np.sqrt(2 * len(cells)) + 4
