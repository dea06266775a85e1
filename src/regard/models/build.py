"""Builds models and their parts from a recipe section: the only module that maps recipe words to model classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from regard import nn as parts
from regard.config import (
    Attentive,
    BertSection,
    GptSection,
    Model,
    RnnEncoderSection,
    RnnSection,
    TransformerSection,
    VitSection,
    import_name,
)
from regard.models.bert import Activation, Bert, Head, ReadingHead, TagHead, TextHead, VectorHead, Vit, WordHead
from regard.models.rnn import (
    FeedingDecoder,
    PlainDecoder,
    Reader,
    RecurrentEncoder,
    Rnn,
    RnnEncoder,
    TextEncoder,
    WordEncoder,
)
from regard.models.transformer import Decoder, Encoder, Gpt, Transformer
from regard.nn import heads
from regard.nn.hooks import name_parts
from regard.nn.init import initialise, undrawn
from regard.nn.normalization import count_real_tokens
from regard.text.word_features import FEATURES

Built = TypeVar("Built", bound=nn.Module)

NORMS: dict[str, Callable[[Attentive], nn.Module]] = {
    "layer": lambda model: parts.LayerNorm(model.d_model, model.norm_epsilon),
    "rms": lambda model: parts.RMSNorm(model.d_model, model.norm_epsilon),
    "batch": lambda model: parts.BatchNorm(model.d_model, model.norm_epsilon),
    "group": lambda model: parts.GroupNorm(model.d_model, model.norm_groups, model.norm_epsilon),
}
FEEDFORWARDS: dict[str, tuple[type[parts.FeedForward], Callable[[], nn.Module]]] = {
    "relu": (parts.PlainFeedForward, nn.ReLU),
    "gelu": (parts.PlainFeedForward, nn.GELU),
    "gelu_tanh": (parts.PlainFeedForward, lambda: nn.GELU("tanh")),
    "swish": (parts.PlainFeedForward, nn.SiLU),
    "gated_gelu": (parts.GatedFeedForward, lambda: nn.GELU("tanh")),
    "gated_swish": (parts.GatedFeedForward, nn.SiLU),
}
RESIDUALS: dict[str, Callable[[nn.Module, parts.Dropout], parts.Residual]] = {
    "post": parts.PostNorm,
    "pre": parts.PreNorm,
}
POSITIONS: dict[str, Callable[[Attentive, bool], parts.Positions]] = {
    "sinusoidal": lambda model, two_way: parts.Sinusoidal(model.d_model),
    "timing_signal": lambda model, two_way: parts.TimingSignal(model.d_model, model.first_position),
    "learned": lambda model, two_way: parts.Learned(model.d_model, model.max_positions, model.first_position),
    "relative": lambda model, two_way: parts.Relative(
        model.heads, model.relative_buckets, model.relative_distance, two_way
    ),
    "alibi": lambda model, two_way: parts.LinearBias(model.heads),
    "rotary": lambda model, two_way: parts.Rotary(model.key_size, model.rotary_base, model.rotary_scaling),
    "none": lambda model, two_way: parts.NoPositions(),
}
WITHOUT = {
    "residual": "regard.models.without:NoResidual",
    "mask": "regard.models.without:NoMaskDecoderLayer",
    "attention": "regard.models.without:MeanAttention",
    "feed-forward": "regard.models.without:NoFeedForward",
}
"""What stands in the place of a part in a model without an idea; only then it is imported."""
PLACES: dict[str, Callable[[VitSection], parts.Positions]] = {
    "learned": lambda model: parts.Learned(model.d_model, 1 + model.patches),
    "grid": lambda model: parts.Grid(model.d_model, model.height // model.patch, model.width // model.patch),
    "none": lambda model: parts.NoPositions(),
}
"""Positions of an image's patches."""
POOLS: dict[str, Callable[[int], heads.Pool]] = {
    "first": lambda d_model: heads.first,
    "mean": lambda d_model: heads.mean,
    "max": lambda d_model: heads.largest,
    "attention": heads.Attention,
}
"""Pooling of a text."""
POOLER_ACTIVATIONS: dict[str, Activation] = {"tanh": torch.tanh, "relu": torch.relu}
CHAINS: dict[str, type[heads.Chain]] = {"alone": heads.IndependentTags, "crf": heads.CRFTags}
"""How the tags of a sentence are learned and chosen."""
CELLS: dict[str, type[parts.Recurrent]] = {"elman": parts.Elman, "gru": parts.Gru, "lstm": parts.Lstm}
DECODER_CELLS: dict[str, Callable[[Attentive], parts.SSRU]] = {
    "ssru": lambda model: parts.SSRU(model.d_model, model.biases)
}
"""What a layer of the Transformer's decoder may repeat in place of self-attention."""
UNITS: dict[str, Callable[[parts.InputEmbedding, parts.Stack, float], TextEncoder]] = {
    "pieces": lambda input, stack, dropout: TextEncoder(input, stack),
    "words": WordEncoder,
}
"""What a recurrence steps over."""
SCORES: dict[str, Callable[[int], parts.Alignment | parts.NoAlignment]] = {
    "none": lambda d_model: parts.NoAlignment(),
    "dot": lambda d_model: parts.Alignment(parts.Dot(), d_model),
    "scaled": lambda d_model: parts.Alignment(parts.ScaledDot(d_model), d_model),
    "general": lambda d_model: parts.Alignment(parts.General(d_model), d_model),
    "additive": lambda d_model: parts.Alignment(parts.Additive(d_model), d_model),
    "cosine": lambda d_model: parts.Alignment(parts.Cosine(d_model), d_model),
}
"""How a recurrent decoder attends."""


