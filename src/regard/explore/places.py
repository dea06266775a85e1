"""What a model knows of places: the vectors that positions add, how alike they are, and what they add to scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config.families import Model
from regard.errors import RegardError
from regard.explore.space import Floats, cosines


@dataclass(frozen=True)
class Places:
    """The first positions of a stack.

    Args:
        vector_TD: what is added to the embedding at each position; zeros where nothing is.
        bias_HX: what is added to the scores of each head by distance, from the key ``T - 1`` before the query to that
            ``T - 1`` behind it; ``None`` where nothing is.
    """

    vector_TD: NDArray[Any]
    bias_HX: NDArray[Any] | None

    @property
    def likeness_TT(self) -> Floats:
        """The cosine of each position's vector with each other's; zeros where nothing is added."""
        return np.stack([cosines(self.vector_TD, vector_D) for vector_D in self.vector_TD])

    @property
    def likeness_by_distance(self) -> list[float]:
        """The mean cosine of positions so far apart, from 0 on."""
        likeness_TT = self.likeness_TT
        return [float(np.diagonal(likeness_TT, far).mean()) for far in range(len(likeness_TT))]


def places(model: Any, section: Model, stack: str, count: int) -> Places:
    """The first ``count`` positions of a stack, fewer where it knows no more.

    Args:
        model: of any family.
        section: its sizes.
        stack: ``encoder`` or ``decoder``.

    Raises:
        RegardError: the model has no such stack.
    """
    import torch

    if not hasattr(model, stack):
        raise RegardError(f"this model has no {stack} whose positions could be shown")
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
    return Places(vector_TD.float().cpu().numpy(), bias_HX)
