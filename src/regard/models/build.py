"""Builds models and their parts from a recipe section: the only module that maps recipe words to model classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import nn

from regard.config import (
    Attentive,
    BertSection,
    GptSection,
    Model,
    RnnEncoderSection,
    RnnSection,
    TransformerSection,
    VitSection,
)
from regard.models.bert import Bert, Head, ReadingHead, TagHead, TextHead, VectorHead, WordHead
from regard.models.gpt import Gpt
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
from regard.models.transformer import Decoder, Encoder, Transformer
from regard.models.vit import Vit
from regard.nn import heads
from regard.nn.alignment import Additive, Alignment, Cosine, Dot, General, NoAlignment, ScaledDot
from regard.nn.attention.multi_head import MultiHeadAttention, Scoring
from regard.nn.dropout import Dropout
from regard.nn.embeddings import InputEmbedding, PatchEmbedding, Segments, TokenEmbedding, WordEmbedding
from regard.nn.heads import CRFTags, IndependentTags
from regard.nn.hooks import name_parts
from regard.nn.init import initialise, undrawn
from regard.nn.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    GatedFeedForward,
    PlainFeedForward,
    PostNorm,
    PreNorm,
    Residual,
)
from regard.nn.normalization import BatchNorm, GroupNorm, LayerNorm, RMSNorm, Scaled, count_real_tokens
from regard.nn.ops import Linear
from regard.nn.positions import Grid, Learned, LinearBias, NoPositions, Positions, Relative, Rotary, Sinusoidal
from regard.nn.recurrent import Bridge, Elman, Gru, Lstm, Recurrent, Stack
from regard.text.word_features import FEATURES

Built = TypeVar("Built", bound=nn.Module)

NORMS: dict[str, Callable[[Attentive], nn.Module]] = {
    "layer": lambda model: LayerNorm(model.d_model, model.norm_epsilon),
    "rms": lambda model: RMSNorm(model.d_model, model.norm_epsilon),
    "batch": lambda model: BatchNorm(model.d_model, model.norm_epsilon),
    "group": lambda model: GroupNorm(model.d_model, model.norm_groups, model.norm_epsilon),
}
FEEDFORWARDS: dict[str, tuple[type[FeedForward], Callable[[], nn.Module]]] = {
    "relu": (PlainFeedForward, nn.ReLU),
    "gelu": (PlainFeedForward, nn.GELU),
    "gelu_tanh": (PlainFeedForward, lambda: nn.GELU("tanh")),
    "swish": (PlainFeedForward, nn.SiLU),
    "gated_gelu": (GatedFeedForward, lambda: nn.GELU("tanh")),
    "gated_swish": (GatedFeedForward, nn.SiLU),
}
RESIDUALS: dict[str, Callable[[nn.Module, Dropout], Residual]] = {"post": PostNorm, "pre": PreNorm}
POSITIONS: dict[str, Callable[[Attentive, bool], Positions]] = {
    "sinusoidal": lambda model, two_way: Sinusoidal(model.d_model),
    "learned": lambda model, two_way: Learned(model.d_model, model.max_positions),
    "relative": lambda model, two_way: Relative(model.heads, model.relative_buckets, model.relative_distance, two_way),
    "alibi": lambda model, two_way: LinearBias(model.heads),
    "rotary": lambda model, two_way: Rotary(model.key_size, model.rotary_base, model.rotary_scaling),
    "none": lambda model, two_way: NoPositions(),
}
PLACES: dict[str, Callable[[VitSection], Positions]] = {
    "learned": lambda model: Learned(model.d_model, 1 + model.patches),
    "grid": lambda model: Grid(model.d_model, model.height // model.patch, model.width // model.patch),
    "none": lambda model: NoPositions(),
}
"""Positions of an image's patches."""
POOLS: dict[str, Callable[[int], heads.Pool]] = {
    "first": lambda d_model: heads.first,
    "mean": lambda d_model: heads.mean,
    "max": lambda d_model: heads.largest,
    "attention": heads.Attention,
}
"""Pooling of a text."""
CHAINS: dict[str, type[IndependentTags] | type[CRFTags]] = {"alone": IndependentTags, "crf": CRFTags}
"""How the tags of a sentence are learned and chosen."""
CELLS: dict[str, type[Recurrent]] = {"elman": Elman, "gru": Gru, "lstm": Lstm}
UNITS: dict[str, Callable[[InputEmbedding, Stack, float], TextEncoder]] = {
    "pieces": lambda input, stack, dropout: TextEncoder(input, stack),
    "words": WordEncoder,
}
"""What a recurrence steps over."""
SCORES: dict[str, Callable[[int], Alignment | NoAlignment]] = {
    "none": lambda d_model: NoAlignment(),
    "dot": lambda d_model: Alignment(Dot(), d_model),
    "scaled": lambda d_model: Alignment(ScaledDot(d_model), d_model),
    "general": lambda d_model: Alignment(General(d_model), d_model),
    "additive": lambda d_model: Alignment(Additive(d_model), d_model),
    "cosine": lambda d_model: Alignment(Cosine(d_model), d_model),
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
    final = writing.final()
    return _ready(
        Transformer(
            Encoder(reading.input(source, scale), reading.encoder_layers(model.encoder_layers), reading.final()),
            Decoder(
                writing.input(target, scale),
                writing.decoder_layers(model.decoder_layers),
                Scaled(final, model.d_model**-0.5) if model.scale_output else final,
            ),
            output,
        ),
        key,
    )


@undrawn()
def bert(model: BertSection, pieces: int, head: Head, key: int = 0) -> Bert:
    """The encoder a section describes, with a head: :func:`words`, :func:`classes`, :func:`tags`, :func:`vectors`."""
    table = TokenEmbedding(pieces, model.d_model, start=0)
    stack = _Stack.of(model, two_way=True)
    segments = Segments(model.segments, model.d_model) if model.segments else None
    norm = NORMS[model.norm](model) if model.embedding_norm else None
    input = InputEmbedding(table, stack.positions, model.dropout, 1.0, segments, norm, _words(model, model.d_model))
    return _ready(Bert(Encoder(input, stack.encoder_layers(model.layers), stack.final()), head(table)), key)


def words(model: BertSection) -> Head:
    """The head that guesses masked words."""
    _, activation = FEEDFORWARDS[model.activation]
    return lambda table: WordHead(table, activation(), NORMS[model.norm](model))


def classes(model: BertSection | RnnEncoderSection, count: int) -> ReadingHead:
    """The head that scores ``count`` classes of a text."""
    return lambda table: TextHead(_pool(model), _pooler(model), Linear(model.d_model, count), model.dropout)


def tags(model: BertSection | RnnEncoderSection, count: int, chain: str = "alone") -> ReadingHead:
    """The head that scores ``count`` tags of each word; ``chain``: alone, or as whole sequences by a ``crf``."""
    return lambda table: TagHead(Linear(model.d_model, count), model.dropout, _pool(model), CHAINS[chain](count))


def vectors(model: BertSection | RnnEncoderSection) -> ReadingHead:
    """The head that makes a vector of a text; its only parameters are the pooling's and BERT's dense layer."""
    return lambda table: VectorHead(_pool(model), _pooler(model))


def _pool(model: BertSection | RnnEncoderSection | VitSection) -> heads.Pool:
    return POOLS[model.pool](model.d_model)


def _pooler(model: BertSection | RnnEncoderSection) -> Linear | None:
    return Linear(model.d_model, model.d_model) if model.pooler else None


@undrawn()
def gpt(model: GptSection, pieces: int, key: int = 0) -> Gpt:
    """The decoder-only model a section describes; its table is its output too [Radford19]."""
    table = TokenEmbedding(pieces, model.d_model, start=0)
    stack = _Stack.of(model, two_way=False)
    return _ready(Gpt(Encoder(stack.input(table, 1.0), stack.encoder_layers(model.layers), stack.final()), table), key)


@undrawn()
def vit(model: VitSection, count: int, key: int = 0) -> Vit:
    """The encoder of images a section describes, with ``count`` classes [Dosovitskiy21]."""
    pixels = model.patch * model.patch * model.channels
    stack = _Stack(model, NoPositions())
    input = PatchEmbedding(Linear(pixels, model.d_model), PLACES[model.positions](model), model.dropout)
    head = TextHead(_pool(model), None, Linear(model.d_model, count), 0.0)
    return _ready(Vit(Encoder(input, stack.encoder_layers(model.layers), stack.final()), head), key)


@undrawn()
def rnn(model: RnnSection, source_pieces: int, target_pieces: int, key: int = 0) -> Rnn:
    """The recurrent encoder-decoder a section describes, its weights drawn from ``key`` [Bahdanau15, Luong15].

    Raises:
        ValueError: three-way tying of vocabularies of different sizes.
    """
    source, target, output = tables(model.tie, model.d_model, source_pieces, target_pieces)
    directions = 2 if model.two_way else 1
    reading = _recurrent(model, model.encoder_layers, model.d_model, directions)
    writing = _recurrent(model, model.decoder_layers, model.d_model * (2 if model.input_feeding else 1), 1)
    decoder = FeedingDecoder if model.input_feeding else PlainDecoder
    return _ready(
        Rnn(
            RnnEncoder(InputEmbedding(source, NoPositions(), model.dropout), reading),
            decoder(
                InputEmbedding(target, NoPositions(), model.dropout),
                Bridge(reading.state_size, model.decoder_layers),
                writing,
                SCORES[model.score](model.d_model),
                model.dropout,
            ),
            output,
        ),
        key,
    )


@undrawn()
def rnn_encoder(model: RnnEncoderSection, pieces: int, head: ReadingHead, key: int = 0) -> RecurrentEncoder:
    """The recurrent reader a section describes, with a head: :func:`classes`, :func:`tags`, :func:`vectors`."""
    entering = model.d_embedding or model.d_model
    table = TokenEmbedding(pieces, entering, start=0)
    stack = _recurrent(model, model.layers, entering, 2 if model.two_way else 1)
    units = model.units or "pieces"
    dropout = model.dropout if units == "pieces" else 0.0
    input = InputEmbedding(table, NoPositions(), dropout, words=_words(model, entering))
    return _ready(RecurrentEncoder(UNITS[units](input, stack, model.dropout), head(table)), key)


def _words(model: BertSection | RnnEncoderSection, size: int) -> WordEmbedding | None:
    return WordEmbedding(model.word_features, size, FEATURES) if model.word_features else None


def reader(model: Model, pieces: int, head: ReadingHead, key: int = 0) -> Reader:
    """The model of texts without a second side a section describes, of whichever family."""
    built: Reader = BUILDERS[model.family](model, pieces, head, key)
    return built


def _recurrent(model: RnnSection | RnnEncoderSection, layers: int, size_in: int, directions: int) -> Stack:
    """Recurrent layers, of which the first reads vectors of ``size_in``."""
    cell, size = CELLS[model.cell], model.d_model // directions
    sizes = [size_in] + [model.d_model] * (layers - 1)
    return Stack([cell(entering, size, directions) for entering in sizes], model.dropout)


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


def outline(model: Model, pieces: int, labels: int, writes: str) -> nn.Module:
    """The model of a section, of whichever family, whose sides share one vocabulary.

    Args:
        model: the section.
        pieces: of the vocabulary; ``labels``: of a model that has them.
        writes: what an encoder's head gives, a key of :data:`HEADS`.
    """
    if model.info.encoder_decoder:
        return encoder_decoder(model, pieces, pieces)
    size = pieces if model.info.reads_pieces else labels
    head = () if model.info.causal or not model.info.reads_pieces else (HEADS[writes](model, labels),)
    built: nn.Module = BUILDERS[model.family](model, size, *head)
    return built


def _ready(built: Built, key: int) -> Built:
    """Set every module's path and draw weights from the key, unless it is on the meta device."""
    name_parts(built)
    for part in built.modules():
        if isinstance(part, Encoder | Decoder) and any(isinstance(norm, BatchNorm) for norm in part.modules()):
            count_real_tokens(part)
    if not any(parameter.is_meta for parameter in built.parameters()):
        initialise(built, key)
    return built


def tables(tie: str, d_model: int, source_pieces: int, target_pieces: int) -> tuple[TokenEmbedding, ...]:
    """Source embedding, target embedding and pre-softmax projection; tied ones are the same part.

    Raises:
        ValueError: three-way tying of vocabularies of different sizes.
    """
    target = TokenEmbedding(target_pieces, d_model)
    if tie == "three":
        if source_pieces != target_pieces:
            raise ValueError(f"three-way tying of {source_pieces} source pieces with {target_pieces} target pieces")
        return target, target, target
    source = TokenEmbedding(source_pieces, d_model)
    return source, target, target if tie == "two" else TokenEmbedding(target_pieces, d_model)


@dataclass(frozen=True)
class _Stack:
    """The parts of one stack of layers; its kind of positions is one part, shared by all that ask it."""

    model: Attentive
    positions: Positions

    @classmethod
    def of(cls, model: Attentive, *, two_way: bool) -> _Stack:
        """``two_way``: tokens also see what comes after them."""
        return cls(model, POSITIONS[model.positions](model, two_way))

    def input(self, table: TokenEmbedding, scale: float | None) -> InputEmbedding:
        return InputEmbedding(table, self.positions, self.model.dropout, scale)

    def encoder_layers(self, count: int) -> list[EncoderLayer]:
        return [EncoderLayer(self._attention(), self._feedforward(), self._residuals(2)) for _ in range(count)]

    def decoder_layers(self, count: int) -> list[DecoderLayer]:
        return [
            DecoderLayer(self._attention(), self._attention(cross=True), self._feedforward(), self._residuals(3))
            for _ in range(count)
        ]

    def final(self) -> nn.Module:
        """The norm that ends a pre-norm stack."""
        return NORMS[self.model.norm](self.model) if self.model.norm_place == "pre" else nn.Identity()

    def _attention(self, cross: bool = False) -> MultiHeadAttention:
        model = self.model
        acts = self.positions.turns or self.positions.bias() is not None
        shared = self.positions if acts and not cross else None
        scoring = Scoring(model.scale_scores, model.biases, shared)
        sizes = model.d_model, model.heads, model.key_size, model.value_size
        return MultiHeadAttention(*sizes, model.attention_dropout, scoring)

    def _feedforward(self) -> FeedForward:
        model = self.model
        kind, activation = FEEDFORWARDS[model.activation]
        return kind(model.d_model, model.d_ff, activation(), model.feedforward_dropout, model.biases)

    def _residuals(self, count: int) -> list[Residual]:
        kind, norm = RESIDUALS[self.model.norm_place], NORMS[self.model.norm]
        return [kind(norm(self.model), Dropout(self.model.dropout)) for _ in range(count)]
