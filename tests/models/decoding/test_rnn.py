import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.rows import Symbols
from regard.decoding.search import search
from regard.models.decoding import stepper
from regard.models.inputs import pairs
from regard.models.rnn import Rnn
from regard.nn.hooks import capture
from tests.laws.families import FEW
from tests.models.small_models import PIECES, assert_near, batch, sentences
from tests.models.small_models import rnn as small

SOURCES = sentences([4, 1, 6])
FEWER = pytest.mark.parametrize("choices", FEW["rnn"], ids=lambda c: f"{c['cell']}-{c['score']}-{c['input_feeding']}")
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])


def all_at_once(model: Rnn, source: np.ndarray, read: list[int]) -> np.ndarray:
    """The log-probabilities behind the last of the tokens read, by the forward pass."""
    given = pairs(batch([source], [np.array([*read[1:], 0])]))
    with torch.no_grad():
        return model.output.scores(model(given)).log_softmax(1)[-1].numpy()


class Rows:
    """A search by hand: the state, and what each row has read and of which source it is."""

    def __init__(self, model: Rnn, sources: list[np.ndarray], weights: bool = False) -> None:
        self.model, self.step = model, stepper(model, weights=weights)
        self.state, self.rows = self.step.start(sources), [(source, []) for source in sources]

    def read(self, tokens: list[int]) -> None:
        self.state, answer = self.step.step(self.state, np.array(tokens))
        for (_, read), token in zip(self.rows, tokens, strict=True):
            read.append(token)
        expected = [all_at_once(self.model, source, read) for source, read in self.rows]
        assert_near(answer.all(), np.array(expected), 1e-9)

    def select(self, rows: list[int]) -> None:
        self.state = self.step.select(self.state, np.array(rows))
        self.rows = [(self.rows[row][0], list(self.rows[row][1])) for row in rows]

    def admit(self, sources: list[np.ndarray]) -> None:
        self.state = self.step.admit(self.state, sources)
        self.rows += [(source, []) for source in sources]


def groups(rows: Rows) -> list[list[int]]:
    """Rows of one sentence side by side, the sentences in any order."""
    found: list[list[int]] = []
    for i, (source, _) in enumerate(rows.rows):
        if i and rows.rows[i - 1][0] is source:
            found[-1].append(i)
        else:
            found.append([i])
    return [found[i] for i in np.random.default_rng(len(found)).permutation(len(found))]


@FEWER
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.one_of(4)
def test_a_random_search_is_the_forward_pass_of_each_row(choices, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = Rows(small(**choices), SOURCES)
    for _ in range(6):
        rows.read([PIECES if not read else int(random.integers(2, PIECES)) for _, read in rows.rows])
        kept: list[int] = []
        for group in groups(rows):
            kept += random.choice(group, random.integers(0, 4)).tolist()
        rows.select(kept or [0])
        if random.random() < 0.5:
            rows.admit(sentences(random.integers(1, 9, 2), seed=int(random.integers(100))))


@FEWER
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.one_of(3)
def test_a_sentence_is_translated_alike_in_any_company(choices, beam: int) -> None:
    model, symbols = small(**choices), Symbols(PIECES)
    sources = sentences([3, 6, 1, 4, 2])
    alone = [search(stepper(model), [s], options(beam, 10_000), symbols, nbest=beam)[0] for s in sources]
    for tokens in (16, 10_000):  # a small budget: sentences wait and enter
        among = search(stepper(model), sources, options(beam, tokens), symbols, nbest=beam)
        for one, other in zip(among, alone, strict=True):
            assert [h.tokens for h in one] == [h.tokens for h in other]
            assert np.allclose([h.score for h in one], [h.score for h in other], atol=1e-9)


def options(beam: int, tokens: int) -> Decoding:
    return Decoding(beam=beam, max_extra=3, tokens=tokens)


def test_a_sentence_whose_last_row_left_is_forgotten() -> None:
    rows = Rows(small(), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([2, 2, 0])
    assert rows.state.layout.keys.lengths_B.tolist() == [6, 4]
    assert len(rows.state.memory_SD) == len(rows.state.key_SD) == 10
    rows.read([3, 4, 5])
    rows.select([0])
    assert len(rows.state.memory_SD) == 6
    rows.read([7])
    rows.admit(sentences([9, 2], seed=4))
    assert rows.state.layout.keys.lengths_B.tolist() == [6, 9, 2]
    rows.read([6, PIECES, PIECES])


def test_rows_of_the_same_sentences_keep_the_memory_as_it_is() -> None:
    rows = Rows(small(), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([0, 0, 1, 1, 2, 2])
    rows.read([3, 4, 5, 6, 7, 8])
    before = rows.state
    rows.select([1, 0, 2, 2, 5, 4])
    assert rows.state.memory_SD is before.memory_SD
    assert rows.state.layout is before.layout
    rows.read([3, 4, 5, 6, 7, 8])


def test_no_gradient_is_kept() -> None:
    step = stepper(small())
    state, answer = step.step(step.start(SOURCES), np.array([PIECES] * 3))
    assert not any(x.requires_grad for x in (*state.carried, state.key_SD, state.memory_SD))
    assert answer.all().shape == (3, PIECES)


@FEWER
def test_weights_are_those_of_the_forward_pass(choices) -> None:
    model = small(**choices)
    rows = Rows(model, SOURCES, weights=True)
    rows.read([PIECES] * 3)
    rows.select([0, 0, 1, 2, 2, 2])
    tokens = [3, 4, 5, 6, 7, 8]
    rows.state, answer = rows.step.step(rows.state, np.array(tokens))
    weight_NHS = answer.context()
    if choices["score"] == "none":
        assert weight_NHS is None
        return
    assert weight_NHS.shape == (6, 1, 6)
    for row, ((source, read), token) in enumerate(zip(rows.rows, tokens, strict=True)):
        with capture(["decoder.cross.weight"]) as heard:
            all_at_once(model, source, [*read, token])
        assert_near(weight_NHS[row, :, : len(source)], heard["decoder.cross.weight"][-1][:, -1], 1e-9)
        assert not weight_NHS[row, :, len(source) :].any()
    assert stepper(model).step(stepper(model).start(SOURCES), np.array([PIECES] * 3))[1].context() is None
