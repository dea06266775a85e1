"""What the layers compute in one pass: the attention equation of a head, and what each sub-layer adds to the stream.

The equation is in numbers, step by step, also without scaling or without the mask. What a sub-layer adds is measured as
its length beside that of the stream that it is added to, and by the cosine of both [Elhage21; Kobayashi21]. The
prediction after a layer is the logit lens: the stream through the stack's last norm and the output [Nostalgebraist20].
Layers in the middle were never trained to predict, so an early guess says what can be read off there, not what the
model believes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.config.families import Recurrent
from regard.inspection.folders.models import Models
from regard.inspection.forward.boxes import SUB_LAYERS, run
from regard.inspection.forward.outputs import PIECES, piece_scores
from regard.inspection.forward.passes import inputs_of
from regard.inspection.forward.record import Kind, ModelInputs, piece
from regard.inspection.requests import Answer, Number, Place, Request, check_finite, question
from regard.system.errors import UsageError
from regard.tasks.kinds import reads_text

if TYPE_CHECKING:
    from torch import Tensor

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
    seen = inputs_of(models, asked)
    section = seen.task.recipe.model
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


@dataclass(frozen=True)
class SubLayer:
    """What one sub-layer did to the stream.

    Args:
        layer: counted from 1.
        part: of :data:`~regard.inspection.forward.boxes.SUB_LAYERS`.
        before_TD: the stream that it read, ``added_TD``: its output.
        after_TD: the stream behind it; of post-norm the normalised sum.
    """

    layer: int
    part: str
    before_TD: Tensor
    added_TD: Tensor
    after_TD: Tensor


def sub_layers(seen: ModelInputs, stack: str) -> list[SubLayer]:
    """The sub-layers of a stack in one pass, first to last.

    Args:
        seen: a scene of a model without recurrence.
        stack: ``encoder`` or ``decoder``.
    """
    layers = getattr(seen.task.model, stack)
    _, found = run(seen, {"input": layers.input}, [f"{stack}.*.output", f"{stack}.*.residual"])
    made, stream_TD = [], found["input"].leaving()
    for layer in range(len(layers.layers)):
        for part in SUB_LAYERS:
            name = f"{stack}.{layer}.{part}"
            if f"{name}.output" in found:
                added_TD, after_TD = found[f"{name}.output"], found[f"{name}_residual.residual"]
                made.append(SubLayer(layer + 1, part, stream_TD, added_TD, after_TD))
                stream_TD = after_TD
    return made


@question
def layers_of(models: Models, asked: Request, stack: str = "") -> Answer:
    """What each sub-layer of a stack adds, and the predictions after each layer where the stack predicts pieces.

    Args:
        models: the explored models; ``asked``: the input.
        stack: ``encoder`` or ``decoder``; default: the one whose output is predicted from.

    Raises:
        UsageError: the model is recurrent, or has no such stack.
        RegardError: it computes NaN or infinite values.
    """
    from torch.nn.functional import cosine_similarity

    section = models.load_for(asked).task.recipe.model
    if isinstance(section, Recurrent):
        raise UsageError("a recurrent model has no residual stream", "model")
    there = tuple(dict.fromkeys(section.info.stacks.values()))
    stack = stack or there[-1]
    if stack not in there:
        raise UsageError(f"this model has no {stack[:20]!r}; it has {' and '.join(there)}", "stack")
    seen = inputs_of(models, asked)
    with asked.changes.ablations.apply(section):
        found = sub_layers(seen, stack)
    lengths, cosines = [], []
    for one in found:
        added_TD, before_TD = one.added_TD.double(), one.before_TD.double()
        length_T = added_TD.norm(dim=1) / before_TD.norm(dim=1).clamp(min=1e-30)
        lengths.append(length_T.cpu().numpy())
        cosines.append(cosine_similarity(added_TD, before_TD, dim=1).cpu().numpy())
    arrays = {"length": np.stack(lengths), "cosine": np.stack(cosines)}
    check_finite(*arrays.values())
    values: dict[str, object] = {
        "stack": stack,
        "stacks": list(there),
        "norm_place": section.norm_place,
        "tokens": [token.text for token in seen.tokens(stack)],
        "parts": [[one.layer, one.part] for one in found],
        "lens": None,
    }
    if stack == there[-1] and seen.task.info.writes in PIECES:
        lens, more = _lens(seen, [one.after_TD for one in found if one.part == "feedforward"], stack)
        values["lens"], arrays = lens, arrays | more
    return values, {name: array.astype(np.float32) for name, array in arrays.items()}


def _lens(seen: ModelInputs, streams: list[Tensor], stack: str) -> tuple[list[list[str]], dict[str, Floats]]:
    """The most probable piece after each layer at each place; its probability, and that and the rank of the last's."""
    import torch

    from regard.models.captured_attention import evaluating

    task = seen.task
    assert reads_text(task)
    final = getattr(task.model, stack).final
    with torch.inference_mode(), evaluating(task.model):
        best, own, rank, names = [], [], [], []
        said_T = None
        for stream_TD in reversed(streams):
            probability_TV = piece_scores(task, final(stream_TD)).double().softmax(1)
            high_T, ids_T = probability_TV.max(1)
            said_T = ids_T if said_T is None else said_T
            said_T1 = probability_TV.gather(1, said_T[:, None])
            best.append(high_T.cpu().numpy())
            own.append(said_T1[:, 0].cpu().numpy())
            rank.append((probability_TV > said_T1).sum(1).cpu().numpy() + 1.0)
            names.append([piece(task.target_tokenizer, id) for id in ids_T.tolist()])
    return names[::-1], {"best": np.stack(best[::-1]), "own": np.stack(own[::-1]), "rank": np.stack(rank[::-1])}
