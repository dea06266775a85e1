"""The section ``model``: one class per model family, discriminated by ``family``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic.config import JsonDict

from regard.config.sections import Section, Uses, only_if_set

_ENCODER, _DECODER = "encoder.{}.attention.weight", "decoder.{}.attention.weight"
_PAIR = {"source": "encoder", "target": "decoder"}
Tie = Annotated[
    Literal["none", "two", "three"],
    Field(description="two: target embedding = output; three: source embedding too (needs a joint vocabulary)"),
]
Cell = Annotated[Literal["elman", "gru", "lstm"], Field(description="what is repeated: elman: tanh; gru, lstm: gated")]


@dataclass(frozen=True)
class FamilyInfo:
    """What differs by family, beside the fields of its section.

    Args:
        noun: the architecture.
        stacks: which stack reads the source, and which the target where there is one.
        points: the hook point of the weights of each use of attention; ``{}`` stands for the layer.
        reads_pieces: the model reads pieces of texts, not patches.
    """

    noun: str
    stacks: Mapping[str, str]
    points: Mapping[str, str]
    reads_pieces: bool = True

    @property
    def encoder_decoder(self) -> bool:
        """Whether a target is read beside the source: an encoder-decoder."""
        return "target" in self.stacks

    @property
    def causal(self) -> bool:
        """Whether the source itself is read by a decoder."""
        return self.stacks["source"] == "decoder"


class ModelSection(Section):
    """The section ``model`` of any family."""

    info: ClassVar[FamilyInfo]

    @property
    def divisor(self) -> float:
        """Divisor of the attention scores; 1 where they are not divided."""
        return 1.0

    def divisor_of(self, kind: str) -> float:
        """Divisor of the scores of one use of attention."""
        return self.divisor

    @property
    def divides(self) -> bool:
        """Whether any scores are divided."""
        return any(self.divisor_of(kind) != 1.0 for kind in self.info.points)


class Recurrent(ModelSection):
    """What the recurrent families share."""

    known_positions: ClassVar[float] = float("inf")
    """A recurrence counts without end."""
    if TYPE_CHECKING:
        d_model: int
        two_way: bool

    @model_validator(mode="after")
    def _halves(self) -> Recurrent:
        if self.two_way and self.d_model % 2:
            raise ValueError(f"d_model {self.d_model} cannot be halved between two directions; choose an even one")
        return self


class RnnSection(Recurrent):
    """Recurrent encoder-decoder, without or with attention [Bahdanau15, Luong15]."""

    info: ClassVar[FamilyInfo] = FamilyInfo("recurrent encoder-decoder", _PAIR, {"cross": "decoder.cross.weight"})
    family: Literal["rnn"] = Field("rnn", description="the architecture")
    cell: Cell = "gru"
    encoder_layers: int = Field(1, ge=1, le=64, description="layers that read")
    decoder_layers: int = Field(1, ge=1, le=64, description="layers that write")
    d_model: int = Field(256, ge=2, le=65536, description="size of embeddings and of every state")
    two_way: bool = Field(True, description="the encoder reads from both ends, each with half of the state")
    score: Literal["none", "dot", "scaled", "general", "additive", "cosine"] = Field(
        "additive", description="how the decoder's state is compared with the encoder's; none: no attention at all"
    )
    input_feeding: bool = Field(False, description="what was attended to also enters the next step [Luong15 §3.3]")
    tie: Tie = "three"
    dropout: float = Field(0.2, ge=0.0, lt=1.0, description="on embeddings, between layers and before the output")

    @model_validator(mode="after")
    def _something_is_fed(self) -> RnnSection:
        if self.input_feeding and self.score == "none":
            raise ValueError('input_feeding feeds what was attended to; with score = "none" there is nothing')
        return self

    @property
    def attention(self) -> Uses:
        """Layers and heads of each use of attention."""
        return {} if self.score == "none" else {"cross": (1, 1)}

    @property
    def divisor(self) -> float:
        """Divisor of the attention scores."""
        return float(self.d_model**0.5) if self.score == "scaled" else 1.0


_WORD_FEATURES = "different features of whole words (the word, its beginning, end and shape), hashed; 0: none"


class RnnEncoderSection(Recurrent):
    """A recurrence that reads texts, to label them or their words [Yang16, Lample16]."""

    info: ClassVar[FamilyInfo] = FamilyInfo("recurrent encoder", {"source": "encoder"}, {"pool": "head.pool.weight"})
    family: Literal["rnn-encoder"] = Field("rnn-encoder", description="the architecture")
    cell: Cell = "gru"
    layers: int = Field(1, ge=1, le=64, description="layers that read")
    d_model: int = Field(256, ge=2, le=65536, description="size of embeddings and of every state")
    d_embedding: int | None = only_if_set(
        "size of embeddings, smaller than the states where texts are few; default: d_model", ge=1, le=65536
    )
    two_way: bool = Field(True, description="texts are read from both ends, each with half of the state")
    pool: Literal["mean", "max", "attention"] = Field(
        "mean",
        description="what stands for a text, or a tagged word: the mean or largest of its tokens; attention: their "
        "mean, weighed by how each answers a learned query (texts only)",
    )
    pooler: bool = Field(False, description="a dense layer with tanh between that and the classes")
    word_features: int | None = only_if_set(_WORD_FEATURES, ge=0, le=1 << 24)
    units: Literal["pieces", "words"] | None = only_if_set(
        "what the recurrence steps over; words: each the mean of its pieces; default: pieces"
    )
    dropout: float = Field(0.4, ge=0.0, lt=1.0, description="on embeddings, between layers and before the classes")

    @property
    def attention(self) -> Uses:
        """Layers and heads of each use of attention."""
        return {"pool": (1, 1)} if self.pool == "attention" else {}


Positions = Literal["sinusoidal", "timing_signal", "learned", "relative", "alibi", "rotary", "none"]
Activation = Literal["relu", "gelu", "gelu_tanh", "swish", "gated_gelu", "gated_swish"]
Norm = Literal["layer", "rms", "batch", "group"]
NormPlace = Annotated[Literal["post", "pre"], Field(description="post: the paper; pre: trains without long warm-up")]
_ACTIVATION = Field(description="inside the feed-forward; gated: times a second projection")
_POSITIONS = Field(
    description="positional encoding; timing_signal: sinusoids as in M2M-100; relative: a learned bias by distance in "
    "attention; alibi: a linear one; rotary: queries and keys turned; none"
)
_ROTARY: JsonDict = {"only": {"positions": "rotary"}}


class Attentive(ModelSection):
    """Fields common to all attention families; the defaults are the paper's base model."""

    directions: ClassVar[tuple[int, ...]] = (2,)
    """Of each stack: 2 where tokens also see what comes after them, else 1."""

    d_model: int = Field(512, ge=1, le=65536, description="size of every hidden vector")
    d_ff: int = Field(2048, ge=1, le=262144, description="inner size of the feed-forward")
    heads: int = Field(8, ge=1, le=1024, description="attention heads of a layer")
    d_k: int | None = Field(None, ge=1, le=65536, description="query and key size per head; default d_model / heads")
    d_v: int | None = Field(None, ge=1, le=65536, description="value size per head; default d_model / heads")
    norm: Norm = Field(
        "layer",
        description="layer: the paper's; rms: without mean and bias; batch: over the batch's tokens; group: over a "
        "part of a token's entries",
    )
    norm_place: NormPlace = "post"
    norm_epsilon: float = Field(1e-5, gt=0.0, le=0.1, description="added to the variance before its root")
    norm_groups: int = Field(8, ge=1, le=4096, description="parts of a token's vector that group norm looks at")
    activation: Annotated[Activation, _ACTIVATION] = "relu"
    positions: Annotated[Positions | Literal["grid"], _POSITIONS] = "sinusoidal"
    first_position: int = only_if_set(
        "timing_signal and learned: the position of the first token; 2 in M2M-100 and mBART", 0, ge=0, le=1024
    )
    max_positions: int = Field(512, ge=1, le=10_000_000, description="learned positions: the longest sequence")
    relative_buckets: int = Field(32, ge=2, le=65536, description="relative positions: number of distance buckets")
    relative_distance: int = Field(128, ge=2, le=10_000_000, description="relative positions: from here on all one")
    rotary_base: float = Field(
        1e4, gt=1.0, le=1e12, description="rotary positions: the larger, the slower", json_schema_extra=_ROTARY
    )
    rotary_scaling: float = Field(
        1.0, ge=1.0, le=1e6, description="rotary positions: divided by it, for longer texts", json_schema_extra=_ROTARY
    )
    biases: bool = Field(True, description="biases in projections and feed-forward")
    scale_scores: bool = Field(True, description="scores are divided by the root of d_k, as in the paper")
    dropout: float = Field(0.1, ge=0.0, lt=1.0, description="on sub-layer outputs and embeddings")
    attention_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="on attention weights; the paper has none")
    feedforward_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="inside the feed-forward; the paper has none")

    @model_validator(mode="after")
    def _sizes_fit(self) -> Attentive:
        _refuse_odd_heads(self, self.heads, "heads")
        if self.norm == "group" and self.d_model % self.norm_groups:
            raise ValueError(f"d_model {self.d_model} is not divisible by norm_groups {self.norm_groups}")
        if self.positions == "relative":
            # half of a direction's buckets are exact, one at least, and a distance beyond these exists [Raffel20 §2.1]
            buckets, distance = self.relative_buckets, self.relative_distance
            least, exact = 2 * max(self.directions), buckets // (2 * min(self.directions))
            if buckets < least:
                raise ValueError(f"relative_buckets {buckets} are too few for this family; at least {least}")
            if distance <= exact:
                raise ValueError(
                    f"relative_distance {distance} must be above {exact}: {buckets} relative_buckets tell all "
                    f"distances below {exact} apart; choose a larger distance or fewer buckets"
                )
        if self.positions == "rotary" and self.key_size % 2:
            raise ValueError(f"rotary positions need an even d_k, not {self.key_size}")
        return self

    @property
    def key_size(self) -> int:
        """d_k: query and key size per head."""
        return self.d_k or self.d_model // self.heads

    @property
    def value_size(self) -> int:
        """d_v: value size per head."""
        return self.d_v or self.d_model // self.heads

    @property
    def divisor(self) -> float:
        """Divisor of the attention scores."""
        return float(self.key_size**0.5) if self.scale_scores else 1.0

    @property
    def known_positions(self) -> float:
        """The longest sequence with known positions."""
        return self.max_positions if self.positions == "learned" else float("inf")


