"""What a reader did in every example of a part as counts, the score of these, and paired bootstrap intervals [Koehn04].

Counts of a text or of tags: those that are right, and all. Of entities: right, said and there.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.text.tags import spans_of

Counts = NDArray[np.int64]
"""``counts_NK``: a row for each example."""
RESAMPLES = 10_000
AT_ONCE = 500


def counts_of(gold: Sequence[Any], said: Sequence[Any], spans: bool) -> Counts:
    """The counts of predicted labels or tags; entities count as right where boundaries and label are."""
    rows = []
    for right, found in zip(gold, said, strict=True):
        if isinstance(right, str):
            rows.append((int(right == found), 1))
        elif spans:
            there, those = set(spans_of(right)), set(spans_of(found))
            rows.append((len(there & those), len(those), len(there)))
        else:
            rows.append((sum(one == other for one, other in zip(right, found, strict=True)), len(right)))
    return np.array(rows, np.int64)


def scores_of(sums_RK: NDArray[Any]) -> NDArray[np.float64]:
    """The accuracy, or F1 of entities, of added counts; 0 to 100."""
    right_R, rest_R = sums_RK[..., 0], sums_RK[..., 1:].sum(-1)
    return np.asarray((100 if sums_RK.shape[-1] == 2 else 200) * right_R / np.maximum(rest_R, 1))


def paired(ours: Sequence[Counts], theirs: Sequence[Counts], seed: int = 1) -> tuple[float, float, float]:
    """How much better ours is, and from where to where in 95 % of resamples of the examples.

    Args:
        ours, theirs: of each run; the score of a side is the mean of its runs.
        seed: of the resamples.
    """
    draw, count = np.random.default_rng(seed), len(ours[0])

    def lead(weight_RN: NDArray[Any]) -> NDArray[np.float64]:
        sides = (np.mean([scores_of(weight_RN @ counts_NK) for counts_NK in side], axis=0) for side in (ours, theirs))
        own, other = sides
        return np.asarray(own - other)

    found = []
    for begin in range(0, RESAMPLES, AT_ONCE):
        rows = min(AT_ONCE, RESAMPLES - begin)
        chosen_RN = draw.integers(0, count, (rows, count)) + count * np.arange(rows)[:, None]
        found.append(lead(np.bincount(chosen_RN.ravel(), minlength=rows * count).reshape(rows, count).astype(float)))
    low, high = np.percentile(np.concatenate(found), (2.5, 97.5))
    return float(lead(np.ones((1, count)))[0]), float(low), float(high)


def packed(counts_NK: Counts) -> str:
    """Counts as a short text for a row: K, then 16 bits each, compressed."""
    data = bytes([counts_NK.shape[1]]) + counts_NK.astype("<u2").tobytes()
    return base64.b64encode(zlib.compress(data, 9)).decode()


def unpacked(text: str) -> Counts:
    """The counts of such a text."""
    data = zlib.decompress(base64.b64decode(text))
    return np.frombuffer(data[1:], "<u2").reshape(-1, data[0]).astype(np.int64)
