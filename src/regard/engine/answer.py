"""Next-token scores of a step, computed when they are asked for (a ``decoding.step.Answer``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from regard.config import Decoding
from regard.decoding.sampling import sample
from regard.engine.layers import Floats, Ids, Ints, Linear, Scores
from regard.system.kernels import _native
from regard.system.kernels.packing import FP32, Packer


class Output:
    """The pre-softmax projection onto every piece [Vaswani17 §3.4].

    In fp32 it is there in int8, too, for screening (``native/kernels/argmax.cpp``).
    """

    def __init__(self, weight_VD: Floats, pack: Packer = FP32, bias_V: Floats | None = None) -> None:
        self.pieces = len(weight_VD)
        self._weight_VD, self._bias_V = weight_VD, bias_V  # mostly views of the file
        self.project = Linear([weight_VD], [bias_V], pack=pack)
        self._screen = pack([weight_VD], [bias_V], "int8") if pack.precision == "fp32" else self.project.packed
        self._masks: dict[tuple[int, ...], NDArray[np.uint8]] = {}

    def best(self, hidden_ND: Floats, k: int, without: Sequence[int]) -> tuple[Ids, Scores, Scores]:
        """Ids and log-probabilities of the k best of each row, those ``without`` left out; ``log Σ exp(score)``."""
        rows, k = len(hidden_ND), min(k, self.pieces)
        ids_Nk, score_Nk, log_sum_N = np.empty((rows, k), np.int32), np.empty((rows, k), np.float32), np.empty(rows)
        packed, mask_V = self.project.packed, self._mask(tuple(without))
        _native.vocabulary(hidden_ND, packed, self.pieces, mask_V, ids_Nk, score_Nk, log_sum_N)
        return np.maximum(ids_Nk, 0).astype(np.int64), score_Nk - log_sum_N[:, None], log_sum_N

    def argmax(self, hidden_ND: Floats, without: Sequence[int]) -> Ints:
        """The id of the largest score of each row; -1 where there is none, or one that was computed is not finite."""
        id_N = np.empty(len(hidden_ND), np.int32)
        mask_V = self._mask(tuple(without))
        _native.argmax(hidden_ND, self._screen, self.project.packed, self.pieces, mask_V, id_N)
        return id_N

    def scores_of(self, hidden_MD: Floats, token_M: Ids) -> Floats:
        """The score of one token for each row, in fp32 whatever the precision; a row does not depend on the others."""
        score_M = np.einsum("md,md->m", hidden_MD, self._weight_VD[token_M], dtype=np.float64)
        return (score_M if self._bias_V is None else score_M + self._bias_V[token_M]).astype(np.float32)

    def scores(self, hidden_ND: Floats) -> Floats:
        """Every score, ``score_NV``."""
        return self.project.rows(hidden_ND)

    def search_arguments(self, without: Sequence[int]) -> dict[str, object]:
        """What a search in native code needs of it."""
        matrices = {"screen": self._screen, "exact": self.project.packed}
        return {**matrices, "pieces": self.pieces, "without": self._mask(tuple(without))}

    def _mask(self, without: tuple[int, ...]) -> NDArray[np.uint8] | None:
        if not without:
            return None
        if without not in self._masks:
            self._masks[without] = self._places(without).astype(np.uint8)
        return self._masks[without]

    def _places(self, tokens: Sequence[int]) -> NDArray[np.bool_]:
        """Which rows are those of tokens."""
        place_V = np.zeros(self.pieces, np.bool_)
        place_V[list(tokens)] = True
        return place_V


class FastAnswer:
    """The distribution over the next token of every row."""

    def __init__(self, hidden_ND: Floats, output: Output, weight_NHS: Floats | None = None) -> None:
        self.hidden_ND = hidden_ND
        self._output, self._weight_NHS = output, weight_NHS
        self._log_sum_N: Scores | None = None

    def best(self, k: int, without: Sequence[int] = ()) -> tuple[Ids, Scores]:
        """The k most probable tokens of each row, best first, ties to the smaller id."""
        ids_Nk, log_probability_Nk, self._log_sum_N = self._output.best(self.hidden_ND, k, without)
        return ids_Nk, log_probability_Nk

    def most_probable(self, without: Sequence[int] = ()) -> Ids:
        """The most probable token of each row, ties to the smaller id; -1 where none is left, or a score is none."""
        return self._output.argmax(self.hidden_ND, without).astype(np.int64)

    def of(self, tokens_N: Ids) -> Scores:
        """The log-probability of one given token per row."""
        return self._score_NV[np.arange(len(tokens_N)), tokens_N] - _log_sum(self._score_NV)

    def of_several(self, tokens_NF: Ids) -> Scores:
        """The log-probabilities of a few given tokens per row; minus infinity for -1.

        Only these are computed, in fp32; in other precisions :meth:`best` differs by its rounding.
        """
        if self._log_sum_N is None:
            _, _, self._log_sum_N = self._output.best(self.hidden_ND, 1, ())
        row_M, place_M = np.nonzero(tokens_NF >= 0)
        found_NF = np.full(tokens_NF.shape, -np.inf)
        score_M = self._output.scores_of(self.hidden_ND[row_M], tokens_NF[row_M, place_M])
        found_NF[row_M, place_M] = score_M - self._log_sum_N[row_M]
        return found_NF

    def sample(
        self,
        uniform_N: Scores,
        decoding: Decoding,
        without: Sequence[int] = (),
        seen_NS: Ids | None = None,
        banned_NF: Ids | None = None,
    ) -> Ids:
        """One token per row: where the running sum of the probabilities that ``decoding`` leaves passes ``uniform``."""
        return sample(self._score_NV, uniform_N, decoding, without, seen_NS, banned_NF)

    def all(self) -> Scores:
        """Every log-probability, ``log_probability_NV``."""
        return self._score_NV - _log_sum(self._score_NV)[:, None]

    def rows(self, row_M: Ids) -> FastAnswer:
        """That of some rows alone."""
        return FastAnswer(self.hidden_ND[row_M], self._output)

    def context(self) -> Scores | None:
        """Cross-attention weights of this step, ``weight_NHS``, if asked for."""
        return None if self._weight_NHS is None else self._weight_NHS.astype(np.float64)

    @cached_property
    def _score_NV(self) -> Floats:
        return self._output.scores(self.hidden_ND)


def _log_sum(score_NV: Floats) -> Scores:
    highest_N = score_NV.max(1)
    total_N = np.exp(score_NV - highest_N[:, None]).sum(1, dtype=np.float64)
    return highest_N + np.log(total_N)