def _refuse_odd_heads(model: Attentive, heads: int, name: str) -> None:
    if (model.d_k is None or model.d_v is None) and model.d_model % heads:
        raise ValueError(f"d_model {model.d_model} is not divisible by {name} {heads}; set d_k and d_v")


class TransformerSection(Attentive):
    """The Transformer [Vaswani17 §3]; the defaults are the paper's base model."""

    info: ClassVar[FamilyInfo] = FamilyInfo(
        "Transformer", _PAIR, {"encoder": _ENCODER, "decoder": _DECODER, "cross": "decoder.{}.cross.weight"}
    )
    directions: ClassVar[tuple[int, ...]] = (2, 1)
    family: Literal["transformer"] = Field("transformer", description="the architecture")
    encoder_layers: int = Field(6, ge=1, le=256, description="layers that read")
    decoder_layers: int = Field(6, ge=1, le=256, description="layers that write")
    positions: Annotated[Positions, _POSITIONS] = "sinusoidal"
    tie: Tie = "three"
    scale_embedding: bool = Field(True, description="embeddings are multiplied by the root of d_model, as in the paper")
    scale_output: bool = Field(False, description="hidden vectors are divided by it before the output, as in T5")
    output_bias: bool = only_if_set("a learned number for each target piece is added to its score, as in Marian", False)
    embedding_norm: bool = only_if_set("the sum of the embeddings is normalised, as in mBART", False)
    decoder_heads: int | None = only_if_set("attention heads of a decoder layer; default: heads", ge=1, le=1024)
    decoder_cell: Literal["ssru"] | None = only_if_set(
        "what is repeated in a decoder layer, in place of self-attention; ssru: the gated recurrence of Marian's "
        "students; positions that act in attention are then the encoder's alone; default: self-attention"
    )
    without: Literal["residual", "norm", "scale", "mask", "attention", "feed-forward"] | None = only_if_set(
        "an idea that is taken out, to see what it is for; scale: scores are not divided, and weights begin as they "
        "would; mask: while training the decoder sees what comes later; attention: the plain mean of all that is seen"
    )
    decoder_norm: Norm | None = Field(
        None, description="the decoder's kind of norm; default: the encoder's, but for batch norm, which must be named"
    )

    @model_validator(mode="after")
    def _decoder_fits(self) -> TransformerSection:
        if self.norm == "batch" and self.decoder_norm is None:
            raise ValueError(
                'norm = "batch" needs a decoder_norm: a decoder that writes word by word is safer with "layer"; '
                'name "batch" if you mean it'
            )
        if self.without == "mask" and self.decoder_cell:
            raise ValueError(f"a decoder of {self.decoder_cell} has no mask that it could be without")
        if self.decoder_heads is not None:
            _refuse_odd_heads(self, self.decoder_heads, "decoder_heads")
            if self.positions == "rotary" and self.decoder.key_size % 2:
                raise ValueError(f"rotary positions need an even d_k, not the decoder's {self.decoder.key_size}")
        return self

    @property
    def decoder(self) -> TransformerSection:
        """The section with the decoder's norm, heads and positions in their place, as its layers are built."""
        acts = self.positions in ("relative", "alibi", "rotary")
        own: dict[str, object] = {"positions": "none"} if self.decoder_cell and acts else {}
        own |= {"norm": self.decoder_norm or self.norm, "heads": self.decoder_heads or self.heads}
        return self.model_copy(update=own)

    @property
    def divisor(self) -> float:
        """Divisor of the attention scores."""
        return 1.0 if self.without == "scale" else super().divisor

    def divisor_of(self, kind: str) -> float:
        """Divisor of the scores of one use of attention."""
        return (self if kind == "encoder" else self.decoder).divisor

    @property
    def attention(self) -> Uses:
        """Layers and heads of each use of attention."""
        writes = (self.decoder_layers, self.decoder_heads or self.heads)
        own = {} if self.decoder_cell else {"decoder": writes}
        return {"encoder": (self.encoder_layers, self.heads), **own, "cross": writes}