@undrawn()
def transformer(model: TransformerSection, source_pieces: int, target_pieces: int, key: int = 0) -> Transformer:
    """The Transformer a section describes, its weights drawn from ``key`` [Vaswani17 §3].

    Raises:
        ValueError: three-way tying of vocabularies of different sizes.
    """
    source, target, output = tables(model.tie, model.d_model, source_pieces, target_pieces)
    scale = None if model.scale_embedding else 1.0
    reading, writing = _Stack.of(model, two_way=True), _Stack.of(model.decoder, two_way=False)
    encoder = reading.encoder(reading.input(source, scale), model.encoder_layers)
    layers = [writing.decoder_layer() for _ in range(model.decoder_layers)]
    final = parts.Scaled(writing.final(), model.d_model**-0.5) if model.scale_output else writing.final()
    decoder = Decoder(writing.input(target, scale), layers, final)
    return _ready(Transformer(encoder, decoder, output, model.output_bias), key)


@undrawn()
def bert(model: BertSection, pieces: int, head: Head, key: int = 0) -> Bert:
    """The encoder a section describes, with a head: :func:`words`, :func:`classes`, :func:`tags`, :func:`vectors`."""
    table = parts.TokenEmbedding(pieces, model.d_model, start=0)
    stack = _Stack.of(model, two_way=True)
    segments = parts.Segments(model.segments, model.d_model) if model.segments else None
    norm = NORMS[model.norm](model) if model.embedding_norm else None
    features = _words(model, model.d_model)
    input = parts.InputEmbedding(table, stack.positions, model.dropout, 1.0, segments, norm, features)
    return _ready(Bert(stack.encoder(input, model.layers), head(table)), key)


def words(model: BertSection) -> Head:
    """The head that guesses masked words."""
    _, activation = FEEDFORWARDS[model.activation]
    return lambda table: WordHead(table, activation(), NORMS[model.norm](model))


def classes(model: BertSection | RnnEncoderSection, count: int) -> ReadingHead:
    """The head that scores ``count`` classes of a text."""
    return lambda table: TextHead(*_pooling(model), parts.Linear(model.d_model, count), model.dropout)


def tags(model: BertSection | RnnEncoderSection, count: int, chain: str = "alone") -> ReadingHead:
    """The head that scores ``count`` tags of each word; ``chain``: alone, or as whole sequences by a ``crf``."""
    return lambda table: TagHead(parts.Linear(model.d_model, count), model.dropout, _pool(model), CHAINS[chain](count))


def vectors(model: BertSection | RnnEncoderSection) -> ReadingHead:
    """The head that makes a vector of a text; its only parameters are the pooling's and BERT's dense layer."""
    return lambda table: VectorHead(*_pooling(model))


def _pool(model: BertSection | RnnEncoderSection | VitSection) -> heads.Pool:
    return POOLS[model.pool](model.d_model)


def _pooling(model: BertSection | RnnEncoderSection) -> tuple[heads.Pool, parts.Linear | None, Activation]:
    """Pooling of a text, and BERT's dense layer behind it with its activation."""
    dense = parts.Linear(model.d_model, model.d_model) if model.pooler else None
    return _pool(model), dense, POOLER_ACTIVATIONS[getattr(model, "pooler_activation", "tanh")]


@undrawn()
def gpt(model: GptSection, pieces: int, key: int = 0) -> Gpt:
    """The decoder-only model a section describes; its table is its output too [Radford19]."""
    table = parts.TokenEmbedding(pieces, model.d_model, start=0)
    stack = _Stack.of(model, two_way=False)
    return _ready(Gpt(stack.encoder(stack.input(table, 1.0), model.layers), table), key)


