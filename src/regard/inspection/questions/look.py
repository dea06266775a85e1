"""A forward pass as the page reads it: tokens, words, thumbnails of all heads, and attention weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.inspection.folders.models import Models
from regard.inspection.forward.head_measures import measures, rollout
from regard.inspection.forward.inputs import Token, words
from regard.inspection.forward.passes import ForwardPass, forward_pass
from regard.inspection.forward.record import AttentionRecord, Kind, is_self_attention
from regard.inspection.forward.text_windows import fit_request
from regard.inspection.payload import Answer, bytes_of, downsample
from regard.inspection.questions.first_head import first_head
from regard.inspection.requests import Number, Places, Request, question
from regard.system.errors import UsageError

SIDE = 64
"""Most rows and columns of a thumbnail."""
FEW = 1 << 18
"""Most weights per response."""
SIDES: dict[str, tuple[str, str]] = {
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "cross": ("written", "source"),
    "pool": ("whole", "source"),
}
"""The sides of queries and keys."""
Merge = Literal["head", "mean", "max", "rollout"]

Arrays = dict[str, NDArray[Any]]


@question
def look(models: Models, asked: Request, opening: Literal["", Kind] = "") -> Answer:
    """A whole forward pass for display, and the first head to show of the requested kind."""
    loaded = models.load_for(asked)
    cut = fit_request(models, loaded, asked)
    one = forward_pass(models, cut.asked)
    values, arrays = pass_values(one)
    found = None
    if opening in one.record.kinds:
        found = first_head(models, loaded, cut.asked, one, opening)
    values |= {**cut.values, "opening": found and asdict(found)}
    every = every_weight(one.record)
    few = sum(array.size for array in every.values()) <= FEW
    return values, arrays | every if few else arrays


def pass_values(one: ForwardPass) -> tuple[dict[str, Any], Arrays]:
    """A pass without its full weights: values, thumbnails and measures of all heads, and image pixels."""
    record = one.record
    there = record.kinds
    values: dict[str, Any] = {
        "source_text": record.source_text,
        "target_text": record.target_text,
        **{side: token_values(tokens) for side, tokens in _sides(record).items()},
        "words": {side: _words(tokens, record, side) for side, tokens in _sides(record).items()},
        "kinds": {kind: _kind(record, kind) for kind in there},
        "output": one.output,
        "said": None if one.said is None else [[asdict(each) for each in some] for some in one.said],
        "probability": one.probability,
        "unseen": None if one.unseen is None else [list(astuple(word)) for word in one.unseen],
        "confidence": one.confidence,
        "unsure": one.unsure,
        "branch": None if one.branch is None else list(one.branch),
        "image": None if one.grid is None else {"rows": one.grid[0], "columns": one.grid[1], "label": one.label},
    }
    arrays = {name: array for kind in there for name, array in _pictures(record, kind, one.grid).items()}
    return values, arrays if one.pixels is None else {**arrays, "pixels": one.pixels}


def every_weight(record: AttentionRecord) -> Arrays:
    """``weight_LHQK`` of every kind of attention."""
    return {f"weights.{kind}": np.stack(record.weights[kind]).astype(np.float32) for kind in record.kinds}


@question
def head(
    models: Models,
    asked: Request,
    kind: Kind,
    merge: Merge = "head",
    layer: Number | None = None,
    head: Number | None = None,
) -> Answer:
    """The weights of one head, or of several merged."""
    record = forward_pass(models, asked).record
    return {}, {"weight": merge_heads(record, kind, merge, layer, head).astype(np.float32)}


@question
def row(models: Models, asked: Request, kind: Kind, places: Places = ()) -> Answer:
    """``weight_LHK``: the weights of every head from one query, or averaged over several."""
    record = forward_pass(models, asked).record
    there = len(record.layer(kind, 1)[0])
    if not places or max(places) >= there:
        raise UsageError(f"tokens that look are named by their places, from 0 to {there - 1}", "places")
    found = [weight_HQK[:, places].mean(axis=1) for weight_HQK in record.weights[kind]]
    return {}, {"weight": np.stack(found).astype(np.float32)}


def merge_heads(record: AttentionRecord, kind: Kind, merge: Merge, layer: int | None, head: int | None) -> NDArray[Any]:
    """``weight_QK`` of one head; the mean or maximum over a layer's heads or all heads; or their rollout.

    Args:
        record: one pass.
        kind: of attention.
        merge: one head, or how several become one.
        layer: counted from 1; ``None``: all, and of a rollout up to the last.
        head: counted from 1, where one is looked at.

    Raises:
        UsageError: there is no such layer or head, or nothing that rolls out.
    """
    if merge == "head":
        if layer is None or head is None:
            raise UsageError("a head is named by its layer and its number", "head")
        return record.head(kind, layer, head)
    one = record.layer(kind, 1 if layer is None else layer)
    if merge == "rollout":
        if not is_self_attention(kind):
            raise UsageError("only within one text can attention be followed from layer to layer", "merge")
        return rollout(record.weights[kind][:layer])
    every_HQK = np.concatenate(record.weights[kind]) if layer is None else one
    return np.asarray(every_HQK.mean(axis=0) if merge == "mean" else every_HQK.max(axis=0))


def token_values(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Tokens as plain values; a token that covers no characters is special."""
    return [{**asdict(token), "special": token.start == token.end} for token in tokens]


def _sides(record: AttentionRecord) -> dict[str, tuple[Token, ...]]:
    found = {"source": record.source, "target": record.target, "written": record.written}
    return {**found, "whole": record.queries("pool")} if record.weights.get("pool") else found


def _words(tokens: Sequence[Token], record: AttentionRecord, side: str) -> list[list[Any]]:
    if side == "whole":
        return [[token.text, [place]] for place, token in enumerate(tokens)]
    text = record.source_text if side == "source" else record.target_text
    return [list(word) for word in words(tokens, text)]


def _kind(record: AttentionRecord, kind: Kind) -> dict[str, Any]:
    layers, (queries, keys) = record.weights[kind], SIDES[kind]
    return {"layers": len(layers), "heads": len(layers[0]), "queries": queries, "keys": keys}


def _pictures(record: AttentionRecord, kind: Kind, grid: tuple[int, int] | None) -> Arrays:
    """Thumbnails of every head, their largest values, and head measures."""
    special = [token.start == token.end for token in record.keys(kind)]
    pictures = np.stack([downsample(weight_HQK, SIDE) for weight_HQK in record.weights[kind]])
    largest = pictures.max(axis=(2, 3))
    each = [measures(weight_HQK, special, grid) for weight_HQK in record.weights[kind]]
    told = [np.stack([one.entropy_H, one.distance_H, one.special_H], axis=-1) for one in each]
    return {
        f"small.{kind}": bytes_of(pictures / np.where(largest > 0, largest, 1)[:, :, None, None]),
        f"largest.{kind}": largest.astype(np.float32),
        f"measures.{kind}": np.stack(told).astype(np.float32),
    }
