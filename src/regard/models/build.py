"""From a recipe section to parts: the only place where a word becomes a class."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from regard.config import TransformerSection
from regard.models.transformer import Decoder, Encoder, Transformer
from regard.nn.attention import MultiHeadAttention
from regard.nn.dropout import Dropout
from regard.nn.embeddings import InputEmbedding, TokenEmbedding
from regard.nn.feedforward import FeedForward
from regard.nn.init import initialise
from regard.nn.layers import DecoderLayer, EncoderLayer
from regard.nn.normalization import LayerNorm, RMSNorm
from regard.nn.positions import Learned, NoPositions, Positions, Sinusoidal
from regard.nn.probe import name_parts
from regard.nn.residual import PostNorm, PreNorm, Residual

NORMS: dict[str, Callable[[int], nn.Module]] = {"layer": LayerNorm, "rms": RMSNorm}
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU}
RESIDUALS: dict[str, Callable[[nn.Module, Dropout], Residual]] = {"post": PostNorm, "pre": PreNorm}
POSITIONS: dict[str, Callable[[TransformerSection], Positions]] = {
    "sinusoidal": lambda model: Sinusoidal(model.d_model),
    "learned": lambda model: Learned(model.d_model, model.max_positions),
    "none": lambda model: NoPositions(),
}


def transformer(model: TransformerSection, source_pieces: int, target_pieces: int, key: int = 0) -> Transformer:
    """The Transformer a section describes, its weights drawn from ``key`` [Vaswani17 §3].

    Raises:
        ValueError: three-way tying of vocabularies of different sizes.
    """
    source, target, output = _tables(model, source_pieces, target_pieces)
    encoder_layers = [_encoder_layer(model) for _ in range(model.encoder_layers)]
    decoder_layers = [_decoder_layer(model) for _ in range(model.decoder_layers)]
    built = Transformer(
        Encoder(_input(model, source), encoder_layers, _final(model)),
        Decoder(_input(model, target), decoder_layers, _final(model)),
        output,
    )
    name_parts(built)
    if not any(parameter.is_meta for parameter in built.parameters()):
        initialise(built, key)
    return built


def outline(model: TransformerSection, source_pieces: int, target_pieces: int) -> Transformer:
    """The same Transformer without memory for its weights: to count and to check shapes."""
    with torch.device("meta"):
        return transformer(model, source_pieces, target_pieces)


def _tables(model: TransformerSection, source_pieces: int, target_pieces: int) -> tuple[TokenEmbedding, ...]:
    """Source embedding, target embedding and pre-softmax projection; tied ones are the same part."""
    target = TokenEmbedding(target_pieces, model.d_model)
    if model.tie == "three":
        if source_pieces != target_pieces:
            raise ValueError(f"three-way tying of {source_pieces} source pieces with {target_pieces} target pieces")
        return target, target, target
    source = TokenEmbedding(source_pieces, model.d_model)
    return source, target, target if model.tie == "two" else TokenEmbedding(target_pieces, model.d_model)


def _input(model: TransformerSection, table: TokenEmbedding) -> InputEmbedding:
    return InputEmbedding(table, POSITIONS[model.positions](model), model.dropout)


def _attention(model: TransformerSection) -> MultiHeadAttention:
    return MultiHeadAttention(model.d_model, model.heads, model.key_size, model.value_size, model.attention_dropout)


def _feedforward(model: TransformerSection) -> FeedForward:
    return FeedForward(model.d_model, model.d_ff, ACTIVATIONS[model.activation](), model.feedforward_dropout)


def _residuals(model: TransformerSection, count: int) -> list[Residual]:
    kind, norm = RESIDUALS[model.norm_place], NORMS[model.norm]
    return [kind(norm(model.d_model), Dropout(model.dropout)) for _ in range(count)]


def _final(model: TransformerSection) -> nn.Module:
    return NORMS[model.norm](model.d_model) if model.norm_place == "pre" else nn.Identity()


def _encoder_layer(model: TransformerSection) -> EncoderLayer:
    return EncoderLayer(_attention(model), _feedforward(model), _residuals(model, 2))


def _decoder_layer(model: TransformerSection) -> DecoderLayer:
    return DecoderLayer(_attention(model), _attention(model), _feedforward(model), _residuals(model, 3))