@undrawn()
def vit(model: VitSection, count: int, key: int = 0) -> Vit:
    """The encoder of images a section describes, with ``count`` classes [Dosovitskiy21]."""
    pixels = model.patch * model.patch * model.channels
    stack = _Stack(model, parts.NoPositions())
    input = parts.PatchEmbedding(parts.Linear(pixels, model.d_model), PLACES[model.positions](model), model.dropout)
    head = TextHead(_pool(model), None, torch.tanh, parts.Linear(model.d_model, count), 0.0)
    return _ready(Vit(stack.encoder(input, model.layers), head), key)


@undrawn()
def rnn(model: RnnSection, source_pieces: int, target_pieces: int, key: int = 0) -> Rnn:
    """The recurrent encoder-decoder a section describes, its weights drawn from ``key`` [Bahdanau15, Luong15].

    Raises:
        ValueError: three-way tying of vocabularies of different sizes.
    """
    source, target, output = tables(model.tie, model.d_model, source_pieces, target_pieces)
    reading = _recurrent(model, model.encoder_layers, model.d_model, model.two_way)
    writing = _recurrent(model, model.decoder_layers, model.d_model * (2 if model.input_feeding else 1), False)
    kind = FeedingDecoder if model.input_feeding else PlainDecoder
    decoder = kind(
        parts.InputEmbedding(target, parts.NoPositions(), model.dropout),
        parts.Bridge(reading.state_size, model.decoder_layers),
        writing,
        SCORES[model.score](model.d_model),
        model.dropout,
    )
    encoder = RnnEncoder(parts.InputEmbedding(source, parts.NoPositions(), model.dropout), reading)
    return _ready(Rnn(encoder, decoder, output), key)


@undrawn()
def rnn_encoder(model: RnnEncoderSection, pieces: int, head: ReadingHead, key: int = 0) -> RecurrentEncoder:
    """The recurrent reader a section describes, with a head: :func:`classes`, :func:`tags`, :func:`vectors`."""
    entering = model.d_embedding or model.d_model
    table = parts.TokenEmbedding(pieces, entering, start=0)
    stack = _recurrent(model, model.layers, entering, model.two_way)
    units = model.units or "pieces"
    dropout = model.dropout if units == "pieces" else 0.0
    input = parts.InputEmbedding(table, parts.NoPositions(), dropout, words=_words(model, entering))
    return _ready(RecurrentEncoder(UNITS[units](input, stack, model.dropout), head(table)), key)


def _words(model: BertSection | RnnEncoderSection, size: int) -> parts.WordEmbedding | None:
    return parts.WordEmbedding(model.word_features, size, FEATURES) if model.word_features else None


def reader(model: Model, pieces: int, head: ReadingHead, key: int = 0) -> Reader:
    """The model of texts without a second side a section describes, of whichever family."""
    built: Reader = BUILDERS[model.family](model, pieces, head, key)
    return built