class StackSection(Attentive):
    """One stack of layers, and its own attention; the sizes of the base models."""

    if TYPE_CHECKING:
        layers: int
    d_model: int = Field(768, ge=1, le=65536, description="size of every hidden vector")
    d_ff: int = Field(3072, ge=1, le=262144, description="inner size of the feed-forward")
    heads: int = Field(12, ge=1, le=1024, description="attention heads of a layer")

    @property
    def attention(self) -> Uses:
        """Layers and heads of each use of attention."""
        return {self.info.stacks["source"]: (self.layers, self.heads)}


class BertSection(StackSection):
    """Encoder only [Devlin19]; the defaults are BERT's base model."""

    info: ClassVar[FamilyInfo] = FamilyInfo("Transformer encoder", {"source": "encoder"}, {"encoder": _ENCODER})
    family: Literal["bert"] = Field("bert", description="the architecture")
    layers: int = Field(12, ge=1, le=256, description="layers that read")
    norm_epsilon: float = Field(1e-12, gt=0.0, le=0.1, description="added to the variance before its root")
    activation: Annotated[Activation, _ACTIVATION] = "gelu"
    positions: Annotated[Positions, _POSITIONS] = "learned"
    segments: int = Field(2, ge=0, le=1024, description="kinds of segments, each with an embedding; 0: no such thing")
    embedding_norm: bool = Field(True, description="the sum of the embeddings is normalised")
    word_features: int | None = only_if_set(_WORD_FEATURES, ge=0, le=1 << 24)
    pool: Literal["first", "mean", "max"] = Field(
        "first", description="pooling of a text, or a tagged word: its first token, the mean or maximum of all"
    )
    pooler: bool = Field(True, description="a dense layer with tanh between that and the classes, as in BERT")
    pooler_activation: Literal["tanh", "relu"] = only_if_set("of that dense layer; relu in DistilBERT", "tanh")


