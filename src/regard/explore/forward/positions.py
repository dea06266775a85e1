"""Positional encodings: position vectors, their cosine similarity, and the biases added to attention scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config.families import Model
from regard.explore.forward.vector_space import Floats, cosines
from regard.system.errors import RegardError


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
        raise RegardError(f"this model has no {stack} with positions")
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
