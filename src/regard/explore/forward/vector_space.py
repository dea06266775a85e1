"""Vectors of a model: cosines, PCA, positional encodings, and token vectors layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.config.families import Model
from regard.explore.forward.inputs import ModelInputs
from regard.system.errors import RegardError

Floats = NDArray[np.float64]
Stack = Literal["encoder", "decoder"]


def cosines(table_VD: NDArray[Any], vector_D: NDArray[Any]) -> Floats:
    """``cosine_V`` of each row with a vector; 0 for zero vectors."""
    table_VD, vector_D = np.asarray(table_VD, np.float64), np.asarray(vector_D, np.float64)
    lengths_V = np.linalg.norm(table_VD, axis=1) * np.linalg.norm(vector_D)
    return np.divide(table_VD @ vector_D, lengths_V, out=np.zeros(len(table_VD)), where=lengths_V > 0)


def nearest(table_VD: NDArray[Any], place: int, count: int) -> list[tuple[int, float]]:
    """The rows nearest to the row at ``place`` by cosine, without itself: indices and cosines, nearest first."""
    cosine_V = cosines(table_VD, table_VD[place])
    order = np.argsort(-cosine_V, kind="stable")
    return [(int(one), float(cosine_V[one])) for one in order if one != place][:count]


@dataclass(frozen=True)
class Plane:
    """The plane of the first two principal components of some points.

    Args:
        middle_D: where it lies.
        axes_AD: its two directions, each of length one, across each other; the largest entry of each is above zero.
        share: of the squared distances from the middle, how much lies in the plane.
    """

    middle_D: Floats
    axes_AD: Floats
    share: float

    @classmethod
    def fit(cls, points_ND: NDArray[Any]) -> Plane:
        """Fit the plane to these points."""
        points_ND = np.asarray(points_ND, np.float64)
        middle_D = points_ND.mean(axis=0)
        _, sizes, axes = np.linalg.svd(points_ND - middle_D, full_matrices=False)
        axes_AD = np.zeros((2, points_ND.shape[1]))
        axes_AD[: len(axes[:2])] = axes[:2]
        largest = np.take_along_axis(axes_AD, np.abs(axes_AD).argmax(axis=1)[:, None], axis=1)
        total = float((sizes**2).sum())
        share = float((sizes[:2] ** 2).sum()) / total if total else 1.0
        return cls(middle_D, axes_AD * np.where(largest < 0, -1, 1), share)

    def on(self, points_ND: NDArray[Any]) -> Floats:
        """Project points onto the plane: ``place_NA``."""
        return np.asarray((np.asarray(points_ND, np.float64) - self.middle_D) @ self.axes_AD.T)


@dataclass(frozen=True)
class LayerPaths:
    """The token vectors of some inputs, at a stack's input and after each of its layers.

    Args:
        vectors: of each scene ``vector_LTD``, the first layer being what enters.
        plane: through all of them.
    """

    vectors: tuple[NDArray[Any], ...]
    plane: Plane

    @property
    def paths(self) -> list[Floats]:
        """For each input ``place_LTA``: each token's position on the plane."""
        found = []
        for vector_LTD in self.vectors:
            layers, tokens, size = vector_LTD.shape
            found.append(self.plane.on(vector_LTD.reshape(-1, size)).reshape(layers, tokens, 2))
        return found

    def layer_cosines(self, one: tuple[int, int], other: tuple[int, int]) -> list[float]:
        """The cosine of two tokens, given as input and token index, in each layer."""
        vectors = (self.vectors[scene][:, place] for scene, place in (one, other))
        return [float(cosines(a[None], b)[0]) for a, b in zip(*vectors, strict=True)]


def layer_paths(scenes: Sequence[ModelInputs], stack: Stack) -> LayerPaths:
    """The token vectors of several inputs of the same model.

    Raises:
        RegardError: the model has no such stack of layers.
    """
    from regard.models.captured_attention import streams

    vectors = []
    for seen in scenes:
        layers = streams(seen.task.model, seen.run, stack)
        if not layers:
            raise RegardError(f"this model has no {stack} of layers to follow vectors through", "stack")
        vectors.append(np.stack([x_TD.float().cpu().numpy() for x_TD in layers]))
    return LayerPaths(tuple(vectors), Plane.fit(np.concatenate([each.reshape(-1, each.shape[-1]) for each in vectors])))


@dataclass(frozen=True)
class PositionViews:
    """The first positions of a stack.

    Args:
        vector_TD: what is added to the embedding at each position; zeros where nothing is.
        bias_HX: what is added to the scores of each head by distance, from the key ``T - 1`` before the query to that
            ``T - 1`` after it; ``None`` if nothing is added.
    """

    vector_TD: NDArray[Any]
    bias_HX: NDArray[Any] | None

    @property
    def likeness_TT(self) -> Floats:
        """Cosine similarity of all pairs of position vectors; zeros if nothing is added."""
        return np.stack([cosines(self.vector_TD, vector_D) for vector_D in self.vector_TD])

    @property
    def likeness_by_distance(self) -> list[float]:
        """The mean cosine similarity by distance, from 0 on."""
        likeness_TT = self.likeness_TT
        return [float(np.diagonal(likeness_TT, far).mean()) for far in range(len(likeness_TT))]


def position_views(model: Any, section: Model, stack: str, count: int) -> PositionViews:
    """The first ``count`` positions of a stack, or fewer if the model has fewer.

    Args:
        model: of any family.
        section: its sizes.
        stack: ``encoder`` or ``decoder``.

    Raises:
        RegardError: the model has no such stack.
    """
    import torch

    if not hasattr(model, stack):
        raise RegardError(f"this model has no {stack} with positions", "stack")
    positions, weight = getattr(model, stack).input.positions, next(model.parameters())
    count = int(min(count, section.known_positions))
    with torch.inference_mode():
        place_T = torch.arange(count, device=weight.device)
        vector_TD = positions.embed(weight.new_zeros(count, section.d_model), place_T, count)
        bias = positions.bias()
        bias_HX = None
        if bias is not None:
            every_X = torch.arange(2 * count - 1, device=weight.device)
            bias_HX = bias(every_X[count - 1 : count], every_X)[:, 0].float().cpu().numpy()
    return PositionViews(vector_TD.float().cpu().numpy(), bias_HX)
