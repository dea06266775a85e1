"""The layers of a network, on tensors only, in the order of the paper; and the letters of their shapes.

All parts can be imported from here (``from regard.nn import MultiHeadAttention``), for models of your own.

The letters after a tensor name's last underscore are its dimensions, in order: ``query_THK`` is a tensor of T tokens by
H heads by K entries per head [Shazeer24]. Within one call a letter means one size; a digit makes a letter of its own
(``offsets_B1`` has one entry more than there are sentences). The test suite checks this.
"""

from __future__ import annotations

from regard.nn.alignment import (
    Additive,
    AdditiveScore,
    Alignment,
    Cosine,
    Dot,
    DotScore,
    General,
    NoAlignment,
    ScaledDot,
)
from regard.nn.attention.multi_head import KVCache, MultiHeadAttention, Scoring
from regard.nn.dropout import Dropout
from regard.nn.embeddings import InputEmbedding, PatchEmbedding, Segments, TokenEmbedding, WordEmbedding, WordRows
from regard.nn.heads import Attention, ConditionalRandomField, CRFTags, IndependentTags
from regard.nn.layers import (
    BaseDecoderLayer,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    GatedFeedForward,
    PlainFeedForward,
    PostNorm,
    PreNorm,
    RecurrentDecoderLayer,
    Residual,
)
from regard.nn.layout import Layout, Sequences
from regard.nn.loss import SmoothedCrossEntropy
from regard.nn.normalization import BatchNorm, GroupNorm, LayerNorm, RMSNorm, Scaled
from regard.nn.ops import Linear
from regard.nn.positions import (
    EmbeddingPositions,
    Grid,
    Learned,
    LinearBias,
    NoPositions,
    Positions,
    Relative,
    Rotary,
    ScorePositions,
    Sinusoidal,
    TimingSignal,
)
from regard.nn.recurrent import SSRU, Bridge, Elman, Gru, Lstm, Recurrent, Stack

__all__ = [
    "DIMENSIONS",
    "SSRU",
    "Additive",
    "AdditiveScore",
    "Alignment",
    "Attention",
    "BaseDecoderLayer",
    "BatchNorm",
    "Bridge",
    "CRFTags",
    "ConditionalRandomField",
    "Cosine",
    "DecoderLayer",
    "Dot",
    "DotScore",
    "Dropout",
    "Elman",
    "EmbeddingPositions",
    "EncoderLayer",
    "FeedForward",
    "GatedFeedForward",
    "General",
    "Grid",
    "GroupNorm",
    "Gru",
    "IndependentTags",
    "InputEmbedding",
    "KVCache",
    "LayerNorm",
    "Layout",
    "Learned",
    "Linear",
    "LinearBias",
    "Lstm",
    "MultiHeadAttention",
    "NoAlignment",
    "NoPositions",
    "PatchEmbedding",
    "PlainFeedForward",
    "Positions",
    "PostNorm",
    "PreNorm",
    "RMSNorm",
    "Recurrent",
    "RecurrentDecoderLayer",
    "Relative",
    "Residual",
    "Rotary",
    "Scaled",
    "ScaledDot",
    "ScorePositions",
    "Scoring",
    "Segments",
    "Sequences",
    "Sinusoidal",
    "SmoothedCrossEntropy",
    "Stack",
    "TimingSignal",
    "TokenEmbedding",
    "WordEmbedding",
    "WordRows",
]

DIMENSIONS: dict[str, str] = {
    "T": "tokens that attend: the whole batch, end to end",
    "S": "tokens attended to",
    "B": "sentences",
    "D": "d_model",
    "H": "heads",
    "K": "d_k, query and key size per head",
    "U": "d_v, value size per head",
    "F": "d_ff, inner size of the feed-forward network",
    "V": "vocabulary",
    "N": "live rows of a search",
    "C": "classes or tags",
    "P": "pixels of a patch",
    "L": "longest sequence that attends, only inside a padded way of attention",
    "M": "longest sequence attended to, only inside a padded way of attention",
    "Y": "pairs of a token that attends and a head, laid flat, only inside a padded way of attention",
    "Z": "pairs of a token attended to and a head, laid flat, only inside a padded way of attention",
    "R": "rows of a chunk or of a selection",
    "W": "words",
    "E": "features of a word",
    "X": "entries of a tensor of any shape, laid flat",
}
"""The meaning of each letter, for the whole project."""
