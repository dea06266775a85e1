"""The Transformer [Vaswani17 §3, Figure 1], an encoder and a decoder, and decoder-only models [Radford18, Radford19].

The layers of their stacks are those of ``nn/layers``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.inputs import Pairs, Patches, Tokens
from regard.nn import BaseDecoderLayer, EncoderLayer, InputEmbedding, Layout, PatchEmbedding, TokenEmbedding


class Encoder(nn.Module):
    """A stack of N identical layers; every token attends to all tokens of its sentence [Vaswani17 §3.1].

    ``final`` is the norm that ends a pre-norm stack, the identity for the paper's post-norm.
    """

    def __init__(self, input: InputEmbedding | PatchEmbedding, layers: list[EncoderLayer], final: nn.Module) -> None:
        super().__init__()
        self.input = input
        self.layers = nn.ModuleList(layers)
        self.final = final

    def forward(self, source: Tokens | Patches, *, causal: bool = False) -> Tensor:
        """``memory_SD``, for a decoder to attend to or as a head's input; ``causal`` in a decoder-only model."""
        sequences = source.sequences
        layout = Layout(sequences, sequences)
        x_TD = self.input(source.content, sequences.positions_T, sequences.longest, source.segments_T, source.words)
        for layer in self.layers:
            x_TD = layer(x_TD, layout, causal=causal)
        return self.final(x_TD)


class Decoder(nn.Module):
    """A stack of N identical layers that also attend to the encoder's output [Vaswani17 §3.1]."""

    def __init__(self, input: InputEmbedding, layers: list[BaseDecoderLayer], final: nn.Module) -> None:
        super().__init__()
        self.input = input
        self.layers = nn.ModuleList(layers)
        self.final = final

    def forward(self, target: Tokens, memory_SD: Tensor, source: Tokens) -> Tensor:
        """``hidden_TD`` for all target positions at once (teacher forcing); position *t* has seen tokens up to *t*."""
        sequences = target.sequences
        x_TD = self.input(target.ids_T, sequences.positions_T, sequences.longest)
        layout, cross_layout = Layout(sequences, sequences), Layout(sequences, source.sequences)
        for layer in self.layers:
            x_TD = layer(x_TD, memory_SD, layout, cross_layout)
        return self.final(x_TD)


class Writer(nn.Module):
    """What predicts the next piece: the pre-softmax projection [Vaswani17 §3.4].

    Args:
        output: a row for each piece, and one more where there is a start symbol.
        biased: a learned number is added to the score of each piece.
        parts: by name, what hidden vectors are of; a table that they share with the output bears their name.
    """

    def __init__(self, output: TokenEmbedding, biased: bool = False, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)
        self.output = output
        self.pieces = output.pieces
        """Pieces that can be predicted; of an encoder-decoder also the id of the start symbol."""
        self.output_bias = nn.Parameter(torch.zeros(self.pieces)) if biased else None

    def scores(self, hidden_ND: Tensor) -> Tensor:
        """``score_NV`` of every piece."""
        score_NV = self.output.scores(hidden_ND)
        return score_NV if self.output_bias is None else score_NV + self.output_bias

    def projection(self, hidden_TD: Tensor) -> tuple[Tensor, Tensor]:
        """``(hidden_TD, table_V1D)``, whose product gives the scores: a bias is one more column, times one."""
        table_V1D = self.output.weight
        if self.output_bias is None:
            return hidden_TD, table_V1D
        bias_V1 = F.pad(self.output_bias, (0, len(table_V1D) - self.pieces))[:, None]
        return torch.cat([hidden_TD, torch.ones_like(hidden_TD[:, :1])], 1), torch.cat([table_V1D, bias_V1], 1)


class EncoderDecoder(Writer):
    """Encoder, decoder and the pre-softmax projection ``output``, which may share their table [Press17]."""

    encoder: nn.Module
    decoder: nn.Module

    def __init__(self, encoder: nn.Module, decoder: nn.Module, output: TokenEmbedding, biased: bool = False) -> None:
        super().__init__(output, biased, encoder=encoder, decoder=decoder)

    def forward(self, pairs: Pairs) -> Tensor:
        """``hidden_TD`` of the decoder; times the output table it gives the scores of the next token."""
        memory = self.encoder(pairs.source)
        return self.decoder(pairs.target, memory, pairs.source)


class Transformer(EncoderDecoder):
    """The paper's encoder and decoder, all three tables one where it ties them [Vaswani17 §3.4]."""

    encoder: Encoder
    decoder: Decoder


class Gpt(Writer):
    """A stack in which every token sees itself and what came before; it guesses the next token [Radford18 §3.1].

    Its layers are those of an encoder, with a causal mask, and its output embeddings are tied.
    """

    decoder: Encoder

    def __init__(self, decoder: Encoder, output: TokenEmbedding) -> None:
        super().__init__(output, decoder=decoder)

    def forward(self, tokens: Tokens) -> Tensor:
        """``hidden_TD``; times the output table it gives the scores of the token that follows each."""
        hidden_TD: Tensor = self.decoder(tokens, causal=True)
        return hidden_TD
