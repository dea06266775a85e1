"""Encoders that read texts by a recurrence [Lample16, Yang16], over pieces or over words, and their cells.

The products are by kernels, a time step of all texts at once in NumPy [Bahdanau15 §A.1, Luong15 §2]. F: all of a cell's
gates side by side, as in torch. X: a row's state, its hidden vector first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regard.engine.heads import mean
from regard.engine.layers import Floats, Ids, Linear
from regard.engine.stack import Texts, word_vectors


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


@dataclass(frozen=True)
class Layer:
    """One layer, forwards or in both directions, the hidden vectors side by side.

    Args:
        cell: what is repeated.
        enter: what enters times its weights, of all directions.
        carry: for each direction the hidden vector before times its own.
    """

    cell: Cell
    enter: Linear
    carry: Sequence[Linear]

    def read(self, x_RD: Floats, live_L: Sequence[int]) -> Floats:
        """``hidden_RD`` of tokens that are time-major: the first of every text, then the second of every one …

        Args:
            x_RD: what enters, of the longest text first.
            live_L: how many texts have a token at each time.
        """
        entered_RF, size = self.enter.rows(x_RD), self.cell.size
        hidden_RD = np.empty((len(x_RD), len(self.carry) * size), np.float32)
        ends_L = np.cumsum(live_L).tolist()
        times = [slice(end - live, end) for end, live in zip(ends_L, live_L, strict=True)]
        for number, (carry, order) in enumerate(zip(self.carry, (times, times[::-1]), strict=False)):
            columns = slice(number * carry.columns, (number + 1) * carry.columns)
            found = slice(number * size, (number + 1) * size)
            state_NX = np.zeros((max(live_L, default=0), self.cell.states * size), np.float32)
            for now in order:
                live_NX = state_NX[: now.stop - now.start]
                self.cell.step(entered_RF[now, columns], carry.rows(live_NX[:, :size]), live_NX)
                hidden_RD[now, found] = live_NX[:, :size]
        return hidden_RD


@dataclass(frozen=True)
class RecurrentEncoder:
    """Embeddings and recurrent layers, over pieces or over words, each the mean of its pieces.

    Args:
        table_VD: of the embeddings, which are multiplied by the root of their size.
        features_XD: a vector for each feature of words, if the model reads them.
        layers: each reads the hidden vectors of the one below.
        over_words: step over words; the pieces of one share its hidden vector.
    """

    table_VD: Floats
    features_XD: Floats | None
    layers: Sequence[Layer]
    over_words: bool

    def __call__(self, texts: Texts) -> Floats:
        """``hidden_TD``."""
        x_TD = self.table_VD[texts.ids_T]
        if self.features_XD is not None:
            x_TD = x_TD + word_vectors(self.features_XD, texts)
        x_TD = x_TD * np.float32(self.table_VD.shape[1] ** 0.5)
        if not self.over_words:
            return self._read(x_TD, texts.lengths_B)
        starts_W, lengths_W, words_B = _runs(texts)
        return np.repeat(self._read(mean(x_TD, starts_W, lengths_W), words_B), lengths_W, axis=0)

    def _read(self, x_TD: Floats, lengths_B: Ids) -> Floats:
        """The top layer's hidden vectors of texts end to end."""
        order_B = np.argsort(-lengths_B, kind="stable")
        starts_B, sorted_B = (lengths_B.cumsum() - lengths_B)[order_B], lengths_B[order_B]
        places_L = np.arange(int(lengths_B.max(initial=0)))
        real_LB = places_L[:, None] < sorted_B
        tokens_R = (starts_B + places_L[:, None])[real_LB]
        hidden_RD, live_L = x_TD[tokens_R], real_LB.sum(1).tolist()
        for layer in self.layers:
            hidden_RD = layer.read(hidden_RD, live_L)
        hidden_TD = np.empty_like(hidden_RD)
        hidden_TD[tokens_R] = hidden_RD
        return hidden_TD


def _runs(texts: Texts) -> tuple[Ids, Ids, Ids]:
    """Where the pieces of each word begin, how many these are, and the words of each text; no word is one by itself.

    Raises:
        ValueError: the words are not given.
    """
    if texts.words is None:
        raise ValueError("a recurrence over words needs the words of its tokens")
    word_T = texts.words[0]
    first_T = np.ones(len(word_T), np.bool_)
    first_T[1:] = (word_T[1:] != word_T[:-1]) | (word_T[1:] == 0)
    first_T[texts.starts_B] = True
    starts_W = np.flatnonzero(first_T)
    words_B = np.add.reduceat(first_T.astype(np.int64), texts.starts_B) if len(texts.lengths_B) else texts.lengths_B
    return starts_W, np.diff(np.append(starts_W, len(word_T))), words_B
