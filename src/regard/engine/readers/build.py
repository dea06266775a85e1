"""From the section and weights of a model of texts without a second side to its engine: the encoder, and a head."""

from __future__ import annotations

from dataclasses import dataclass, field

from regard.config import BertSection, RnnEncoderSection
from regard.engine.build import GATES, StackParts, Take, norm
from regard.engine.layers import NormFirst
from regard.engine.parts import Floats, Linear
from regard.engine.readers.cells import CELLS
from regard.engine.readers.heads import TagHead, TextHead, WordHead
from regard.engine.readers.pooling import POOLS, Attention, Pool
from regard.engine.readers.reader import Encoder, FastReader
from regard.engine.readers.recurrent import Layer, RecurrentEncoder
from regard.engine.readers.tags import TagDecoder
from regard.engine.stack import Stack
from regard.kernels.packing import FP32, Packer
from regard.text.tags import ForbiddenTransitions


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


def bert(section: BertSection, pieces: int, shape: HeadShape, take: Take, pack: Packer = FP32) -> FastReader:
    """The engine of an encoder-only model; all but its head is in the precision, of a model of words that too."""
    table, size = take("encoder.input.tokens.weight", pieces, section.d_model), section.d_model
    stack = StackParts(section, take, "encoder", two_way=True, pack=pack)
    layers = stack.encoder_layers(section.layers)
    if section.embedding_norm:
        layers = NormFirst(norm(section, "encoder.input.norm", take), layers)
    segments = take("encoder.input.segments.weight", section.segments, size) if section.segments else None
    features = take("encoder.input.words.weight", section.word_features, size) if section.word_features else None
    encoder = Encoder(Stack(table, 1.0, stack.positions, layers), segments, features)
    words = shape.writes == "words"
    return FastReader(encoder, (_word_head(section, table, take, pack) if words else _head(section, shape, take)))


def _word_head(section: BertSection, table_VD: Floats, take: Take, pack: Packer) -> WordHead:
    activation = GATES.get(section.activation, section.activation)
    dense = _linear("head.dense", section.d_model, section.d_model, take, activation=activation)
    pieces = Linear([table_VD], [take("head.bias", len(table_VD))], pack=pack)
    return WordHead(dense, norm(section, "head.norm", take), pieces)


def _head(section: BertSection | RnnEncoderSection, shape: HeadShape, take: Take) -> TextHead | TagHead:
    size, labels = section.d_model, shape.labels
    pool = _attention(size, take) if section.pool == "attention" else POOLS[section.pool]
    classes = _linear("head.classes", labels, size, take) if shape.writes != "nothing" else None
    if shape.writes == "tags":
        assert classes is not None
        return TagHead(classes, pool, tag_decoder(shape, take))
    return TextHead(pool, _linear("head.dense", size, size, take) if section.pooler else None, classes)


def _attention(size: int, take: Take) -> Pool:
    direction, query = take("head.pool.score.direction", size), take("head.pool.query", size)
    key = Linear([take("head.pool.score.memory.weight", size, size)], [query])
    return Attention(key, Linear([direction[None]], [None]))


def rnn_encoder(
    section: RnnEncoderSection, pieces: int, shape: HeadShape, take: Take, pack: Packer = FP32
) -> FastReader:
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


def tag_decoder(shape: HeadShape, take: Take) -> TagDecoder:
    """What chooses the tags of a sentence."""
    shapes = {"transition_CC": (shape.labels,) * 2, "start_C": (shape.labels,), "end_C": (shape.labels,)}
    scores = tuple(take(f"head.chain.field.{name}", *sizes) for name, sizes in shapes.items()) if shape.crf else None
    return TagDecoder.of(scores, shape.labels, shape.forbidden)


def _linear(name: str, size: int, inner: int, take: Take, pack: Packer = FP32, activation: str = "none") -> Linear:
    """A linear layer with a bias."""
    return Linear([take(f"{name}.weight", size, inner)], [take(f"{name}.bias", size)], activation, pack)
