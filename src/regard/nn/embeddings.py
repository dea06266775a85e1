"""Embeddings: ids → vectors, times √d_model, plus positions, then dropout [Vaswani17 §3.4, §3.5, §5.4]."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn import probe
from regard.nn.dropout import Dropout
from regard.nn.ops import Path, matmul
from regard.nn.positions import Positions


class TokenEmbedding(nn.Module):
    """A table of one vector a piece; the row behind the pieces is the start symbol's, zero and never learned.

    The table may be shared: source and target embedding and the output projection are one matrix in the paper
    [Vaswani17 §3.4, Press17].
    """

    product: Path = "exact"

    def __init__(self, pieces: int, d_model: int) -> None:
        super().__init__()
        self.pieces = pieces
        self.weight = nn.Parameter(torch.empty(pieces + 1, d_model))

    def forward(self, ids_T: Tensor) -> Tensor:
        """``x_TD``, a row of the table for each id; no gradient flows to the start symbol's row."""
        return F.embedding(ids_T, self.weight, padding_idx=self.pieces)

    def scores(self, hidden_ND: Tensor) -> Tensor:
        """The pre-softmax projection ``score_NV`` onto every piece; the start symbol is never predicted."""
        return matmul(hidden_ND, self.weight[: self.pieces].t(), self.product)


class InputEmbedding(nn.Module):
    """What enters a stack: ``Dropout(Embedding(ids) · √d_model + positions)`` [Vaswani17 §3.4, §3.5, §5.4]."""

    def __init__(self, tokens: TokenEmbedding, positions: Positions, dropout: float) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.path = ""

    def forward(self, ids_T: Tensor, positions_T: Tensor, longest: int) -> Tensor:
        """``x_TD``; positions count from 0 in each sentence and are below ``longest``."""
        scale = self.tokens.weight.shape[1] ** 0.5
        x_TD = probe.passing(f"{self.path}.embedding", self.tokens(ids_T) * scale)
        x_TD = probe.passing(f"{self.path}.positions", self.positions.embed(x_TD, positions_T, longest))
        return self.dropout(x_TD)
