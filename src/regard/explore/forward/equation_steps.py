"""One head's attention step by step: scores, scaling, bias, softmax, values [Vaswani17 §3.2.1, eq. 1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.explore.forward.inputs import ModelInputs

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EquationSteps:
    """``softmax(Q Kᵀ / divisor + bias) V`` of one head, with every intermediate value of the model's own pass.

    Args:
        query_LK, key_MK, value_MU: what is compared, and what is mixed.
        score_LM: ``query · key``; of additive attention ``vᵀ tanh(query + key)``.
        divisor: of the scores, √d_k or 1.
        bias_LM: what positions add; zeros where they add nothing.
        hidden_LM: which keys a query must not see.
        weight_LM: the softmax; a row sums to one.
        context_LU: the values, mixed by the weights.
    """

    query_LK: Floats
    key_MK: Floats
    value_MU: Floats
    score_LM: Floats
    divisor: float
    bias_LM: Floats
    hidden_LM: NDArray[np.bool_]
    weight_LM: Floats
    context_LU: Floats


def equation(seen: ModelInputs, kind: str, layer: int, head: int) -> EquationSteps:
    """The equation of a head, counted from 1, from one forward pass.

    Raises:
        UsageError: there is no such head.
    """
    from regard.models.ablation import Head, refuse_missing
    from regard.models.captured_attention import inside

    section = seen.task.recipe.model
    refuse_missing(section, Head(kind, layer, head))
    found = inside(seen.task.model, section.family, seen.run, kind, layer - 1)

    def one(point: str) -> Any:
        return found[point][head - 1].double().cpu().numpy()

    score_LM = one("score")
    bias_LM = one("bias") if "bias" in found else np.zeros_like(score_LM)
    hidden_LM = found["mask"].cpu().numpy() if "mask" in found else np.zeros(score_LM.shape, np.bool_)
    parts = (one("query"), one("key"), one("value"), score_LM, section.divisor, bias_LM, hidden_LM)
    return EquationSteps(*parts, one("weight"), one("context"))