def _recurrent(model: RnnSection | RnnEncoderSection, layers: int, size_in: int, two_way: bool) -> parts.Stack:
    """Recurrent layers, of which the first reads vectors of ``size_in``."""
    cell, directions = CELLS[model.cell], 2 if two_way else 1
    sizes = [size_in] + [model.d_model] * (layers - 1)
    return parts.Stack([cell(entering, model.d_model // directions, directions) for entering in sizes], model.dropout)


def encoder_decoder(model: Model, source_pieces: int, target_pieces: int, key: int = 0) -> Transformer | Rnn:
    """The translator a section describes, of whichever family."""
    built: Transformer | Rnn = BUILDERS[model.family](model, source_pieces, target_pieces, key)
    return built


BUILDERS: dict[str, Callable[..., Any]] = {
    "transformer": transformer,
    "rnn": rnn,
    "bert": bert,
    "rnn-encoder": rnn_encoder,
    "gpt": gpt,
    "vit": vit,
}
"""What makes the model of a section, by its family."""
HEADS: dict[str, Callable[[Any, int], Head]] = {
    "words": lambda model, _: words(model),
    "classes": classes,
    "tags": tags,
    "nothing": lambda model, _: vectors(model),
}
"""The head of an encoder by what it writes, from section and number of labels."""


def outline(model: Model, pieces: int, labels: int, writes: str, target_pieces: int | None = None) -> nn.Module:
    """The model of a section, of whichever family.

    Args:
        model: the section.
        pieces: of the vocabulary; ``labels``: of a model that has them.
        writes: what an encoder's head gives, a key of :data:`HEADS`.
        target_pieces: of the target's vocabulary where it has its own.
    """
    if model.info.encoder_decoder:
        return encoder_decoder(model, pieces, pieces if target_pieces is None else target_pieces)
    size = pieces if model.info.reads_pieces else labels
    head = () if model.info.causal or not model.info.reads_pieces else (HEADS[writes](model, labels),)
    return BUILDERS[model.family](model, size, *head)


def _ready(built: Built, key: int) -> Built:
    """Set every module's path and draw weights from the key, unless it is on the meta device."""
    name_parts(built)
    for part in built.modules():
        if isinstance(part, Encoder | Decoder) and any(isinstance(norm, parts.BatchNorm) for norm in part.modules()):
            count_real_tokens(part)
    if not any(parameter.is_meta for parameter in built.parameters()):
        initialise(built, key)
    return built


def tables(tie: str, d_model: int, source_pieces: int, target_pieces: int) -> tuple[parts.TokenEmbedding, ...]:
    """Source embedding, target embedding and pre-softmax projection; tied ones are the same part.

    Raises:
        ValueError: three-way tying of vocabularies of different sizes.
    """
    target = parts.TokenEmbedding(target_pieces, d_model)
    if tie == "three":
        if source_pieces != target_pieces:
            raise ValueError(f"three-way tying of {source_pieces} source pieces with {target_pieces} target pieces")
        return target, target, target
    source = parts.TokenEmbedding(source_pieces, d_model)
    return source, target, target if tie == "two" else parts.TokenEmbedding(target_pieces, d_model)


@dataclass(frozen=True)
class _Stack:
    """The parts of one stack of layers; its kind of positions is one part, shared by all that ask it."""

    model: Attentive
    positions: parts.Positions

    @classmethod
    def of(cls, model: Attentive, *, two_way: bool) -> _Stack:
        """``two_way``: tokens also see what comes after them."""
        return cls(model, POSITIONS[model.positions](model, two_way))

    def input(self, table: parts.TokenEmbedding, scale: float | None) -> parts.InputEmbedding:
        model = self.model
        normed = isinstance(model, TransformerSection) and model.embedding_norm
        norm = NORMS[model.norm](model) if normed else None
        return parts.InputEmbedding(table, self.positions, model.dropout, scale, norm=norm)

    def encoder(self, input: parts.InputEmbedding | parts.PatchEmbedding, count: int) -> Encoder:
        layers = [parts.EncoderLayer(self._attention(), self._feedforward(), self._residuals(2)) for _ in range(count)]
        return Encoder(input, layers, self.final())

    def decoder_layer(self) -> parts.BaseDecoderLayer:
        others = self._attention(cross=True), self._feedforward(), self._residuals(3)
        cell = getattr(self.model, "decoder_cell", None)
        if cell is None:
            kind: type[parts.DecoderLayer] = self._unless("mask", parts.DecoderLayer)
            return kind(self._attention(), *others)
        return parts.RecurrentDecoderLayer(DECODER_CELLS[cell](self.model), *others)

    def final(self) -> nn.Module:
        """The norm that ends a pre-norm stack."""
        return self._norm() if self.model.norm_place == "pre" else nn.Identity()

    @property
    def without(self) -> str | None:
        """The idea that is taken out."""
        return getattr(self.model, "without", None)

    def _unless(self, idea: str, part: Any) -> Any:
        """A part, or what stands in its place in a model without an idea."""
        return import_name(WITHOUT[idea]) if self.without == idea else part

    def _norm(self) -> nn.Module:
        return nn.Identity() if self.without == "norm" else NORMS[self.model.norm](self.model)

    def _attention(self, cross: bool = False) -> parts.MultiHeadAttention:
        model = self.model
        acts = self.positions.turns or self.positions.bias() is not None
        shared = self.positions if acts and not cross else None
        scoring = parts.Scoring(model.scale_scores, model.biases, shared)
        sizes = model.d_model, model.heads, model.key_size, model.value_size
        kind = self._unless("attention", parts.MultiHeadAttention)
        made: parts.MultiHeadAttention = kind(*sizes, model.attention_dropout, scoring)
        made.scale = 1.0 if self.without == "scale" else made.scale
        return made

    def _feedforward(self) -> parts.FeedForward:
        model = self.model
        if self.without == "feed-forward":
            return import_name(WITHOUT["feed-forward"])()
        kind, activation = FEEDFORWARDS[model.activation]
        return kind(model.d_model, model.d_ff, activation(), model.feedforward_dropout, model.biases)

    def _residuals(self, count: int) -> list[parts.Residual]:
        kind, join = RESIDUALS[self.model.norm_place], self._unless("residual", parts.Dropout)
        made = [kind(self._norm(), join(self.model.dropout)) for _ in range(count)]
        if self.without == "feed-forward":  # which is the last, and goes with its norm
            made[-1] = kind(nn.Identity(), parts.Dropout(0.0))
        return made
