"""What heads attend to, counted in one image: the same patch, its neighbours, row and column, the class token.

Each function is a set of keys for every patch that looks; shares and chance are as of texts
(:mod:`~regard.inspection.forward.head_functions`). The class token has no place: what it looks at is in the entropy
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from regard.inspection.forward.head_functions import Floats, HeadCounts, HeadLabel, HeadMetrics, Mask
from regard.inspection.forward.head_measures import entropy, mean_distance, patch_distances


@dataclass(frozen=True)
class PatchPositions:
    """Where the patches of an image lie, row by row; the class token stands before them.

    Args:
        rows, columns: of patches.
        patch: height and width of a patch, in pixels.
    """

    rows: int
    columns: int
    patch: int

    @cached_property
    def distances(self) -> tuple[Floats, Floats]:
        """From patch to patch: in pixels along the straight line, and in patches (Chebyshev)."""
        return patch_distances(self.rows, self.columns, self.patch)

    @cached_property
    def masks_FQK(self) -> NDArray[np.bool_]:
        """The keys of every function for every query; none for the class token's."""
        found = np.zeros((len(FUNCTIONS), *(1 + self.rows * self.columns,) * 2), np.bool_)
        for mask_QK, function in zip(found, FUNCTIONS.values(), strict=True):
            mask_QK[1:] = function.mask(self)
        return found

    def others(self, alike: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]) -> Mask:
        """Keys that are other patches with the same number by a function of row and column."""
        number = alike(*np.divmod(np.arange(self.rows * self.columns), self.columns))
        return _behind((number[:, None] == number) & (self.distances[1] > 0))


def _behind(mask: Mask) -> Mask:
    """Patches as keys, behind a class token that is none."""
    return np.pad(mask, ((0, 0), (1, 0)))


@dataclass(frozen=True)
class PatchFunction(HeadLabel):
    """Something a head may attend to in an image.

    Args:
        mask: the keys, class token first, of every patch; or one row that is every patch's.
    """

    mask: Callable[[PatchPositions], Mask]


FUNCTIONS: Mapping[str, PatchFunction] = {
    "same_patch": PatchFunction("same patch", "the patch itself", lambda at: _behind(at.distances[1] == 0)),
    "neighbours": PatchFunction(
        "neighbours", "the patches beside it, up to eight", lambda at: _behind(at.distances[1] == 1)
    ),
    "row": PatchFunction("same row", "other patches of its row", lambda at: at.others(lambda row, column: row)),
    "column": PatchFunction(
        "same column", "other patches of its column", lambda at: at.others(lambda row, column: column)
    ),
    "class_token": PatchFunction(
        "class token",
        "the class token, of what patches look at",
        lambda at: np.eye(1, 1 + at.rows * at.columns, dtype=np.bool_),
    ),
}
"""The functions by which a head of a model of images may be named, in the order of their columns."""
OF_IMAGES = HeadMetrics("images", FUNCTIONS, tuple(FUNCTIONS), {"distance": "pixels", "entropy": "bits"})
"""What is counted in images; ``distance`` is what a patch looks at on average, the class token left out."""


def count_patches(weight_LHQK: NDArray[np.float64], places: PatchPositions) -> HeadCounts:
    """What the heads of all layers attend to in one image.

    A patch that has no key of a function, such as neighbours where there is one patch alone, cannot show it and is left
    out. The mean distance is Dosovitskiy et al.'s: of what goes to patches, as if that were the whole.
    """
    mask_FQK, distance, queries = places.masks_FQK, places.distances[0], weight_LHQK.shape[2]
    sums_LHF = np.einsum("lhqk,fqk->lhf", weight_LHQK, mask_FQK, optimize=True)
    far_LH = np.stack([mean_distance(weight_HQK, distance) for weight_HQK in weight_LHQK]) * len(distance)
    spread_LH = entropy(weight_LHQK).sum(-1)
    return HeadCounts(
        np.concatenate([sums_LHF, far_LH[..., None], spread_LH[..., None]], -1),
        np.array([*mask_FQK.sum((1, 2)) / queries, distance.mean(1).sum(), queries * np.log2(queries)]),
        np.array([*mask_FQK.any(2).sum(1), len(distance), queries], np.float64),
    )
