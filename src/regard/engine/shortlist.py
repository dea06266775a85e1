"""Where every sentence of a search has output pieces of its own: the output that computes no others, and its answers.

Scores are those of these pieces alone, as if there were no others: a sentence's result does not depend on those beside
it. With many sentences side by side each still reads rows of its own, so it is with few that this is much faster.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.config import Decoding
from regard.decoding.sampling import sample
from regard.engine.answer import FastAnswer, Output
from regard.engine.layers import Floats, Ids, Ints, Scores
from regard.system.kernels.packing import Packer


class ShortlistOutput(Output):
    """Some rows of the output; its tokens are those of the whole.

    Args:
        ids: of the rows, in order.
        whole: rows of the output.
    """

    def __init__(self, weight_VD: Floats, pack: Packer, bias_V: Floats | None, ids: Ids, whole: int) -> None:
        super().__init__(weight_VD, pack, bias_V)
        self.ids, self.whole = ids, whole

    def best(self, hidden_ND: Floats, k: int, without: Sequence[int]) -> tuple[Ids, Scores, Scores]:
        """As :meth:`Output.best`."""
        place_Nk, log_probability_Nk, log_sum_N = super().best(hidden_ND, k, without)
        return self.ids[place_Nk], log_probability_Nk, log_sum_N

    def argmax(self, hidden_ND: Floats, without: Sequence[int]) -> Ints:
        """As :meth:`Output.argmax`."""
        place_N = super().argmax(hidden_ND, without)
        return np.where(place_N < 0, -1, self.ids[place_N]).astype(np.int32)

    def scores(self, hidden_ND: Floats) -> Floats:
        """As :meth:`Output.scores`; minus infinity for what is no part."""
        score_NV = np.full((len(hidden_ND), self.whole), -np.inf, np.float32)
        score_NV[:, self.ids] = super().scores(hidden_ND)
        return score_NV

    def search_arguments(self, without: Sequence[int]) -> dict[str, object]:
        """As :meth:`Output.search_arguments`."""
        return {**super().search_arguments(without), "names": self.ids.astype(np.int32)}

    def _places(self, tokens: Sequence[int]) -> NDArray[np.bool_]:
        return np.isin(self.ids, tokens)


class Answers:
    """The distributions of the rows of several sentences, one after another (``decoding.step.Answer``)."""

    def __init__(self, answers: Sequence[FastAnswer], whole: FastAnswer) -> None:
        self._answers, self._whole = answers, whole

    def best(self, k: int, without: Sequence[int] = ()) -> tuple[Ids, Scores]:
        """Minus infinity where a sentence has fewer pieces."""
        found = [answer.best(k, without) for answer in self._answers]
        wide = max(ids.shape[1] for ids, _ in found)
        filled = [((0, 0), (0, wide - ids.shape[1])) for ids, _ in found]
        ids = [np.pad(one, width) for (one, _), width in zip(found, filled, strict=True)]
        scores = [np.pad(one, w, constant_values=-np.inf) for (_, one), w in zip(found, filled, strict=True)]
        return np.concatenate(ids), np.concatenate(scores)

    def most_probable(self, without: Sequence[int] = ()) -> Ids:
        """As each has it."""
        return np.concatenate([answer.most_probable(without) for answer in self._answers])

    def of(self, tokens_N: Ids) -> Scores:
        """As each has it."""
        return self.all()[np.arange(len(tokens_N)), tokens_N]

    def sample(
        self,
        uniform_N: Scores,
        decoding: Decoding,
        without: Sequence[int] = (),
        seen_NS: Ids | None = None,
        banned_NF: Ids | None = None,
    ) -> Ids:
        """As each has it."""
        return sample(self.all().astype(np.float32), uniform_N, decoding, without, seen_NS, banned_NF)

    def all(self) -> Scores:
        """As each has it."""
        return np.concatenate([answer.all() for answer in self._answers])

    def context(self) -> Scores | None:
        """As :meth:`FastAnswer.context`."""
        return self._whole.context()
