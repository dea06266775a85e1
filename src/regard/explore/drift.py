"""How the vector of a word moves from layer to layer, and between sentences, as paths on one plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.explore.scene import Scene
from regard.explore.space import Floats, Plane, cosines

Stack = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class Drift:
    """The vectors of the tokens of some scenes, where they enter a stack and behind each of its layers.

    Args:
        vectors: of each scene ``vector_LTD``, the first layer being what enters.
        plane: through all of them.
    """

    vectors: tuple[NDArray[Any], ...]
    plane: Plane

    @property
    def paths(self) -> list[Floats]:
        """Of each scene ``place_LTA``: where each token stands on the plane."""
        found = []
        for vector_LTD in self.vectors:
            layers, tokens, size = vector_LTD.shape
            found.append(self.plane.on(vector_LTD.reshape(-1, size)).reshape(layers, tokens, 2))
        return found

    def alike(self, one: tuple[int, int], other: tuple[int, int]) -> list[float]:
        """The cosine of two tokens, given as scene and place, in each layer."""
        vectors = (self.vectors[scene][:, place] for scene, place in (one, other))
        return [float(cosines(a[None], b)[0]) for a, b in zip(*vectors, strict=True)]


def drift(scenes: Sequence[Scene], stack: Stack) -> Drift:
    """The vectors of all tokens of some scenes, which the same model reads.

    Raises:
        RegardError: the model has no such stack of layers.
    """
    from regard.models.reading import streams

    vectors = []
    for seen in scenes:
        layers = streams(seen.task.model, seen.run, stack)
        if not layers:
            raise RegardError(f"this model has no {stack} of layers through which a vector could be followed")
        vectors.append(np.stack([x_TD.float().cpu().numpy() for x_TD in layers]))
    return Drift(tuple(vectors), Plane.through(np.concatenate([each.reshape(-1, each.shape[-1]) for each in vectors])))
