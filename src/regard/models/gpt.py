"""Decoder-only models [Radford18, Radford19]: encoder layers with a causal mask, and tied output embeddings."""

from __future__ import annotations

from torch import Tensor, nn

from regard.models.inputs import Tokens
from regard.models.transformer import Encoder
from regard.nn.embeddings import TokenEmbedding


class Gpt(nn.Module):
    """A stack in which every token sees itself and what came before; it guesses the next token [Radford18 §3.1]."""

    def __init__(self, decoder: Encoder, output: TokenEmbedding) -> None:
        super().__init__()
        self.decoder = decoder
        self.output = output

    def forward(self, tokens: Tokens) -> Tensor:
        """``hidden_TD``; times the output table it gives the scores of the token that follows each."""
        hidden_TD: Tensor = self.decoder(tokens, causal=True)
        return hidden_TD

    @property
    def pieces(self) -> int:
        """Pieces that can be predicted."""
        return self.output.pieces
