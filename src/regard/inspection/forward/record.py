"""Attention records: the kinds of attention, and every weight of every head in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

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
Weights = NDArray[Any]
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

    def to_dict(self) -> dict[str, Any]:
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
