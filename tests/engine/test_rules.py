"""The law of neighbours for every rule of search: an output depends on no sentence beside it, and on no thread."""

from typing import Any

import numpy as np
import pytest

from regard.config import Decoding
from regard.decoding.ensemble import EnsembleStep
from regard.decoding.hypotheses import Hypothesis, Symbols
from regard.decoding.search import sample, search
from regard.decoding.terms import Letters, Term, Terms
from regard.system import kernels
from regard.system.kernels.packing import Precision
from tests.engine.engines import both
from tests.laws.families import Family
from tests.models.small_models import PIECES, sentences

RULES: dict[str, dict[str, Any]] = {
    "lengths": {"min_length": 4, "max_share": 1.5},
    "ngrams": {"no_repeat_ngram": 2},
    "repetition": {"repetition_penalty": 1.3, "min_share": 0.5},
    "power": {"length_penalty_by": "power", "stopping": "first"},
    "refill": {"refill": True, "no_repeat_ngram": 1},
    "groups": {"groups": 2, "diversity": 0.3},
    "bonus": {"term_bonus": 1.0},
    "sampling": {"temperature": 2.0, "top_p": 0.9, "no_repeat_ngram": 2, "min_length": 2},
}
PAIRS = [
    (rule, asked)
    for rule in RULES
    for asked in ("plain", "prefix", "terms", "ensemble")
    if asked != "terms" or rule not in ("groups", "sampling")  # which go with no terms
]
NEVER = np.zeros(PIECES, np.bool_)
ANY = Letters(NEVER, NEVER)
SYMBOLS = Symbols(PIECES)


def drawn_terms(random: np.random.Generator) -> Terms | None:
    """At most two terms of at most three tokens."""
    terms = [Term((tuple(random.integers(2, PIECES, random.integers(1, 4)).tolist()),)) for _ in range(2)]
    count = random.integers(0, 3)
    return Terms(tuple(terms[:count]), ANY) if count else None


@pytest.mark.one_of(4, minutes=0.05)
@pytest.mark.parametrize("count", [pytest.param(12, id="12"), pytest.param(500, marks=pytest.mark.long(1), id="500")])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(("rule", "asked"), PAIRS)
def test_a_sentence_has_the_same_output_in_any_company(rule: str, asked: str, precision: Precision, count: int) -> None:
    """To the bit, among others with other prefixes and terms, with more threads, in batches that refill."""
    _, fast = both(Family("transformer", {"norm_place": "pre", "positions": "rotary"}), precision=precision)
    step = fast
    if asked == "ensemble":
        step = EnsembleStep([fast, both(Family("transformer", {"norm_place": "post"}), precision=precision)[1]])
    random = np.random.default_rng(count)
    sources = sentences(random.integers(1, 9, count).tolist(), seed=count)
    decoding = Decoding(beam=4, max_extra=4, tokens=150, **RULES[rule])
    given: dict[str, list[Any]] = {}
    if asked == "prefix":
        given["prefixes"] = [random.integers(2, PIECES, random.integers(0, 3)).tolist() for _ in sources]
    if asked == "terms" or rule == "bonus":
        given["terms"] = [drawn_terms(random) for _ in sources]

    def outputs(places: list[int]) -> list[list[Hypothesis]]:
        some: dict[str, Any] = {name: [each[place] for place in places] for name, each in given.items()}
        texts = [sources[place] for place in places]
        if rule == "sampling":
            return sample(step, texts, decoding, SYMBOLS, seed=3, samples=2, numbers=places, **some)
        return search(step, texts, decoding, SYMBOLS, nbest=2, **some)

    kernels.use_threads(2)
    among = outputs(list(range(count)))
    kernels.use_threads(1)
    for place in range(0, count, max(1, count // 40)):
        assert outputs([place]) == [among[place]]
