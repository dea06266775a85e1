"""Vectors as neighbours and as a map: words of an embedding table, or one word from layer to layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cosines(table_VD: NDArray[Any], vector_D: NDArray[Any]) -> Floats:
    """``cosine_V`` of each row with a vector; 0 where either has no direction."""
    table_VD, vector_D = np.asarray(table_VD, np.float64), np.asarray(vector_D, np.float64)
    lengths_V = np.linalg.norm(table_VD, axis=1) * np.linalg.norm(vector_D)
    found: Floats = np.divide(table_VD @ vector_D, lengths_V, out=np.zeros(len(table_VD)), where=lengths_V > 0)
    return found


def nearest(table_VD: NDArray[Any], place: int, count: int) -> list[tuple[int, float]]:
    """The rows that point most as the row at ``place`` does, itself left out: places and cosines, the nearest first."""
    cosine_V = cosines(table_VD, table_VD[place])
    order = np.argsort(-cosine_V, kind="stable")
    return [(int(one), float(cosine_V[one])) for one in order if one != place][:count]


@dataclass(frozen=True)
class Plane:
    """The plane in which given points differ most: their first two principal components.

    Args:
        middle_D: where it lies.
        axes_AD: its two directions, each of length one, across each other; the largest entry of each is above zero.
        share: of the squared distances from the middle, how much lies in the plane.
    """

    middle_D: Floats
    axes_AD: Floats
    share: float

    @classmethod
    def through(cls, points_ND: NDArray[Any]) -> Plane:
        """The plane of these points."""
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
        """``place_NA`` of points on it, seen from right above."""
        found: Floats = (np.asarray(points_ND, np.float64) - self.middle_D) @ self.axes_AD.T
        return found
