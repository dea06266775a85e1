import numpy as np
import pytest
import torch

from regard.models.decoding import transformer
from regard.models.decoding.transformer import TransformerStepper
from regard.models.inputs import pairs
from regard.nn.hooks import capture
from tests.models.small_models import PIECES, assert_near, batch, section, sentences, small

SOURCES = sentences([4, 1, 6])


def all_at_once(model, source: np.ndarray, read: list[int]) -> np.ndarray:
    """The log-probabilities behind the last of the tokens read, by the forward pass."""
    given = pairs(batch([source], [np.array([*read[1:], 0])]))
    with torch.no_grad():
        return model.output.scores(model(given)).log_softmax(1)[-1].numpy()


class Rows:
    """A search by hand: the state, and what each row has read and of which source it is."""

    def __init__(self, step: TransformerStepper, sources: list[np.ndarray]) -> None:
        self.step, self.state = step, step.start(sources)
        self.rows = [(source, []) for source in sources]

    def read(self, tokens: list[int]) -> None:
        self.state, answer = self.step.step(self.state, np.array(tokens))
        for (_, read), token in zip(self.rows, tokens, strict=True):
            read.append(token)
        expected = [all_at_once(self.step.model, source, read) for source, read in self.rows]
        assert_near(answer.all(), np.array(expected), 1e-9)

    def select(self, rows: list[int]) -> None:
        self.state = self.step.select(self.state, np.array(rows))
        self.rows = [(self.rows[row][0], list(self.rows[row][1])) for row in rows]

    def admit(self, sources: list[np.ndarray]) -> None:
        self.state = self.step.admit(self.state, sources)
        self.rows += [(source, []) for source in sources]


def drawn(random: np.random.Generator, rows: Rows) -> list[int]:
    return [PIECES if not read else int(random.integers(2, PIECES)) for _, read in rows.rows]


@pytest.mark.parametrize("choices", [{}, {"norm_place": "pre", "positions": "learned", "d_k": 2, "d_v": 5}])
@pytest.mark.parametrize("seed", range(4))
def test_a_random_search_is_the_forward_pass_of_each_row(choices, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = Rows(TransformerStepper(small(section(**choices))), SOURCES)
    for _ in range(8):
        rows.read(drawn(random, rows))
        kept: list[int] = []
        for group in groups(rows):
            kept += random.choice(group, random.integers(0, 4)).tolist()
        rows.select(kept or [0])
        if random.random() < 0.5:
            rows.admit(sentences(random.integers(1, 9, 2), seed=int(random.integers(100))))


def groups(rows: Rows) -> list[list[int]]:
    found: list[list[int]] = []
    for i, (source, _) in enumerate(rows.rows):
        if i and rows.rows[i - 1][0] is source:
            found[-1].append(i)
        else:
            found.append([i])
    random_order = np.random.default_rng(len(found)).permutation(len(found))
    return [found[i] for i in random_order]


def test_arenas_grow_beyond_their_first_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "ROOM", 2)
    rows = Rows(TransformerStepper(small()), SOURCES)
    for length in range(9):
        rows.read([PIECES if not length else 2 + (length + row) % 7 for row in range(len(rows.rows))])
        if length == 3:
            rows.select([2, 2, 1, 1, 1])
    assert rows.state.pasts[0].stride >= 9


def test_a_sentence_whose_last_row_left_is_forgotten() -> None:
    rows = Rows(TransformerStepper(small()), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([2, 2, 0])
    assert rows.state.memory_lengths_B.tolist() == [6, 4]
    rows.read([3, 4, 5])
    rows.select([0])
    assert rows.state.memory_lengths_B.tolist() == [6]
    rows.read([7])
    rows.admit(sentences([9, 2], seed=4))
    assert rows.state.memory_lengths_B.tolist() == [6, 9, 2]
    rows.read([6, PIECES, PIECES])


def test_select_nothing_changed() -> None:
    rows = Rows(TransformerStepper(small()), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([0, 1, 2])
    rows.read([3, 4, 5])


def test_no_gradient_is_kept() -> None:
    step = TransformerStepper(small())
    state, answer = step.step(step.start(SOURCES), np.array([PIECES] * 3))
    assert not state.pasts[0].key_SHK.requires_grad
    assert answer.all().shape == (3, PIECES)


def test_cross_attention_weights_are_those_of_the_forward_pass() -> None:
    model = small()
    rows = Rows(TransformerStepper(model, weights=True), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([0, 0, 1, 2, 2, 2])
    tokens = [3, 4, 5, 6, 7, 8]
    rows.state, answer = rows.step.step(rows.state, np.array(tokens))
    weight_NHS = answer.context()
    assert weight_NHS.shape == (6, 3, 6)
    for row, ((source, read), token) in enumerate(zip(rows.rows, tokens, strict=True)):
        with capture(["decoder.1.cross.weight"]) as heard:
            all_at_once(model, source, [*read, token])
        expected_HLS = heard["decoder.1.cross.weight"][0]
        assert_near(weight_NHS[row, :, : len(source)], expected_HLS[:, -1], 1e-9)
        assert not weight_NHS[row, :, len(source) :].any()
    assert (
        TransformerStepper(model).step(TransformerStepper(model).start(SOURCES), np.array([PIECES] * 3))[1].context()
        is None
    )
