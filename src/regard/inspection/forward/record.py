"""One forward pass: its inputs by task, their tokens as displayed, its attention weights, and measures of these."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regard.decoding.search import search
from regard.system.errors import Option, RegardError, UsageError
from regard.tasks.kinds import answers_text, continues_text, has_one_stack, reads_text, writes_text

if TYPE_CHECKING:
    from torch import Tensor

    from regard.models.inputs import Tokens
    from regard.nn.layout import Sequences
    from regard.tasks.images.classifier import Image, ImageClassification
    from regard.tasks.protocols import SingleTextModel, TargetWriter, Task, TextModel, TextWriter
    from regard.tasks.text.task import Read
    from regard.text.tokenizers.vocabulary import AnyTokenizer

_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
Target = str | Sequence[int] | None
"""The target: a text or piece ids; ``None``: the model's own output."""
BEGINNING = 16
"""Most characters per token; of a longer text only a prefix is checked first."""
CLASS = "class"
"""The token before the patches of an image."""
Kind = Literal["encoder", "decoder", "cross", "pool"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TITLES: dict[Kind, str] = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Encoder-decoder attention",
    "pool": "Attention pooling",
}
NAMES: dict[Kind, str] = {"encoder": "encoder", "decoder": "decoder", "cross": "encoder–decoder", "pool": "pooling"}
"""Short names, in the name of a head."""
WHOLE = "the whole text"
"""The query of attention pooling, where one learned query attends to all tokens of a text."""
Weights = NDArray[np.floating]
Words = list[tuple[str, list[int]]]
"""Words, each with the places of its tokens."""


@dataclass(frozen=True)
class Token:
    """A token's display text, and the characters it covers (none for ``<s>`` and ``</s>``)."""

    text: str
    start: int
    end: int

    @property
    def special(self) -> bool:
        """Whether it covers no characters."""
        return self.start == self.end


def piece(tokenizer: AnyTokenizer, id: int) -> str:
    """The display text of a piece."""
    return visible(tokenizer.piece(id))


def visible(piece: str) -> str:
    """A piece with invisible characters replaced by their code points, e.g. ``<0x0A>``."""
    return piece if piece.isprintable() else "".join(c if c.isprintable() else f"<0x{ord(c):02X}>" for c in piece)


def words(tokens: Sequence[Token], text: str) -> list[tuple[str, list[int]]]:
    """The words of a sentence with the indices of their tokens; ``<s>`` and ``</s>`` are words of their own.

    A token that is only a space belongs to the word after it. Without a text each token is a word.
    """
    spans = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    found: list[tuple[tuple[int, int] | None, str, list[int]]] = []
    for place, token in enumerate(tokens):
        first = next((i for i in range(token.start, len(text)) if not text[i].isspace()), token.start)
        span = next(((a, b) for a, b in spans if a <= first < b), None) if not token.special else None
        if span is not None and found and found[-1][0] == span:
            found[-1][2].append(place)
        else:
            found.append((span, text[slice(*span)] if span else token.text, [place]))
    return [(word, places) for _, word, places in found]


def by_word(weight_QK: Weights, queries: Sequence[list[int]], keys: Sequence[list[int]]) -> Weights:
    """Word-level attention: summed over a key word's tokens, averaged over a query word's, so that rows sum to one."""
    summed = np.stack([weight_QK[:, places].sum(axis=1) for places in keys], axis=1)
    return np.stack([summed[places].mean(axis=0) for places in queries])


@dataclass(frozen=True)
class ModelInputs:
    """The inputs of one pass: a text, a source and target, or an image whose tokens are its patches.

    ``target`` is what the decoder reads: ``<s>``, then the target's tokens. ``written`` is what it predicts at each of
    these places: the target's tokens, then ``</s>``. A single-text model has the same tokens in all three.

    Args:
        task: the model, ready to use.
        source_text, target_text: what the tokens stand for.
        run: one pass over all; ``hidden_TD`` of the stack that is looked at last, without a head.
        read_ids, written_ids: the numbers of the pieces of ``source`` and ``written``; an image has none.
    """

    task: Task
    source_text: str
    target_text: str
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    written: tuple[Token, ...]
    run: Callable[[], Tensor]
    read_ids: tuple[int, ...] = ()
    written_ids: tuple[int, ...] = ()

    def tokens(self, stack: str) -> tuple[Token, ...]:
        """What a stack of layers reads."""
        return self.source if stack == self.task.recipe.model.info.stacks["source"] else self.target


