"""Cells of a recurrence: what is repeated for every token, of all rows at once in NumPy [Bahdanau15 §A.1, Luong15 §2].

F: all of a cell's gates side by side, as in torch. X: a row's state, its hidden vector first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regard.engine.parts import Floats


@dataclass(frozen=True)
class Cell(ABC):
    """What is repeated.

    Args:
        size: entries of a hidden vector.
    """

    gates: ClassVar[int]
    states: ClassVar[int] = 1
    """Vectors that are carried: the hidden one, and the LSTM's memory cell."""
    size: int

    @abstractmethod
    def step(self, entered_NF: Floats, carried_NF: Floats, state_NX: Floats) -> None:
        """Rows read one more token; their states are changed in place.

        Args:
            entered_NF: what enters times its weights.
            carried_NF: the hidden vector before times its own.
            state_NX: the states.
        """


class Elman(Cell):
    """``h = tanh(e + u)``."""

    gates = 1

    def step(self, entered_NF: Floats, carried_NF: Floats, state_NX: Floats) -> None:
        np.tanh(entered_NF + carried_NF, out=state_NX)


class Gru(Cell):
    """``h = z ∘ h' + (1 - z) ∘ tanh(e_n + r ∘ u_n)`` with the gates ``r, z = σ(e + u)`` [Bahdanau15 §A.1.1]."""

    gates = 3

    def step(self, entered_NF: Floats, carried_NF: Floats, state_NX: Floats) -> None:
        size = self.size
        gates_NF = _sigmoid(entered_NF[:, : 2 * size] + carried_NF[:, : 2 * size])
        new_ND = np.tanh(entered_NF[:, 2 * size :] + gates_NF[:, :size] * carried_NF[:, 2 * size :])
        state_NX[:] = new_ND + gates_NF[:, size:] * (state_NX - new_ND)


class Lstm(Cell):
    """``c = f ∘ c' + i ∘ g``, ``h = o ∘ tanh(c)`` with ``i, f, o = σ(e + u)`` and ``g = tanh(e + u)``."""

    gates = 4
    states = 2

    def step(self, entered_NF: Floats, carried_NF: Floats, state_NX: Floats) -> None:
        size, sum_NF, cell_ND = self.size, entered_NF + carried_NF, state_NX[:, self.size :]
        gates_NF, let_out_ND = _sigmoid(sum_NF[:, : 2 * size]), _sigmoid(sum_NF[:, 3 * size :])
        cell_ND *= gates_NF[:, size:]
        cell_ND += gates_NF[:, :size] * np.tanh(sum_NF[:, 2 * size : 3 * size])
        state_NX[:, :size] = let_out_ND * np.tanh(cell_ND)


CELLS: dict[str, type[Cell]] = {"elman": Elman, "gru": Gru, "lstm": Lstm}
"""The recipe's words."""


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(np.tanh(x * np.float32(0.5)) * np.float32(0.5) + np.float32(0.5))
