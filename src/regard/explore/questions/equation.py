"""The attention equation of one query in numbers, also without scaling or without the mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.explore.folders.models import Models
from regard.explore.forward.equation_steps import EquationSteps, equation
from regard.explore.forward.passes import ablated_inputs
from regard.explore.kinds import KINDS
from regard.explore.payload import Answer
from regard.explore.requests import Fields, Request
from regard.system.errors import UsageError

Floats = NDArray[np.float64]


def equation_of(models: Models, given: Fields) -> Answer:
    """The attention equation of one query."""
    asked, kind = Request.from_fields(given), given.word("kind", KINDS)
    layer, head = given.whole("layer", 1, 65536, 1), given.whole("head", 1, 65536, 1)
    query = given.whole("query", 0, 1 << 20, 0)
    given.end()
    loaded = models.load_for(asked)
    section = loaded.task.recipe.model
    with ablated_inputs(models, loaded, asked) as seen:
        found = equation(seen, kind, layer, head)
    if query >= len(found.query_LK):
        raise UsageError(f"there is no query {query}; they count from 0 to {len(found.query_LK) - 1}", "query")
    # Without scaling, multiply the score by the divisor it will be divided by.
    score_LM = found.score_LM if asked.without.scaling else found.score_LM / section.divisor
    divisor = found.divisor if asked.without.scaling else 1.0
    values = {"divisor": divisor, "additive": kind == "pool" or getattr(section, "score", None) == "additive"}
    arrays = steps(found, score_LM[query], divisor, query)
    floats = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
    return values, {**floats, "hidden": found.hidden_LM[query].astype(np.uint8)}


def steps(found: EquationSteps, score_M: Floats, divisor: float, query: int) -> dict[str, NDArray[Any]]:
    """The attention equation of one query, step by step.

    Args:
        found: of all queries.
        score_M: before it is divided.
        divisor: of the scores.
        query: which one, counted from 0.
    """
    bias_M, hidden_M = found.bias_LM[query], found.hidden_LM[query]
    scaled_M = score_M / divisor + bias_M
    return {
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


def softmax(score_M: Floats) -> Floats:
    """The softmax of scores."""
    grown_M = np.exp(score_M - score_M.max())
    found: Floats = grown_M / grown_M.sum()
    return found
