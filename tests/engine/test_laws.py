"""The laws, held by the engine with every instruction set of the processor; sets that it lacks are skipped by name.

Neighbours and refilling hold to the bit, state and search within tolerance.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from regard import kernels
from regard.config import Decoding
from regard.decoding.hypotheses import Symbols, length_penalty
from regard.decoding.search import search
from regard.models.inputs import pairs
from tests.engine.engines import writing
from tests.laws.families import SOURCES, Family, held
from tests.laws.test_search import LIMIT, VOCABULARY, log_probability, sources_of
from tests.models.small_models import PIECES, assert_near, batch, sentences, tolerance

MOST = tolerance(torch.float32)
SETS = ("portable", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "dotprod")


@pytest.fixture
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    from regard.kernels import _native

    if request.param not in kernels.instruction_sets():
        pytest.skip(f"this processor has no {request.param}")
    before = _native.in_use()
    kernels.use(request.param)
    yield request.param
    kernels.use(before)


by_every_set = pytest.mark.parametrize("instruction_set", SETS, indirect=True)


@pytest.mark.one_of(6)
@by_every_set
@held("transformer", transformer=9)
@pytest.mark.parametrize("beam", [1, 3])
def test_what_a_search_finds_depends_on_no_neighbour(family: Family, beam: int, instruction_set: str) -> None:
    """To the bit: sentences enter and leave beside it."""
    _, fast = writing(family)
    decoding = Decoding(beam=beam, max_extra=3, tokens=30)

    def found(sources):
        return search(fast, sources, decoding, Symbols(PIECES), nbest=beam)

    for source, among in zip(SOURCES, found(SOURCES), strict=True):
        assert found([source])[0] == among


@pytest.mark.one_of(6)
@by_every_set
@held("transformer", transformer=9)
def test_step_by_step_is_all_at_once(family: Family, instruction_set: str) -> None:
    model, fast = writing(family)
    targets = sentences([6, 6, 6, 6], seed=5)
    given = pairs(batch(SOURCES, targets))
    with torch.no_grad():
        at_once = model.output.scores(model(given)).log_softmax(1).view(4, 6, PIECES).numpy()
    state = fast.start(SOURCES)
    for now, read_N in enumerate(given.target.ids_T.view(4, 6).T.numpy()):
        state, answer = fast.step(state, read_N)
        assert_near(answer.all(), at_once[:, now], MOST, f"token {now}")


@pytest.mark.one_of(6)
@by_every_set
@held("transformer", transformer=9)
def test_a_wide_beam_is_exhaustive_and_one_of_one_is_greedy(family: Family, instruction_set: str) -> None:
    (model, fast), source = writing(family, VOCABULARY), sources_of(family)[0]
    outputs = [[*words, 0] for n in range(LIMIT) for words in itertools.product(range(2, VOCABULARY), repeat=n)]
    scored = [log_probability(model, source, o) / length_penalty(float(len(o)), 0.6) for o in outputs]
    wide, narrow = Decoding(beam=40, length_penalty=0.6), Decoding(beam=1, length_penalty=0.6)
    found = search(fast, [source], wide, Symbols(VOCABULARY), nbest=5, limits=[LIMIT])[0]
    assert_near(np.array([h.score for h in found]), np.sort(scored)[::-1][:5], MOST)
    (greedy,) = search(fast, [source], narrow, Symbols(VOCABULARY), limits=[LIMIT])[0]
    state, words = fast.start([source]), [VOCABULARY]
    while len(words) <= LIMIT and words[-1] != 0:
        state, answer = fast.step(state, np.array(words[-1:]))
        log_probability_V = answer.all()[0]
        log_probability_V[1] = -np.inf
        words.append(int(log_probability_V.argmax()))
    assert [*greedy.tokens, *([0] if greedy.finished else [])] == words[1:]
