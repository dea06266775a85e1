"""Decoder-only models [Radford18, Radford19]: the encoder's layers under ``causal``, and the table as output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.models.inputs import Tokens
from regard.models.transformer import Encoder
from regard.nn.embeddings import TokenEmbedding

if TYPE_CHECKING:
    from regard.models.gpt_stepper import GptStepper


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

    def stepper(self, device: torch.device | str = "cpu", *, window: int | None = None) -> GptStepper:
        """The model step by step, for search and sampling; a token sees at most ``window``."""
        from regard.models.gpt_stepper import GptStepper

        return GptStepper(self, device, window=window)
