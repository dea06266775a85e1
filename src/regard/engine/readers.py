"""Models of texts without a second side: the Transformer's encoder, or another, and one head [Devlin19].

First what they are, then how they are made of a section and weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from regard.config import BertSection, RnnEncoderSection
from regard.engine.build import GATES, StackParts, Take, norm
from regard.engine.heads import POOLER_ACTIVATIONS, POOLS, Attention, Pool, TagDecoder, TagHead, TextHead, WordHead
from regard.engine.layers import Floats, Ids, Linear
from regard.engine.recurrent import CELLS, Layer, RecurrentEncoder
from regard.engine.stack import Stack, Texts, word_vectors
from regard.system.kernels.packing import FP32, Packer
from regard.text.tags import ForbiddenTransitions


@dataclass(frozen=True)
class Encoder:
    """The Transformer's encoder, with what is added to a token's embedding beside its position.

    Args:
        stack: the layers.
        segments_XD: a vector for each kind of segment, if there are several.
        features_XD: a vector for each feature of words, if the model reads them.
    """

    stack: Stack
    segments_XD: Floats | None
    features_XD: Floats | None

    def __call__(self, texts: Texts) -> Floats:
        """``hidden_TD``."""
        added_TD = None if self.features_XD is None else word_vectors(self.features_XD, texts)
        if self.segments_XD is not None:
            segments_T = np.zeros_like(texts.ids_T) if texts.segments_T is None else texts.segments_T
            of_segments_TD = self.segments_XD[segments_T]
            added_TD = of_segments_TD if added_TD is None else added_TD + of_segments_TD
        return self.stack.read(texts, added_TD=added_TD)


class FastReader:
    """A model of texts without a second side: it labels them, tags their words, fills gaps, or gives vectors."""

    def __init__(self, encoder: Callable[[Texts], Floats], head: TextHead | TagHead | WordHead) -> None:
        self.read = encoder
        self.head = head
        self.chain = head.chain if isinstance(head, TagHead) else None
        """What chooses tags."""

    def __call__(self, texts: Texts) -> Floats:
        """What the head gives: ``score_BC`` or ``vector_BD`` of texts, a row for each token of the other heads."""
        return self.head(self.read(texts), texts)

    def words(self, texts: Texts, starts_R: Ids, lengths_R: Ids) -> Floats:
        """``score_RC``: scores of tags for words, whose pieces lie there."""
        assert isinstance(self.head, TagHead)
        return self.head.words(self.read(texts), starts_R, lengths_R)

    def pieces(self, texts: Texts, places_N: Ids) -> Floats:
        """``score_NV`` of every piece at some tokens."""
        assert isinstance(self.head, WordHead)
        return self.head(np.ascontiguousarray(self.read(texts)[places_N]), texts)


@dataclass(frozen=True)
class HeadShape:
    """What an encoder's head gives.

    Args:
        writes: classes, tags, words or nothing, as the task does.
        labels: classes or tags.
        crf: tags are chosen together.
        forbidden: transitions of tags.
    """

    writes: str
    labels: int = 0
    crf: bool = False
    forbidden: ForbiddenTransitions = field(default_factory=ForbiddenTransitions)


def bert(section: BertSection, pieces: int, shape: HeadShape, take: Take, pack: Packer) -> FastReader:
    """The engine of an encoder-only model; all but its head is in the precision, of a model of words that too."""
    table, size = take("encoder.input.tokens.weight", pieces, section.d_model), section.d_model
    stack = StackParts(section, take, "encoder", two_way=True, pack=pack)
    layers = stack.encoder_layers(section.layers)
    segments = take("encoder.input.segments.weight", section.segments, size) if section.segments else None
    features = take("encoder.input.words.weight", section.word_features, size) if section.word_features else None
    encoder = Encoder(Stack(table, 1.0, stack.positions, layers), segments, features)
    if shape.writes != "words":
        return FastReader(encoder, _head(section, shape, take))
    dense = _linear("head.dense", size, size, take, GATES.get(section.activation, section.activation))
    output = Linear([table], [take("head.bias", pieces)], pack=pack)
    return FastReader(encoder, WordHead(dense, norm(section, "head.norm", take), output))


def _head(section: BertSection | RnnEncoderSection, shape: HeadShape, take: Take) -> TextHead | TagHead:
    size, labels = section.d_model, shape.labels
    if section.pool == "attention":
        direction, query = take("head.pool.score.direction", size), take("head.pool.query", size)
        key = Linear([take("head.pool.score.memory.weight", size, size)], [query])
        pool: Pool = Attention(key, Linear([direction[None]], [None]))
    else:
        pool = POOLS[section.pool]
    if shape.writes == "tags":
        shapes = {"transition_CC": (labels, labels), "start_C": (labels,), "end_C": (labels,)}
        field = [take(f"head.chain.field.{name}", *sizes) for name, sizes in shapes.items()] if shape.crf else None
        chain = TagDecoder(field, labels, shape.forbidden)
        return TagHead(_linear("head.classes", labels, size, take), pool, chain)
    dense = _linear("head.dense", size, size, take) if section.pooler else None
    classes = None if shape.writes == "nothing" else _linear("head.classes", labels, size, take)
    return TextHead(pool, dense, classes, POOLER_ACTIVATIONS[getattr(section, "pooler_activation", "tanh")])


def rnn_encoder(section: RnnEncoderSection, pieces: int, shape: HeadShape, take: Take, pack: Packer) -> FastReader:
    """The engine of a recurrent reader.

    Products with what enters are in the precision. Those of what is carried stay fp32: each step adds to their error.
    """
    size = section.d_embedding or section.d_model
    table = take("encoder.input.tokens.weight", pieces, size)
    features = take("encoder.input.words.weight", section.word_features, size) if section.word_features else None
    ends = ("", "_reverse") if section.two_way else ("",)
    cell = CELLS[section.cell](section.d_model // len(ends))

    def product(layer: int, kind: str, inner: int, ends: tuple[str, ...], pack: Packer = FP32) -> Linear:
        kernel, columns = f"encoder.stack.layers.{layer}.kernel", cell.gates * cell.size
        weights = [take(f"{kernel}.weight_{kind}_l0{end}", columns, inner) for end in ends]
        biases = [take(f"{kernel}.bias_{kind}_l0{end}", columns) for end in ends]
        return Linear(weights, biases, pack=pack)

    layers = [
        Layer(
            cell,
            product(n, "ih", section.d_model if n else size, ends, pack),
            [product(n, "hh", cell.size, (end,)) for end in ends],
        )
        for n in range(section.layers)
    ]
    return FastReader(RecurrentEncoder(table, features, layers, section.units == "words"), _head(section, shape, take))


def _linear(name: str, size: int, inner: int, take: Take, activation: str = "none") -> Linear:
    """A linear layer with a bias."""
    return Linear([take(f"{name}.weight", size, inner)], [take(f"{name}.bias", size)], activation)
