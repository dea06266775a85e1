"""Recurrent encoders with one head: text classification [Yang16 §2.2] or tagging [Lample16 §2]."""

from __future__ import annotations

from torch import Tensor, nn

from regard.models.bert import Bert, TagHead, TextHead, VectorHead
from regard.models.inputs import Tokens
from regard.nn.embeddings import InputEmbedding
from regard.nn.recurrent.cells import Stack


class TextEncoder(nn.Module):
    """A recurrence over texts, one- or two-way."""

    def __init__(self, input: InputEmbedding, stack: Stack) -> None:
        super().__init__()
        self.input = input
        self.stack = stack

    def forward(self, source: Tokens) -> Tensor:
        """``hidden_TD``, the input of a head."""
        sequences = source.sequences
        x_TD = self.input(source.ids_T, sequences.positions_T, sequences.longest)
        hidden_TD, _ = self.stack(x_TD, sequences)
        return hidden_TD


class RecurrentEncoder(nn.Module):
    """A recurrence over a text, and a head; by attention its words are weighed [Yang16 §2.2]."""

    def __init__(self, encoder: TextEncoder, head: TextHead | TagHead | VectorHead) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, tokens: Tokens) -> Tensor:
        """The output: ``score_TC`` of tags, ``score_BC`` or ``vector_BD`` of texts."""
        said: Tensor = self.head(self.encoder(tokens), tokens.sequences)
        return said


Reader = Bert | RecurrentEncoder
"""A model of texts without a second side, which labels them."""
