"""The laws in bf16 and int8: neighbours and state to the bit, step by step all at once, search over its own scores."""

import itertools

import numpy as np
import pytest
import torch

from regard import kernels
from regard.config import Decoding
from regard.decoding.hypotheses import Symbols, length_penalty
from regard.decoding.search import search
from regard.kernels.packing import Precision
from regard.models.inputs import pairs
from tests.engine.engines import writing
from tests.laws.families import SOURCES, Family, held
from tests.laws.test_search import LIMIT, VOCABULARY, sources_of
from tests.models.small_models import PIECES, batch, sentences

STORED: list[Precision] = ["bf16", "int8"]
NEAR = {"bf16": 0.03, "int8": 0.25}
"""Root mean square of what log-probabilities of small random models may lose, in their standard deviations."""


@held("transformer", transformer=9)
@pytest.mark.parametrize("precision", STORED)
def test_what_a_search_finds_depends_on_no_neighbour(family: Family, precision: Precision) -> None:
    """To the bit: sentences enter and leave beside it."""
    _, fast = writing(family, precision=precision)
    decoding = Decoding(beam=3, max_extra=3, tokens=30)

    def found(sources):
        return search(fast, sources, decoding, Symbols(PIECES), nbest=3)

    for source, among in zip(SOURCES, found(SOURCES), strict=True):
        assert found([source])[0] == among


@held("transformer", transformer=9)
@pytest.mark.parametrize("precision", STORED)
def test_steps_are_near_the_models_and_rows_continue_where_they_were(family: Family, precision: Precision) -> None:
    """Reordered, repeated and left out, a row says to the bit what it says when it is read alone."""
    model, fast = writing(family, precision=precision)
    targets = sentences([6, 6, 6, 6], seed=5)
    given = pairs(batch(SOURCES, targets))
    with torch.no_grad():
        at_once = model.output.scores(model(given)).log_softmax(1).view(4, 6, PIECES).numpy()
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
        chosen = np.array([0, 0, 1, 2, 3]) if now == 1 else np.arange(len(rows) - (now == 3))
        rows, state = rows[chosen], fast.select(state, chosen)
    assert np.sqrt(np.square(lost).mean()) < NEAR[precision] * at_once.std()


@pytest.mark.parametrize("instruction_set", kernels.instruction_sets() if kernels.available() else ["none"])
@held("transformer", transformer=8)
@pytest.mark.parametrize("precision", STORED)
def test_a_wide_beam_is_exhaustive(family: Family, precision: Precision, instruction_set: str) -> None:
    """Among all outputs, each scored by the engine itself, step by step."""
    from regard.kernels import _native

    before = _native.in_use()
    kernels.use(instruction_set)
    _, fast = writing(family, VOCABULARY, precision)
    source = sources_of(family)[0]

    def score(output: list[int]) -> float:
        state, total, read = fast.start([source]), 0.0, VOCABULARY
        for token in output:
            state, answer = fast.step(state, np.array([read]))
            total, read = total + answer.all()[0, token], token
        return total / length_penalty(float(len(output)), 0.6)

    outputs = [[*words, 0] for n in range(LIMIT) for words in itertools.product(range(2, VOCABULARY), repeat=n)]
    decoding = Decoding(beam=40, length_penalty=0.6)
    found = search(fast, [source], decoding, Symbols(VOCABULARY), nbest=5, limits=[LIMIT])[0]
    expected = np.sort([score(output) for output in outputs])[::-1][:5]
    np.testing.assert_allclose([hypothesis.score for hypothesis in found], expected, atol=1e-5)
    kernels.use(before)
