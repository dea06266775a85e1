"""Arrays that tests of kernels are given."""

import numpy as np
from numpy.typing import NDArray


def draw(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    """Normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def apart(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same rows, further apart in memory, with numbers between them that are none."""
    room = np.full((len(x), x.shape[1] + 5), np.nan, np.float32)
    room[:, : x.shape[1]] = x
    return room[:, : x.shape[1]]
