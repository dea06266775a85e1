"""Measures of attention heads: entropy, mean attention distance, share on special tokens; attention rollout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[Any]


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
    return HeadMeasures(
        _mean(entropy(weight_HQK), seeing_HQ),
        _text_distance(weight_HQK, seeing_HQ)
        if grid is None
        else mean_distance(weight_HQK, patch_distances(*grid, 1)[0]),
        _mean(weight_HQK[:, :, np.asarray(special_K, bool)].sum(axis=2), seeing_HQ),
    )


def _text_distance(weight_HQK: Weights, seeing_HQ: NDArray[np.bool_]) -> Weights:
    """Mean attention distance along a text."""
    _, queries, keys = weight_HQK.shape
    place_Q = np.arange(queries) * ((keys - 1) / max(1, queries - 1) if queries != keys else 1.0)
    away_QK = np.abs(place_Q[:, None] - np.arange(keys))
    return _mean((weight_HQK * away_QK).sum(axis=2), seeing_HQ)


def entropy(weight_HQK: Weights) -> Weights:
    """``entropy_HQ`` of each query's weights, in bits."""
    positive = np.where(weight_HQK > 0, weight_HQK, 1.0)
    found: Weights = -(positive * np.log2(positive)).sum(axis=-1)
    return found


def _mean(value_HQ: Weights, seeing_HQ: NDArray[np.bool_]) -> Weights:
    found: Weights = (value_HQ * seeing_HQ).sum(axis=1) / np.maximum(seeing_HQ.sum(axis=1), 1)
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
