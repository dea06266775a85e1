"""Layers that read a text forwards, recurrent ones beside self-attention: what ``parallel.py`` measures."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.config import RnnSection, TransformerSection
from regard.models.complexity import costs
from regard.nn import ops
from regard.nn.attention.multi_head import MultiHeadAttention
from regard.nn.dropout import Dropout
from regard.nn.embeddings import InputEmbedding, TokenEmbedding
from regard.nn.layers import EncoderLayer, PlainFeedForward, PostNorm
from regard.nn.layout import Layout, Sequences
from regard.nn.normalization import LayerNorm
from regard.nn.positions import NoPositions, Sinusoidal
from regard.nn.recurrent import Elman, Gru, Lstm, Recurrent, Stack

HEADS = 4


class Recurrence(nn.Module):
    """One recurrent layer from the first token to the last."""

    def __init__(self, cell: Recurrent) -> None:
        super().__init__()
        self.stack = Stack([cell], 0.0)

    def forward(self, x_TD: Tensor, sequences: Sequences) -> Tensor:
        """``hidden_TD``."""
        hidden_TD: Tensor = self.stack(x_TD, sequences)[0]
        return hidden_TD


class SelfAttention(nn.Module):
    """One layer of the paper in which a token sees those before it; its inner size gives it the weights of an LSTM."""

    def __init__(self, size: int) -> None:
        super().__init__()
        residuals = [PostNorm(LayerNorm(size), Dropout(0.0)) for _ in range(2)]
        attention = MultiHeadAttention(size, HEADS, size // HEADS, size // HEADS)
        self.layer = EncoderLayer(attention, PlainFeedForward(size, 2 * size, nn.ReLU()), residuals)

    def forward(self, x_TD: Tensor, sequences: Sequences) -> Tensor:
        """``x_TD`` of the layer's end."""
        read_TD: Tensor = self.layer(x_TD, Layout(sequences, sequences), causal=True)
        return read_TD


LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "Elman": lambda size: Recurrence(Elman(size, size)),
    "GRU": lambda size: Recurrence(Gru(size, size)),
    "LSTM": lambda size: Recurrence(Lstm(size, size)),
    "attention": SelfAttention,
}


def layer(name: str, size: int, seed: int) -> nn.Module:
    """A layer with weights drawn from a seed, computing in full precision."""
    torch.manual_seed(seed)
    made = LAYERS[name](size)
    ops.use(made, ops.full())
    return made


class Guesser(nn.Module):
    """A language model of one layer: guesses each token from those before it.

    Args:
        name: of the layer, a key of :data:`LAYERS`.
        pieces: of the vocabulary.
        size: of every vector.
        seed: draws the weights.
    """

    def __init__(self, name: str, pieces: int, size: int, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        positions = Sinusoidal(size) if name == "attention" else NoPositions()
        self.input = InputEmbedding(TokenEmbedding(pieces, size, start=0), positions, 0.0)
        self.layer = layer(name, size, seed)
        self.output = ops.Linear(size, pieces)
        ops.use(self, ops.full())

    def embed(self, ids_T: Tensor, sequences: Sequences) -> Tensor:
        """``x_TD``: what the layer reads."""
        x_TD: Tensor = self.input(ids_T, sequences.positions_T, sequences.longest)
        return x_TD

    def forward(self, ids_T: Tensor, sequences: Sequences) -> Tensor:
        """``scores_TV`` of the token after each."""
        scores_TV: Tensor = self.output(self.layer(self.embed(ids_T, sequences), sequences))
        return scores_TV


def path(name: str, length: int) -> dict[str, str | int]:
    """The longest way between two tokens of a text through one such layer: the formula, and its value."""
    sizes = {"encoder_layers": 1, "decoder_layers": 1}
    section = TransformerSection(**sizes) if name == "attention" else RnnSection(two_way=False, **sizes)
    found = costs(section, length, 1).within
    return {"formula": found.formula, "path": found.value}
