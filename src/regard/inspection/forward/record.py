"""Attention records: the kinds of attention, every weight of every head in one pass, and measures of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regard.inspection.forward.inputs import ModelInputs, Token, text_inputs, words
from regard.system.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.tasks.protocols import Task

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


def is_self_attention(kind: Kind) -> bool:
    """Whether queries and keys are tokens of the same text."""
    return kind in ("encoder", "decoder")


WHOLE = "the whole text"
"""The query of attention pooling, where one learned query attends to all tokens of a text."""
Weights = NDArray[np.floating]
Words = list[tuple[str, list[int]]]
"""Words, each with the places of its tokens."""


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

    def words(self, kind: Kind) -> tuple[Words, Words]:
        """The words of queries and of keys."""
        query_text = self.source_text if kind == "encoder" else self.target_text
        key_text = self.target_text if kind == "decoder" else self.source_text
        return words(self.queries(kind), query_text), words(self.keys(kind), key_text)

    def layer(self, kind: Kind, layer: int) -> NDArray[np.float32]:
        """``weight_HQK`` of a layer, counted from 1 as in the paper's figures.

        Raises:
            UsageError: there is no such layer.
        """
        if kind not in self.weights:
            there = " and ".join(TITLES[one].lower() for one in KINDS if one in self.weights)
            raise UsageError(f"this model has {there} alone", "--kind")
        count = len(self.weights[kind])
        if not 1 <= layer <= count:
            raise UsageError(f"there is no layer {layer}; this model has layers 1 to {count}", "--layer")
        return self.weights[kind][layer - 1]

    def head(self, kind: Kind, layer: int, head: int) -> NDArray[np.float32]:
        """``weight_QK`` of one head, counted from 1.

        Raises:
            UsageError: there is no such layer or head.
        """
        weight_HQK = self.layer(kind, layer)
        if not 1 <= head <= len(weight_HQK):
            raise UsageError(f"there is no head {head}; this model has heads 1 to {len(weight_HQK)}", "--head")
        return weight_HQK[head - 1]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON: texts, tokens with offsets, weights as nested lists rounded to six digits."""
        kinds = [kind for kind in KINDS if kind in self.weights]
        sides = {"source": self.source, "target": self.target, "written": self.written}
        return {
            "format": 1,
            "source_text": self.source_text,
            "target_text": self.target_text,
            **{
                name: [{"text": t.text, "start": t.start, "end": t.end} for t in tokens]
                for name, tokens in sides.items()
            },
            "weights": {kind: [np.round(w.astype(float), 6).tolist() for w in self.weights[kind]] for kind in kinds},
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
    if not any(found.weights.values()):
        raise RegardError("has no attention to look at", "model")
    return found


def record_attention(seen: ModelInputs) -> AttentionRecord:
    """Run the pass once and record all attention weights."""
    from regard.models.captured_attention import capture_layers

    heard_weights = capture_layers(seen.task.model, seen.task.recipe.model.family, seen.run, [len(seen.target)])
    weights = {kind: [one[0].float().cpu().numpy() for one in layers] for kind, layers in heard_weights.items()}
    return AttentionRecord(seen.source_text, seen.target_text, seen.source, seen.target, seen.written, weights)


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
        _, queries, keys = weight_HQK.shape
        place_Q = np.arange(queries) * ((keys - 1) / max(1, queries - 1) if queries != keys else 1.0)
        far_HQ = (weight_HQK * np.abs(place_Q[:, None] - np.arange(keys))).sum(axis=2)
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
