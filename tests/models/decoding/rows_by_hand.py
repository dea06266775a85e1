"""A search by hand over a step, each answer of which is compared with the forward pass."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from regard.models.decoding import stepper
from regard.models.inputs import pairs
from regard.nn.hooks import capture
from tests.models.small_models import PIECES, assert_near, batch, sentences

SOURCES = sentences([4, 1, 6])


def all_at_once(model: Any, source: np.ndarray, read: list[int]) -> np.ndarray:
    """The log-probabilities behind the last of the tokens read, by the forward pass of an encoder-decoder."""
    given = pairs(batch([source], [np.array([*read[1:], 0])]))
    with torch.no_grad():
        return model.scores(model(given)).log_softmax(1)[-1].numpy()


class Rows:
    """The state of a step, and what each row has read and of which source it is."""

    def __init__(self, step: Any, sources: list[np.ndarray]) -> None:
        self.step, self.state = step, step.start(sources)
        self.rows: list[tuple[np.ndarray, list[int]]] = [(source, []) for source in sources]

    def read(self, tokens: list[int]) -> None:
        self.state, answer = self.step.step(self.state, np.array(tokens))
        for (_, read), token in zip(self.rows, tokens, strict=True):
            read.append(token)
        assert_near(answer.all(), np.array([self.expected(source, read) for source, read in self.rows]), 1e-9)

    def expected(self, source: np.ndarray, read: list[int]) -> np.ndarray:
        """What a row's answer is by the forward pass."""
        return all_at_once(self.step.model, source, read)

    def select(self, rows: list[int]) -> None:
        self.state = self.step.select(self.state, np.array(rows))
        self.rows = [(self.rows[row][0], list(self.rows[row][1])) for row in rows]

    def admit(self, sources: list[np.ndarray]) -> None:
        self.state = self.step.admit(self.state, sources)
        self.rows += [(source, []) for source in sources]

    def groups(self) -> list[list[int]]:
        """Rows of one sentence side by side, the sentences in any order."""
        found: list[list[int]] = []
        for i, (source, _) in enumerate(self.rows):
            if i and self.rows[i - 1][0] is source:
                found[-1].append(i)
            else:
                found.append([i])
        return [found[i] for i in np.random.default_rng(len(found)).permutation(len(found))]


def leave_and_enter(step: Any, held: Callable[[Any], list[int]]) -> Rows:
    """Sentences whose last row leaves are forgotten; ``held``: how long the sources are that a state remembers."""
    rows = Rows(step, SOURCES)
    rows.read([PIECES] * 3)
    rows.select([2, 2, 0])
    assert held(rows.state) == [6, 4]
    rows.read([3, 4, 5])
    rows.select([0])
    assert held(rows.state) == [6]
    rows.read([7])
    rows.admit(sentences([9, 2], seed=4))
    assert held(rows.state) == [6, 9, 2]
    rows.read([6, PIECES, PIECES])
    return rows


def compare_weights(model: Any, point: str, heads: int) -> None:
    """The cross-attention weights of a step are those that pass a point of the forward pass; only if asked for."""
    rows = Rows(stepper(model, weights=True), SOURCES)
    rows.read([PIECES] * 3)
    rows.select([0, 0, 1, 2, 2, 2])
    tokens = [3, 4, 5, 6, 7, 8]
    rows.state, answer = rows.step.step(rows.state, np.array(tokens))
    weight_NHS = answer.context()
    assert weight_NHS.shape == (6, heads, 6)
    for row, ((source, read), token) in enumerate(zip(rows.rows, tokens, strict=True)):
        with capture([point]) as heard:
            all_at_once(model, source, [*read, token])
        wanted_HS = np.concatenate([layer[-1][:, -1] for layer in heard.values()])
        assert_near(weight_NHS[row, :, : len(source)], wanted_HS, 1e-9)
        assert not weight_NHS[row, :, len(source) :].any()
    assert stepper(model).step(stepper(model).start(SOURCES), np.array([PIECES] * 3))[1].context() is None


def search_at_random(step: Any, seed: int, steps: int) -> None:
    """Random tokens; rows are kept, repeated and left out, and sentences enter."""
    random, rows = np.random.default_rng(seed), Rows(step, SOURCES)
    for _ in range(steps):
        rows.read([PIECES if not read else int(random.integers(2, PIECES)) for _, read in rows.rows])
        kept: list[int] = []
        for group in rows.groups():
            kept += random.choice(group, random.integers(0, 4)).tolist()
        rows.select(kept or [0])
        if random.random() < 0.5:
            rows.admit(sentences(random.integers(1, 9, 2), seed=int(random.integers(100))))
