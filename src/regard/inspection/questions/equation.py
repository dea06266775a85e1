"""The attention equation of one head in numbers, step by step, also without scaling or without the mask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.inspection.folders.models import Models
from regard.inspection.forward.inputs import ModelInputs
from regard.inspection.forward.passes import inputs_of
from regard.inspection.forward.record import Kind
from regard.inspection.requests import Answer, Number, Place, Request, question
from regard.system.errors import UsageError

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

    def one(point: str) -> Floats:
        return found[point][head - 1].double().cpu().numpy()

    score_LM = one("score")
    bias_LM = one("bias") if "bias" in found else np.zeros_like(score_LM)
    hidden_LM = found["mask"].cpu().numpy() if "mask" in found else np.zeros(score_LM.shape, np.bool_)
    parts = (one("query"), one("key"), one("value"), score_LM, section.divisor_of(kind), bias_LM, hidden_LM)
    return EquationSteps(*parts, one("weight"), one("context"))


@question
def equation_of(
    models: Models, asked: Request, kind: Kind, layer: Number = 1, head: Number = 1, query: Place = 0
) -> Answer:
    """The attention equation of one query."""
    loaded = models.load_for(asked)
    section = loaded.task.recipe.model
    seen = inputs_of(models, loaded, asked)
    with asked.changes.ablations.apply(section):
        found = equation(seen, kind, layer, head)
    if query >= len(found.query_LK):
        raise UsageError(f"there is no query {query}; they count from 0 to {len(found.query_LK) - 1}", "query")
    score_M, divisor = found.score_LM[query], found.divisor
    if not asked.changes.scaling:  # what the layer has not divided by is in its scores
        score_M, divisor = score_M / divisor, 1.0
    bias_M, hidden_M = found.bias_LM[query], found.hidden_LM[query]
    scaled_M = score_M / divisor + bias_M
    values = {"divisor": divisor, "additive": kind == "pool" or getattr(section, "score", None) == "additive"}
    arrays = {
        "query": found.query_LK[query],
        "key": found.key_MK,
        "value": found.value_MU,
        "score": score_M,
        "bias": bias_M,
        "scaled": scaled_M,
        "weight": found.weight_LM[query],
        "context": found.context_LU[query],
        "unscaled": softmax(np.where(hidden_M, -np.inf, score_M + bias_M)),
        "unmasked": softmax(scaled_M),
    }
    floats = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
    return values, {**floats, "hidden": hidden_M.astype(np.uint8)}


def softmax(score_M: Floats) -> Floats:
    """The softmax of scores."""
    grown_M = np.exp(score_M - score_M.max())
    return np.asarray(grown_M / grown_M.sum())
