"""A step that the model and its engine both make, compared row by row."""

import numpy as np
import torch

from regard.models.decoding import stepper
from tests.fast.engines import writing
from tests.laws.families import Family
from tests.models.small_models import PIECES, assert_near, tolerance

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

    def read(self, rows: int) -> None:
        self.step(self.random.integers(2, PIECES, rows))