def one_sequence(rows: Tensor) -> Sequences:
    """All rows as one sequence."""
    from regard.nn.layout import Sequences

    return Sequences.end_to_end([len(rows)], rows.device)


def text_inputs(task: Task, source_text: str, target: Target = None) -> ModelInputs:
    """Inputs for a sentence and its translation, or whatever the task reads and writes.

    Args:
        task: a loaded translator, or a text-to-text model; or another model of texts, which has a source alone.
        source_text: one sentence.
        target: its translation, or what is written; the model's own (greedy) one if none is given. Of a language model
            the pieces that it goes on with, if any.

    Raises:
        RegardError: the source is empty or longer than the model's sentences were.
        UsageError: a target for a model that writes none, or pieces that the model never writes.
    """
    if not source_text.strip():
        raise RegardError("there is nothing to look at: the text is empty", "text")
    if not reads_text(task):
        raise UsageError("this model reads images", "text")
    _refuse_endless(task, source_text)
    if writes_text(task):
        return _encoder_decoder_inputs(task, source_text, target)
    assert has_one_stack(task)
    return _single_text_inputs(task, source_text, target)


def image_inputs(task: ImageClassification, image: Image) -> ModelInputs:
    """Inputs for an image: the class token, then its patches, named by row and column from 1,1 on.

    Raises:
        RegardError: the image is not of the size the model reads.
    """
    (batch,) = task.batches(task.images([image]))
    rows, columns = task.cut.shape.height // task.cut.patch, task.cut.shape.width // task.cut.patch
    names = [f"{row},{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]
    patches = (Token(name, place, place + 1) for place, name in enumerate(names))
    tokens = (Token(CLASS, 0, 0), *patches)
    return ModelInputs(task, "", "", tokens, tokens, tokens, lambda: task.model.encoder(batch))


def _single_text_inputs(task: SingleTextModel, text: str, target: Target) -> ModelInputs:
    """Inputs for one text."""
    known, read = task.reads(text)
    if target is not None:
        if isinstance(target, str) or not continues_text(task):
            raise UsageError("this model reads a text and writes none", Option("target"))
        more, said = _decode_target(task, target)
        read = [*read, *((id, start + len(known), end + len(known)) for id, start, end in said)]
        known += more
    _refuse_long(len(read), task.recipe.data.max_tokens, "a part of it")
    ids = tuple(id for id, _, _ in read)
    given = task.pack(ids)
    tokens = _tokens(task.source_tokenizer, read)
    return ModelInputs(task, known, known, tokens, tokens, tokens, lambda: hidden_states(task, given), ids, ids)


def hidden_states(task: SingleTextModel, given: Tokens) -> Tensor:
    """``hidden_TD`` of one text, before a head; where pooling attends, the head runs too, so that this is captured."""
    from regard.models.transformer import Gpt

    hidden_TD: Tensor
    if isinstance(task.model, Gpt):
        hidden_TD = task.model(given)
        return hidden_TD
    hidden_TD = task.model.encoder(given)
    if "pool" in task.recipe.model.attention:
        task.model.head(hidden_TD, given.sequences)
    return hidden_TD


def _encoder_decoder_inputs(task: TargetWriter, text: str, target: Target) -> ModelInputs:
    """Inputs for a text and what is written."""
    from regard.models.captured_attention import pass_over

    into, longest, start = task.target_tokenizer, task.recipe.data.max_tokens, task.symbols.start
    known, read = task.reads(text)
    read_ids = tuple(id for id, _, _ in read)
    _refuse_long(len(read), longest, "a part of it")
    if isinstance(target, str):
        target_text, said = task.reads_target(target)
        _refuse_long(1 + len(said), longest, "a part of it", "target")
    else:
        target_text, said = _decode_target(task, greedy_outputs(task, [read_ids])[0] if target is None else target)
    ids = [id for id, _, _ in said]
    return ModelInputs(
        task,
        known,
        target_text,
        _tokens(task.source_tokenizer, read),
        (Token(piece(into, start), 0, 0), *_tokens(into, said)),
        (*_tokens(into, said), Token(piece(into, into.end), len(target_text), len(target_text))),
        pass_over(task.model, [read_ids], [[start, *ids]]),
        read_ids,
        (*ids, into.end),
    )


def greedy_outputs(task: TargetWriter, sources: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """The same for several inputs, searched together."""
    from regard.models.decoding import stepper

    decoding = task.recipe.decoding.model_copy(update={"beam": 1})
    given = [np.array(source, np.int64) for source in sources]
    return [one[0].tokens for one in search(stepper(task.model, task.device), given, decoding, task.symbols)]


def _decode_target(task: TextWriter, ids: Sequence[int]) -> tuple[str, list[Read]]:
    """The text of target pieces, and each piece with its characters.

    A final ``</s>`` is optional, and so are the symbols that every output begins with.

    Raises:
        RegardError: they are more than the model writes.
        UsageError: the model never writes one of them.
    """
    from regard.tasks.text.task import decode_with_offsets, read_as

    tokenizer = task.target_tokenizer
    begin = tuple(task.symbols.prefix)
    begin = begin if tuple(ids[: len(begin)]) == begin else ()
    ids = list(ids[len(begin) : -1 if ids and ids[-1] == tokenizer.end else None])
    never = {*task.symbols.without, tokenizer.end}
    for id in ids:
        if id in never or not 0 <= id < tokenizer.size:
            raise UsageError(f"piece {id} is never written by this model", "branch")
    data, decoding = task.recipe.data, task.recipe.decoding
    _refuse_long(len(ids), data.max_tokens + decoding.max_extra, "fewer pieces", "branch")
    text, read = read_as(tokenizer, tokenizer.decode(ids), ())
    if [id for id, _, _ in read] != ids:
        text, read = decode_with_offsets(tokenizer, ids, shown_symbols(task))
    return text, [*((id, 0, 0) for id in begin), *read]


def shown_symbols(task: TextModel) -> Collection[int]:
    """Symbols that a text shows by name: the sentinels of text to text."""
    return task.target_tokenizer.sentinels if answers_text(task) else ()


def _tokens(tokenizer: AnyTokenizer, read: Sequence[Read]) -> tuple[Token, ...]:
    return tuple(Token(piece(tokenizer, id), start, end) for id, start, end in read)


def _refuse_endless(task: TextModel, text: str) -> None:
    """Refuse a far too long text by its prefix, so that the rest is not tokenized."""
    limit = task.recipe.data.max_tokens
    begun = text[: BEGINNING * limit]
    if len(begun) < len(text):
        tokens = len(task.source_tokenizer.encode(begun).ids)
        if tokens > 2 * limit:
            _refuse_long(tokens, limit, "a part of it")


def _refuse_long(tokens: int, limit: int, instead: str, where: str = "text") -> None:
    if tokens > limit:
        raise RegardError(f"has {tokens} tokens, the model learned from {limit} at most; give {instead}", where)


def every_head(attention: Mapping[str, tuple[int, int]]) -> list[tuple[Kind, int, int]]:
    """Kind, layer and number of each head, counted from 1, from the layers and heads of each use of attention."""
    return [(kind, layer + 1, head + 1) for kind in KINDS for layer, head in np.ndindex(attention.get(kind, (0, 0)))]


def is_self_attention(kind: Kind) -> bool:
    """Whether queries and keys are tokens of the same text."""
    return kind in ("encoder", "decoder")


@dataclass(frozen=True)
class AttentionRecord:
    """Tokens read and written, and the attention weights of all heads.

    ``target`` is what the decoder reads: ``<s>``, then the target's tokens. ``written`` is what it predicts at each of
    these places: the target's tokens, then ``</s>``; rows of cross-attention are best labelled with that.
    ``weights[kind][layer]`` is ``weight_HQK``; a row over the keys sums to one.
    """

    source_text: str
    target_text: str
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    written: tuple[Token, ...]
    weights: dict[str, list[NDArray[np.float32]]]

    @property
    def kinds(self) -> list[Kind]:
        """The recorded kinds of attention."""
        return [kind for kind in KINDS if self.weights.get(kind)]

    def queries(self, kind: Kind) -> tuple[Token, ...]:
        """The query tokens of a kind: rows."""
        whole = (Token(WHOLE, 0, len(self.source_text)),)
        return {"encoder": self.source, "decoder": self.target, "cross": self.written, "pool": whole}[kind]

    def keys(self, kind: Kind) -> tuple[Token, ...]:
        """The key tokens of a kind: columns."""
        return self.target if kind == "decoder" else self.source

    def texts(self, kind: Kind) -> tuple[str, str]:
        """The texts of queries and of keys."""
        query_text = self.target_text if kind in ("decoder", "cross") else self.source_text
        return query_text, self.target_text if kind == "decoder" else self.source_text

    def words(self, kind: Kind) -> tuple[Words, Words]:
        """The words of queries and of keys; the query of pooling is a single one."""
        query_text, key_text = self.texts(kind)
        return words(self.queries(kind), "" if kind == "pool" else query_text), words(self.keys(kind), key_text)

    def layer(self, kind: Kind, layer: int) -> NDArray[np.float32]:
        """``weight_HQK`` of a layer, counted from 1 as in the paper's figures.

        Raises:
            UsageError: there is no such layer.
        """
        if kind not in self.weights:
            there = " and ".join(TITLES[one].lower() for one in self.kinds)
            raise UsageError(f"this model has no {TITLES[kind].lower()}, only {there}", Option("kind"))
        count = len(self.weights[kind])
        if not 1 <= layer <= count:
            raise UsageError(f"there is no layer {layer}; this model has layers 1 to {count}", Option("layer"))
        return self.weights[kind][layer - 1]

    def head(self, kind: Kind, layer: int, head: int) -> NDArray[np.float32]:
        """``weight_QK`` of one head, counted from 1.

        Raises:
            UsageError: there is no such layer or head.
        """
        weight_HQK = self.layer(kind, layer)
        if not 1 <= head <= len(weight_HQK):
            raise UsageError(f"there is no head {head}; this model has heads 1 to {len(weight_HQK)}", Option("head"))
        return weight_HQK[head - 1]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON: texts, tokens with offsets, weights as nested lists rounded to six digits."""
        sides = {"source": self.source, "target": self.target, "written": self.written}
        return {
            "format": 1,
            "source_text": self.source_text,
            "target_text": self.target_text,
            **{name: [asdict(token) for token in tokens] for name, tokens in sides.items()},
            "weights": {
                kind: [np.round(w.astype(float), 6).tolist() for w in self.weights[kind]] for kind in self.kinds
            },
        }


def record(task: Task, source_text: str, target_text: str | None = None) -> AttentionRecord:
    """Run the model once over a source and target, and record all attention weights [Vaswani17 §3.2].

    The weights are captured by hooks during the forward pass, not recomputed.

    Args:
        task: a loaded translator, or a text-to-text model; or another model of texts, which has a source alone.
        source_text: one sentence.
        target_text: its translation, or what is missing; the model's own (greedy) one if none is given.

    Raises:
        RegardError: the source is empty or longer than the model's sentences were, or the model has no attention.
        UsageError: a target for a model that writes none.
    """
    found = record_attention(text_inputs(task, source_text, target_text))
    if not found.kinds:
        raise RegardError("has no attention to look at", "model")
    return found


def record_attention(seen: ModelInputs) -> AttentionRecord:
    """Run the pass once and record all attention weights."""
    return record_pass([seen], seen.run)[1][0]


def record_pass(seen: Sequence[ModelInputs], run: Callable[[], Tensor]) -> tuple[Tensor, list[AttentionRecord]]:
    """What one pass over several inputs of a model gives, and the attention weights of each."""
    from regard.models.captured_attention import capture_layers

    task = seen[0].task
    hidden: list[Tensor] = []
    lengths = [len(one.target) for one in seen]
    found = capture_layers(task.model, task.recipe.model.family, lambda: hidden.append(run()), lengths)
    records = []
    for number, one in enumerate(seen):
        weights = {
            kind: [layer[number].float().cpu().numpy() for layer in layers] for kind, layers in found.items() if layers
        }
        records.append(AttentionRecord(one.source_text, one.target_text, one.source, one.target, one.written, weights))
    return hidden[0], records


@dataclass(frozen=True)
class HeadMeasures:
    """Measures of each head of a layer, averaged over its queries.

    Args:
        entropy_H: of a query's weights, in bits: 0 looks at one token, ``log2`` of the keys at all alike
            [Clark19 §3.3].
        distance_H: how many tokens away the keys are, on average by weight; between two texts, from where a query
            would stand if both were spread over each other evenly; between patches of an image, along the straight
            line, and what the class token looks at or is given is left out, for it has no place.
        special_H: the share of the weight that falls on tokens that are no text, such as ``</s>`` [Clark19 §3.2].
    """

    entropy_H: Weights
    distance_H: Weights
    special_H: Weights


def measures(weight_HQK: Weights, special_K: Sequence[bool], grid: tuple[int, int] | None = None) -> HeadMeasures:
    """The measures of every head of a layer.

    Args:
        weight_HQK: rows that sum to one; queries that attend to nothing have rows of zeros, and count nothing.
        special_K: which keys are no text.
        grid: rows and columns of patches, where tokens are the class token and these.
    """
    weight_HQK = np.asarray(weight_HQK, np.float64)
    seeing_HQ = weight_HQK.sum(axis=2) > 0
    queries_H = np.maximum(seeing_HQ.sum(axis=1), 1)
    if grid is None:
        far_HQ = (weight_HQK * token_distances(*weight_HQK.shape[1:])).sum(axis=2)
        distance_H = (far_HQ * seeing_HQ).sum(axis=1) / queries_H
    else:
        distance_H = mean_distance(weight_HQK, patch_distances(*grid, 1)[0])
    special_HQ = weight_HQK[:, :, np.asarray(special_K, bool)].sum(axis=2)
    entropy_H, special_H = (
        (one_HQ * seeing_HQ).sum(axis=1) / queries_H for one_HQ in (entropy(weight_HQK), special_HQ)
    )
    return HeadMeasures(entropy_H, distance_H, special_H)


def entropy(weight_HQK: Weights) -> Weights:
    """``entropy_HQ`` of each query's weights, in bits."""
    positive = np.where(weight_HQK > 0, weight_HQK, 1.0)
    found: Weights = -(positive * np.log2(positive)).sum(axis=-1)
    return found


def rollout(layers: Sequence[Weights]) -> Weights:
    """Attention rollout: ``weight_QK`` from the top of a stack to its input tokens [Abnar20 §3].

    The heads of a layer count alike, and half of what a token is passes by attention, in the residual connection.

    Args:
        layers: ``weight_HQK`` of every layer of a self-attention, the first first.
    """
    size = layers[0].shape[-1]
    found: Weights = np.eye(size)
    for weight_HQK in layers:
        through_QK = np.asarray(weight_HQK, np.float64).mean(axis=0) + np.eye(size)
        found = through_QK / through_QK.sum(axis=1, keepdims=True) @ found
    return found


def token_distances(queries: int, keys: int) -> NDArray[np.float64]:
    """How many tokens every key is from where each query stands.

    Between two texts of other lengths a query stands where it would if both were spread over each other evenly.
    """
    place_Q = np.arange(queries) * ((keys - 1) / max(1, queries - 1))
    return np.asarray(np.abs(place_Q[:, None] - np.arange(keys)))


def patch_distances(rows: int, columns: int, patch: int) -> tuple[Weights, Weights]:
    """Between all pairs of patches: Euclidean distance in pixels, and Chebyshev distance in patches."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    down, across = np.abs(row[:, None] - row), np.abs(column[:, None] - column)
    return patch * np.hypot(down, across), np.maximum(down, across).astype(np.float64)


def mean_distance(weight: Weights, distance: Weights) -> Weights:
    """The attention-weighted mean distance, averaged over queries.

    Args:
        weight: (heads, 1 + patches, 1 + patches), the class token first. It has no place: its own row is left out, and
            of every other row the part that goes to patches is taken for the whole.
        distance: from patch to patch.
    """
    patches = weight[:, 1:, 1:]
    found: Weights = ((patches * distance).sum(-1) / patches.sum(-1).clip(1e-12)).mean(-1)
    return found


def downsample(weight_HQK: Weights, most: int) -> Weights:
    """Downsample attention maps to at most ``most`` rows and columns.

    A cell holds what its queries give to its keys, on average: rows still sum to one, and a query that looks at one key
    alone is seen at any size.
    """
    parts = [(np.arange(min(size, most)) * size) // min(size, most) for size in weight_HQK.shape[1:]]
    summed = np.add.reduceat(np.add.reduceat(weight_HQK, parts[0], axis=1), parts[1], axis=2)
    heights = np.diff([*parts[0], weight_HQK.shape[1]])
    return np.asarray(summed / heights[:, None])