class GptSection(StackSection):
    """Decoder only: the encoder's layer, causal [Radford19]; the defaults are GPT-2's smallest model."""

    info: ClassVar[FamilyInfo] = FamilyInfo("Transformer decoder", {"source": "decoder"}, {"decoder": _DECODER})
    directions: ClassVar[tuple[int, ...]] = (1,)
    family: Literal["gpt"] = Field("gpt", description="the architecture")
    layers: int = Field(12, ge=1, le=256, description="layers")
    norm_place: NormPlace = "pre"
    activation: Annotated[Activation, _ACTIVATION] = "gelu_tanh"
    positions: Annotated[Positions, _POSITIONS] = "learned"
    max_positions: int = Field(1024, ge=1, le=10_000_000, description="learned positions: the longest sequence")

    @model_validator(mode="after")
    def _no_batch_norm(self) -> GptSection:
        if self.norm == "batch":
            raise ValueError('norm = "batch" cannot be: a later token of the batch would change an earlier one')
        return self


class VitSection(StackSection):
    """An encoder of images: patches as tokens [Dosovitskiy21]; the defaults are the base model's."""

    info: ClassVar[FamilyInfo] = FamilyInfo(
        "vision Transformer", {"source": "encoder"}, {"encoder": _ENCODER}, reads_pieces=False
    )
    family: Literal["vit"] = Field("vit", description="the architecture")
    layers: int = Field(12, ge=1, le=256, description="layers that read")
    height: int = Field(224, ge=1, le=65536, description="pixels of an image from top to bottom")
    width: int = Field(224, ge=1, le=65536, description="pixels of an image from left to right")
    channels: int = Field(3, ge=1, le=64, description="values of a pixel: 1 grey, 3 colour")
    patch: int = Field(16, ge=1, le=4096, description="pixels of a patch's side")
    norm_place: NormPlace = "pre"
    norm_epsilon: float = Field(1e-12, gt=0.0, le=0.1, description="added to the variance before its root")
    activation: Annotated[Activation, _ACTIVATION] = "gelu"
    positions: Literal["learned", "grid", "none"] = Field(
        "learned", description="learned: a vector for each patch; grid: one for its row and one for its column"
    )
    pool: Literal["first", "mean", "max"] = Field(
        "first", description="pooling of the image: the class token, or the mean or maximum of all tokens"
    )

    @model_validator(mode="after")
    def _patches_cover(self) -> VitSection:
        if self.height % self.patch or self.width % self.patch:
            raise ValueError(f"patches of {self.patch} do not cover images of {self.height} x {self.width} pixels")
        return self

    @property
    def patches(self) -> int:
        """Patches of an image."""
        return (self.height // self.patch) * (self.width // self.patch)

    @property
    def known_positions(self) -> float:
        """The class token, and the patches of an image."""
        return 1 + self.patches


FAMILIES: dict[str, type[ModelSection]] = {
    "transformer": TransformerSection,
    "bert": BertSection,
    "gpt": GptSection,
    "vit": VitSection,
    "rnn": RnnSection,
    "rnn-encoder": RnnEncoderSection,
}
"""The word ``family`` to its section."""


def _family(values: object) -> str | None:
    if isinstance(values, Mapping):
        try:
            return str(values.get("family", "transformer"))
        except ValueError:  # more digits than Python writes
            return "a number"
    return getattr(values, "family", None)


Model = Annotated[
    Annotated[TransformerSection, Tag("transformer")]
    | Annotated[BertSection, Tag("bert")]
    | Annotated[GptSection, Tag("gpt")]
    | Annotated[VitSection, Tag("vit")]
    | Annotated[RnnSection, Tag("rnn")]
    | Annotated[RnnEncoderSection, Tag("rnn-encoder")],
    Discriminator(_family),
]
"""The section ``model`` of a recipe; without the word ``family`` it is the Transformer."""
