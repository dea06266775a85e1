"""What heads do over many texts or images: mean shares with bootstrap intervals, and the function that names a head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from regard.inspection.forward.head_functions import OF_TEXTS, Floats, HeadCounts, HeadMetrics
from regard.inspection.forward.record import Kind

SAMPLES = 1000
"""Bootstrap samples."""
CONFIDENCE = 0.95
EXCESS = 0.2
"""A head is named by a function where its share exceeds chance by more than this, at the lower end of the interval."""
RARE = 0.5
"""A function is rare where fewer than this share of the queries can show it."""
NONE = "no single function"
FEWEST = 10
"""Fewer texts name no head: an interval over so few is not reliable."""
SEED = 17
_ROOM = 1 << 24
"""Most numbers of a bootstrap at a time."""


@dataclass(frozen=True)
class HeadStatistics:
    """What the heads of one kind of attention do, over texts or images; ``F`` are the names of the metrics.

    Values that no text shows are NaN.

    Args:
        metrics: what was counted.
        mean_LHF: shares of attention, mean distance, entropy.
        low_LHF, high_LHF: the 95 % interval, by resampling texts [Koehn04].
        excess_low_LHF, excess_high_LHF: that of the mean less chance.
        chance_F: the mean, if every visible key were given the same.
        queries_F: over how many queries; ``texts_F``: of how many texts.
    """

    metrics: HeadMetrics
    mean_LHF: Floats
    low_LHF: Floats
    high_LHF: Floats
    excess_low_LHF: Floats
    excess_high_LHF: Floats
    chance_F: Floats
    queries_F: NDArray[np.int64]
    texts_F: NDArray[np.int64]

    @cached_property
    def functions(self) -> list[str]:
        """The functions that some text can show."""
        return [name for name in self.metrics.functions if self.texts_F[self._place(name)]]

    @cached_property
    def rare(self) -> list[str]:
        """The functions that few queries can show."""
        every = self.queries_F[self._place("entropy")]
        return [name for name in self.functions if self.queries_F[self._place(name)] < RARE * every]

    def function(self, layer: int, head: int) -> str | None:
        """The function that names a head, layer and head from 0; ``None``: no single one.

        Of the functions that are not rare the one with the largest excess over chance, if that is above
        :data:`EXCESS` beyond its interval.
        """
        sure = [name for name in self.functions if name not in self.rare and self._is_sure(layer, head, name)]
        excess_F = self.mean_LHF[layer, head] - self.chance_F
        return max(sure, key=lambda name: excess_F[self._place(name)], default=None)

    def rare_functions(self, layer: int, head: int) -> list[str]:
        """The same of functions that few queries can show: those that hold where there is such a key.

        For the antecedent the head must also give it more than its rival, beyond both intervals.
        """
        return [name for name in self.functions if name in self.rare and self._is_sure(layer, head, name)]

    def label(self, layer: int, head: int) -> str:
        """Both in words."""
        name, rare = self.function(layer, head), self.rare_functions(layer, head)
        where = [f"{' and '.join(map(self.metrics.title, rare))} where there is one"] if rare else []
        return "; ".join([*([self.metrics.title(name)] if name else []), *where]) or NONE

    def _is_sure(self, layer: int, head: int, name: str) -> bool:
        place = self._place(name)
        if self.texts_F[place] < FEWEST or not self.excess_low_LHF[layer, head, place] > EXCESS:
            return False
        if name != "antecedent" or not self.texts_F[rival := self._place("rival")]:
            return True
        return bool(self.low_LHF[layer, head, place] > self.high_LHF[layer, head, rival])

    def _place(self, name: str) -> int:
        return self.metrics.names.index(name)


def head_statistics(
    texts: Sequence[Mapping[Kind, HeadCounts]], seed: int = SEED, metrics: HeadMetrics = OF_TEXTS
) -> dict[Kind, HeadStatistics]:
    """The statistics of every kind of attention; queries count alike, and texts or images are resampled.

    Args:
        texts: what each text or image adds; at least one.
        seed: of the bootstrap.
        metrics: what was counted.
    """
    return {kind: _statistics(metrics, [one[kind] for one in texts], seed) for kind in texts[0]}


def _statistics(metrics: HeadMetrics, texts: Sequence[HeadCounts], seed: int) -> HeadStatistics:
    sum_NLHF = np.stack([one.sum_LHF for one in texts])
    chance_NF, queries_NF = (np.stack([getattr(one, name) for one in texts]) for name in ("chance_F", "queries_F"))
    number, layers, heads, names = sum_NLHF.shape
    drawn_RN = np.random.default_rng(seed).multinomial(number, np.full(number, 1 / number), SAMPLES).astype(np.float64)
    chance_RF = _ratio(drawn_RN @ chance_NF, drawn_RN @ queries_NF)
    ends = np.empty((4, layers * heads, names))
    sum_NIF = sum_NLHF.reshape(number, layers * heads, names)
    step = max(1, _ROOM // (SAMPLES * names))
    for begin in range(0, layers * heads, step):
        part = sum_NIF[:, begin : begin + step]
        drawn = (drawn_RN @ part.reshape(number, -1)).reshape(SAMPLES, -1, names)
        mean = _ratio(drawn, (drawn_RN @ queries_NF)[:, None])
        ends[:2, begin : begin + step] = _interval(mean)
        ends[2:, begin : begin + step] = _interval(mean - chance_RF[:, None])
    queries_F = queries_NF.sum(0)
    mean_LHF, chance_F = (_ratio(sums.sum(0), queries_F) for sums in (sum_NLHF, chance_NF))
    low, high, excess_low, excess_high = ends.reshape(4, layers, heads, names)
    counted = queries_F.astype(np.int64), (queries_NF > 0).sum(0)
    return HeadStatistics(metrics, mean_LHF, low, high, excess_low, excess_high, chance_F, *counted)


def _ratio(value: Floats, count: Floats) -> Floats:
    """NaN where there is nothing to divide by."""
    found: Floats = np.divide(
        value, count, out=np.full(np.broadcast_shapes(value.shape, count.shape), np.nan), where=count > 0
    )
    return found


def _interval(value_R: Floats) -> Floats:
    """Both ends of the interval over samples; samples without a single query are left out."""
    tail = (1 - CONFIDENCE) / 2
    if not np.isnan(value_R).any():
        return np.quantile(value_R, (tail, 1 - tail), axis=0)
    there = ~np.isnan(value_R).all(0)
    found: Floats = np.full((2, *value_R.shape[1:]), np.nan)
    found[:, there] = np.nanquantile(value_R[:, there], (tail, 1 - tail), axis=0)
    return found
