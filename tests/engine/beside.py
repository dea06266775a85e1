"""A step that the model and its engine both make, compared row by row."""

import numpy as np
import torch

from regard.models.decoding import stepper
from tests.engine.engines import writing
from tests.laws.families import SOURCES, Family
from tests.models.small_models import PIECES, assert_near, sentences, tolerance

MOST = tolerance(torch.float32)


class Beside:
    """A step that both make, each answer compared."""

    def __init__(self, family: Family) -> None:
        model, self.fast = writing(family)
        self.torch = stepper(model)
        self.random = np.random.default_rng(1)

    def start(self, sources) -> None:
        self.states = self.torch.start(sources), self.fast.start(sources)

    def admit(self, sources) -> None:
        one, other = self.states
        self.states = self.torch.admit(one, sources), self.fast.admit(other, sources)

    def select(self, rows) -> None:
        one, other = self.states
        self.states = self.torch.select(one, np.array(rows)), self.fast.select(other, np.array(rows))

    def step(self, tokens_N) -> None:
        (one, expected), (other, found) = (
            self.torch.step(self.states[0], tokens_N),
            self.fast.step(self.states[1], tokens_N),
        )
        self.states = one, other
        log_probability_NV = expected.all()
        assert_near(found.all(), log_probability_NV, MOST)
        ids_Nk, best_Nk = found.best(4, (1, 5))
        assert_near(best_Nk, np.take_along_axis(log_probability_NV, ids_Nk, 1), MOST)
        assert_near(best_Nk, expected.best(4, (1, 5))[1], MOST)
        assert not np.isin(ids_Nk, (1, 5)).any()
        assert_near(found.of(tokens_N % PIECES), expected.of(tokens_N % PIECES), MOST)

    def whole_search(self) -> None:
        """Rows are repeated, reordered and left out; sentences enter and leave meanwhile, one of a single token."""
        self.start(SOURCES)
        self.step(np.full(4, PIECES))
        self.select([0, 0, 1, 2, 3, 3])
        self.read(6)
        self.select([1, 0, 2, 5, 4])  # the third sentence leaves
        self.read(5)
        self.admit(sentences([6, 1], seed=4))
        self.step(np.append(self.random.integers(2, PIECES, 5), [PIECES, PIECES]))
        self.select([2, 3, 5, 5, 6])
        self.read(5)
        self.read(5)
        assert self.states[1].sentence_N.tolist() == self.states[0].sentence_N.tolist() == [0, 1, 2, 2, 3]

    def read(self, rows: int) -> None:
        self.step(self.random.integers(2, PIECES, rows))
