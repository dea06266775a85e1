"""The laws, held by the engine in each precision, with every instruction set of the processor; others are skipped.

Neighbours, refilling and what a row says when it is read alone hold to the bit, state and search within tolerance.
"""

import itertools
from collections.abc import Iterator
from typing import get_args

import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols, length_penalty
from regard.decoding.search import search
from regard.models.inputs import pairs
from regard.system import kernels
from regard.system.kernels.packing import Precision
from tests.engine.engines import both
from tests.laws.families import SOURCES, Family, held
from tests.laws.test_search import LIMIT, VOCABULARY, sources_of
from tests.models.small_models import PIECES, assert_near, batch, sentences, tolerance

SETS = ("portable", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "dotprod")
NEAR = {"bf16": 0.03, "int8": 0.25}
"""Root mean square of what log-probabilities of small random models may lose, in their standard deviations."""


@pytest.fixture
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param not in kernels.instruction_sets():
        pytest.skip(f"this processor has no {request.param}")
    before = kernels.in_use()
    kernels.use(request.param)
    yield request.param
    kernels.use(before)


by_every_set = pytest.mark.parametrize("instruction_set", SETS, indirect=True)
in_each_precision = pytest.mark.parametrize("precision", get_args(Precision))


@pytest.mark.one_of(72)
@by_every_set
@held("transformer", transformer=9)
@in_each_precision
@pytest.mark.parametrize("beam", [1, 3])
def test_what_a_search_finds_depends_on_no_neighbour(
    family: Family, beam: int, precision: Precision, instruction_set: str
) -> None:
    """To the bit: sentences enter and leave beside it."""
    _, fast = both(family, precision=precision)
    asked = Decoding(beam=beam, max_extra=3, tokens=30), Symbols(PIECES)
    for source, among in zip(SOURCES, search(fast, SOURCES, *asked, nbest=beam), strict=True):
        assert search(fast, [source], *asked, nbest=beam)[0] == among


@pytest.mark.one_of(60)
@by_every_set
@held("transformer", transformer=9)
@in_each_precision
def test_step_by_step_is_all_at_once(family: Family, precision: Precision, instruction_set: str) -> None:
    """Reordered, repeated and left out, a row says to the bit what it says when it is read alone."""
    model, fast = both(family, precision=precision)
    given = pairs(batch(SOURCES, sentences([6, 6, 6, 6], seed=5)))
    with torch.no_grad():
        at_once = model.scores(model(given)).log_softmax(1).view(4, 6, PIECES).numpy()
    lost: list[np.ndarray] = []
    rows, state = np.arange(4), fast.start(SOURCES)
    alone = [fast.start([source]) for source in SOURCES]
    for now, read_N in enumerate(given.target.ids_T.view(4, 6).T.numpy()):
        state, answer = fast.step(state, read_N[rows])
        every = [fast.step(one, read_N[row : row + 1]) for row, one in enumerate(alone)]
        alone = [one for one, _ in every]
        for place, row in enumerate(rows.tolist()):
            assert (answer.all()[place] == every[row][1].all()[0]).all()
            lost.append(answer.all()[place] - at_once[row, now])
        if precision == "fp32":
            assert_near(answer.all(), at_once[rows, now], tolerance(torch.float32), f"token {now}")
        chosen = np.array([0, 0, 1, 2, 3]) if now == 1 else np.arange(len(rows) - (now == 3))
        rows, state = rows[chosen], fast.select(state, chosen)
    assert np.sqrt(np.square(lost).mean()) < NEAR.get(precision, 1.0) * at_once.std()


@pytest.mark.one_of(60)
@by_every_set
@held("transformer", transformer=9)
@in_each_precision
def test_a_wide_beam_is_exhaustive_and_one_of_one_is_greedy(
    family: Family, precision: Precision, instruction_set: str
) -> None:
    """Among all outputs, each scored by the engine itself, step by step."""
    (_, fast), source = both(family, pieces=VOCABULARY, precision=precision), sources_of(family)[0]

    def log_probabilities(words: list[int]) -> np.ndarray:
        """Of the token behind some words."""
        state = fast.start([source])
        for word in (VOCABULARY, *words):
            state, answer = fast.step(state, np.array([word]))
        return answer.all()[0]

    def score(output: list[int]) -> float:
        total = sum(log_probabilities(output[:place])[word] for place, word in enumerate(output))
        return total / length_penalty(float(len(output)), 0.6)

    outputs = [[*words, 0] for n in range(LIMIT) for words in itertools.product(range(2, VOCABULARY), repeat=n)]
    wide, narrow = Decoding(beam=40, length_penalty=0.6), Decoding(beam=1, length_penalty=0.6)
    found = search(fast, [source], wide, Symbols(VOCABULARY), nbest=5, limits=[LIMIT])[0]
    expected = np.sort([score(output) for output in outputs])[::-1][:5]
    np.testing.assert_allclose([hypothesis.score for hypothesis in found], expected, atol=1e-5)
    (greedy,) = search(fast, [source], narrow, Symbols(VOCABULARY), limits=[LIMIT])[0]
    words: list[int] = []
    while len(words) < LIMIT and words[-1:] != [0]:
        log_probability_V = log_probabilities(words)
        log_probability_V[1] = -np.inf
        words.append(int(log_probability_V.argmax()))
    assert [*greedy.tokens, *([0] if greedy.finished else [])] == words
