"""Recurrent layers: the products by kernels, a time step of all texts at once in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.fast.parts import Floats, Linear
from regard.fast.recurrent.cells import Cell

Ids = NDArray[np.int64]


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

    def read(self, x_RD: Floats, live_L: Sequence[int], count: int) -> tuple[Floats, Floats]:
        """``hidden_RD, last_NX``: the hidden vectors of tokens, and the texts' states at their ends, as in torch.

        Tokens are time-major: the first of every text, then the second of every one …

        Args:
            x_RD: what enters.
            live_L: how many texts have a token at each time.
            count: N, of the texts, the longest first.
        """
        entered_RF, size = self.enter.rows(x_RD), self.cell.size
        hidden_RD = np.empty((len(x_RD), len(self.carry) * size), np.float32)
        last_NSDX = np.zeros((count, self.cell.states, len(self.carry), size), np.float32)
        ends_L = np.cumsum(live_L).tolist()
        times = [slice(end - live, end) for end, live in zip(ends_L, live_L, strict=True)]
        for number, (carry, order) in enumerate(zip(self.carry, (times, times[::-1]), strict=False)):
            columns = slice(number * carry.columns, (number + 1) * carry.columns)
            found = slice(number * size, (number + 1) * size)
            state_NX = np.zeros((count, self.cell.states * size), np.float32)
            for now in order:
                live_NX = state_NX[: now.stop - now.start]
                self.cell.step(entered_RF[now, columns], carry.rows(live_NX[:, :size]), live_NX)
                hidden_RD[now, found] = live_NX[:, :size]
            last_NSDX[:, :, number] = state_NX.reshape(count, -1, size)
        return hidden_RD, last_NSDX.reshape(count, -1)

    def step(self, x_ND: Floats, state_NX: Floats) -> Floats:
        """``hidden_ND`` after one more token a row, forwards; the states are changed in place."""
        self.cell.step(self.enter.rows(x_ND), self.carry[0].rows(state_NX[:, : self.cell.size]), state_NX)
        return state_NX[:, : self.cell.size]


def read(layers: Sequence[Layer], x_TD: Floats, lengths_B: Ids) -> tuple[Floats, Floats]:
    """``hidden_TD, last_BX``: the top layer's hidden vectors of texts end to end, and its states at their ends.

    A text without tokens ends with zeros.
    """
    order_B = np.argsort(-lengths_B, kind="stable")
    starts_B, sorted_B = (lengths_B.cumsum() - lengths_B)[order_B], lengths_B[order_B]
    places_L = np.arange(int(lengths_B.max(initial=0)))
    real_LB = places_L[:, None] < sorted_B
    tokens_R = (starts_B + places_L[:, None])[real_LB]
    hidden_RD, live_L = x_TD[tokens_R], real_LB.sum(1).tolist()
    for layer in layers:
        hidden_RD, last_NX = layer.read(hidden_RD, live_L, len(lengths_B))
    hidden_TD, last_BX = np.empty_like(hidden_RD), np.empty_like(last_NX)
    hidden_TD[tokens_R], last_BX[order_B] = hidden_RD, last_NX
    return hidden_TD, last_BX
