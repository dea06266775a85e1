"""Figure 1 of the loaded model: its boxes, a token's vector behind each of them, and the numbers inside one.

Nothing is computed beside the model: every number entered or left a part of it in one pass, or is a row of its weights.
What is added up here (the part of each head, of each unit, of each candidate) sums to what left that part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.config.families import Recurrent
from regard.inspection.folders.facts import positions_of
from regard.inspection.folders.models import Models
from regard.inspection.forward.boxes import SUB_LAYERS, Box, CapturedOutputs, Key, boxes_of, parameter_counts, run
from regard.inspection.forward.outputs import PIECES, piece_scores
from regard.inspection.forward.passes import inputs_of
from regard.inspection.forward.record import ModelInputs, piece
from regard.inspection.requests import Answer, Code, Place, Request, Whole, check_finite, question
from regard.system.errors import UsageError
from regard.tasks.kinds import reads_text

if TYPE_CHECKING:
    from torch import Tensor

Arrays = dict[str, NDArray[np.floating]]
Told = tuple[dict[str, Any], Arrays]
"""What is told of a box: values, and arrays."""
Stack = Literal["encoder", "decoder", ""]
MOST = 8
"""Units of a feed-forward and candidates of an output that are shown, the largest."""
SIZES = (
    "d_ff",
    "heads",
    "decoder_heads",
    "norm",
    "norm_place",
    "activation",
    "cell",
    "score",
    "two_way",
    "pool",
    "without",
)
"""Fields of a section that the figure names, where it has them."""


@question
def figure_of(models: Models, asked: Request, source_place: Place = 0, target_place: Place = 0) -> Answer:
    """The boxes from the bottom up, and the vector behind each of one token that is read and of one that is written.

    Args:
        models: the explored models; ``asked``: the input.
        source_place: of the token in what an encoder reads; ``target_place``: in what a decoder reads.

    Returns:
        ``boxes`` as stack, layer, part, parameters and whether another box counts them; arrays by a box's number.
    """
    seen = inputs_of(models, asked)
    section = seen.task.recipe.model
    boxes = boxes_of(seen.task.model, section.info.stacks)
    modules = {str(number): box.module for number, box in enumerate(boxes) if not box.point}
    with asked.changes.ablations.apply(section):
        _, found = run(seen, modules, [box.point for box in boxes if box.point])
    chosen = {"encoder": source_place, "decoder": target_place}
    arrays: Arrays = {}
    for number, box in enumerate(boxes):
        value, tokens = found.get(box.point or str(number)), seen.tokens(box.key[0])
        vector_TD = value.leaving() if isinstance(value, CapturedOutputs) else value
        if vector_TD is not None and box.key[0] and len(vector_TD) == len(tokens):
            arrays[str(number)] = _numbers(vector_TD[min(chosen[box.key[0]], len(tokens) - 1)])
    check_finite(*arrays.values())
    told = zip(boxes, parameter_counts(boxes), strict=True)
    return {
        "boxes": [[*box.key, parameters, shared] for box, (parameters, shared) in told],
        "sizes": {name: getattr(section, name) for name in SIZES if getattr(section, name, None) is not None},
        "positions": {stack: positions_of(section, stack) for stack in section.info.stacks.values()},
    }, arrays


def _numbers(tensor: Tensor) -> NDArray[np.float32]:
    return tensor.float().cpu().numpy()


@question
def box_of(
    models: Models, asked: Request, stack: Stack = "", layer: Whole = 0, part: Code = "output", token: Place = 0
) -> Answer:
    """The numbers of one box, at one token: what enters, what is done to it, and what leaves.

    Args:
        models: the explored models; ``asked``: the input.
        stack, layer, part: as :func:`figure_of` names a box.
        token: a place in the stack, of the output in what is written.

    Raises:
        UsageError: there is no such box or token.
        RegardError: it computes NaN or infinite values.
    """
    task = models.load_for(asked).task
    section = task.recipe.model
    boxes = {box.key: box for box in boxes_of(task.model, section.info.stacks)}
    if (stack, layer, part) not in boxes:
        raise UsageError(f"this model has no such box: {stack} {layer} {part[:20]}", "part")
    seen = inputs_of(models, asked)
    if token >= len(seen.tokens(stack or tuple(section.info.stacks.values())[-1])):
        raise UsageError(f"there is no token {token}", "token")
    with asked.changes.ablations.apply(section):
        values, arrays = _kind_of(part, section)(seen, boxes, (stack, layer, part), token)
    check_finite(*arrays.values())
    return values, {name: np.asarray(array, np.float32) for name, array in arrays.items()}


Inside = Callable[[ModelInputs, dict[Key, Box], Key, int], Told]


def _kind_of(part: str, section: Any) -> Inside:
    if part.endswith("_norm") or part == "final":
        return _norm
    if part.endswith("_add"):
        return _add
    inside = {**INSIDE, "recurrence": _states, "cross": _alignment} if isinstance(section, Recurrent) else INSIDE
    return inside.get(part, _through)


def _embedding(seen: ModelInputs, boxes: dict[Key, Box], key: Key, token: int) -> Told:
    """The row of the table, times a factor, plus the position."""
    table, entering = boxes[key[0], 0, "embedding"], f"{key[0]}.input"
    _, found = run(seen, {"row": table.module}, [f"{entering}.embedding", f"{entering}.positions"])
    scaled, summed = (_numbers(found[f"{entering}.{point}"][token]) for point in ("embedding", "positions"))
    arrays = {"row": _numbers(found["row"].leaving()[token]), "scaled": scaled}
    scale = getattr(seen.task.model.get_submodule(entering), "scale", 1.0)
    return {"scale": scale}, {**arrays, "position": summed - scaled, "output": summed}


def _norm(seen: ModelInputs, boxes: dict[Key, Box], key: Key, token: int) -> Told:
    """Mean and deviation, what is left without them, and what gain and bias make of it; of post-norm also the sum."""
    module = boxes[key].module
    norm: Any = getattr(module, "norm", module)
    before = (key[0], key[1], key[2].removesuffix("_norm"))
    replaces = getattr(seen.task.recipe.model, "without", None) == "residual"  # what a sub-layer gives is the stream
    posts = before[2] in SUB_LAYERS and (*key[:2], f"{before[2]}_add") not in boxes and not replaces
    modules = {"norm": norm, "out": module, **({"part": boxes[before].module} if posts else {})}
    _, found = run(seen, modules, [])
    x_TD = found["norm"].entering()
    mean_TX, deviation_TX = (x.double() for x in norm.moments(x_TD.double()))
    at = min(token, len(mean_TX) - 1)
    mean, deviation = mean_TX[at].cpu().numpy(), deviation_TX[at].cpu().numpy()
    x = _numbers(x_TD[token])
    arrays = {"input": x, "mean": mean, "deviation": deviation, "normalised": (x - mean) / deviation}
    arrays |= {"gain": _numbers(norm.weight), "output": _numbers(found["out"].leaving()[token])}
    if getattr(norm, "bias", None) is not None:
        arrays["bias"] = _numbers(norm.bias)
    if posts:
        arrays |= {
            "before": _numbers(found["part"].entering()[token]),
            "added": _numbers(found["part"].leaving()[token]),
        }
    return {"norm": type(norm).__name__, "factor": getattr(module, "factor", 1.0)}, arrays


def _add(seen: ModelInputs, boxes: dict[Key, Box], key: Key, token: int) -> Told:
    """The stream, what the sub-layer adds to it, and their sum."""
    stack, layer, part = key[0], key[1], key[2].removesuffix("_add")
    box = boxes[stack, layer, part]
    norm = boxes.get((stack, layer, f"{part}_norm"), box)
    _, found = run(seen, {"norm": norm.module, "part": box.module}, [boxes[key].point])
    parts = found["norm"].entering(), found["part"].leaving(), found[boxes[key].point]
    return {}, dict(zip(("before", "added", "output"), (_numbers(x[token]) for x in parts), strict=True))


def _attention(seen: ModelInputs, boxes: dict[Key, Box], key: Key, token: int) -> Told:
    """What the projections read, the contexts of all heads side by side, and what each head adds through W^O."""
    module: Any = boxes[key].module
    _, found = run(seen, {"all": module, "output": module.output}, [])
    given, joined = found["all"], found["output"].entering()[token].double()
    parts_HUD = module.output.weight.double().T.unflatten(0, (module.heads, -1))
    head_HD = (joined.unflatten(0, (module.heads, -1))[:, :, None] * parts_HUD).sum(1)
    arrays = {
        "input": _numbers(given.entering()[token]),
        "read": _numbers(given.entering(1)),
        "context": _numbers(joined),
        "head": head_HD.cpu().numpy(),
        "output": _numbers(given.leaving()[token]),
    }
    return {"heads": module.heads}, arrays


def _feed_forward(seen: ModelInputs, boxes: dict[Key, Box], key: Key, token: int) -> Told:
    """The units before and behind the activation, and what the largest of them add."""
    module: Any = boxes[key].module
    _, found = run(seen, {"all": module, "activation": module.activation, "outer": module.outer}, [])
    fired_F = found["outer"].entering()[token].double()
    weight_DF = module.outer.weight.double()
    length_F = fired_F.abs() * weight_DF.norm(dim=0)
    ids_R = length_F.argsort(descending=True, stable=True)[:MOST]
    arrays = {
        "input": _numbers(found["all"].entering()[token]),
        "inner": _numbers(found["activation"].entering()[token]),
        "fired": _numbers(fired_F),
        "length": length_F.cpu().numpy(),
        "unit": (fired_F[ids_R] * weight_DF[:, ids_R]).T.cpu().numpy(),
        "output": _numbers(found["all"].leaving()[token]),
    }
    gated = found["activation"].leaving()[token].double() if hasattr(module, "gate") else fired_F
    return {"units": ids_R.tolist(), "firing": int((gated > 0).sum()), "gated": hasattr(module, "gate")}, arrays


def _states(seen: ModelInputs, boxes: dict[Key, Box], key: Key, token: int) -> Told:
    """The hidden vector of a recurrent layer at every step; what entered, where it reads a text at once."""
    box = boxes[key]
    _, found = run(seen, {"layer": box.module}, [box.point])
    states = _numbers(found[box.point])
    arrays: Arrays = {"state": states, "output": states[min(token, len(states) - 1)]}
    return {}, {**arrays, "input": _numbers(found["layer"].entering())} if "layer" in found else arrays


def _alignment(seen: ModelInputs, boxes: dict[Key, Box], key: Key, token: int) -> Told:
    """The decoder's state, the context of every step, and tanh(W_c [c; h] + b), which is said."""
    module: Any = boxes[key].module
    _, found = run(seen, {"all": module, "joined": module.output}, [])
    state_TD, output_TD = found["all"].entering(), found["all"].leaving()
    contexts = _numbers(found["joined"].entering()[:, : -state_TD.shape[1]])
    arrays = {"state": _numbers(state_TD[token]), "context": contexts[token], "contexts": contexts}
    return {}, {**arrays, "output": _numbers(output_TD[token])}


def _through(seen: ModelInputs, boxes: dict[Key, Box], key: Key, token: int) -> Told:
    """What enters and what leaves, where no more is told of a box."""
    _, found = run(seen, {"all": boxes[key].module}, [])
    entered, left = found["all"].entering(), found["all"].leaving()
    at = min(token, len(left) - 1)
    return {}, {"input": _numbers(entered[at]), "output": _numbers(left[at])}


def _output(seen: ModelInputs, boxes: dict[Key, Box], key: Key, token: int) -> Told:
    """The vector that is compared with every row of the table, and the rows that score highest."""
    task = seen.task
    assert reads_text(task)
    model: Any = task.model
    head = getattr(model, "head", None)
    hidden_TD, found = run(seen, {} if head is None else {"head": head}, [])
    score_V = piece_scores(task, hidden_TD)[token].double()
    x_D = hidden_TD[token] if head is None else found["head"].leaving()[token]
    bias_V = getattr(model, "output_bias", None) if head is None else head.bias
    table: Any = model.output if head is None else head.output
    return _rank(score_V, x_D, table.weight, bias_V, lambda id: piece(task.target_tokenizer, id))


def _head(seen: ModelInputs, boxes: dict[Key, Box], key: Key, token: int) -> Told:
    """The same of classes: of a text, an image or a token; of a head without classes the text's vector."""
    if seen.task.info.writes in PIECES:
        return _output(seen, boxes, key, token)
    head: Any = boxes[key].module
    if not hasattr(head, "classes"):
        return _through(seen, boxes, key, 0)
    _, found = run(seen, {"classes": head.classes}, [])
    score_TC = found["classes"].leaving()
    at = min(token, len(score_TC) - 1)
    assets: Any = seen.task.assets
    x_D = found["classes"].entering()[at]
    return _rank(score_TC[at].double(), x_D, head.classes.weight, head.classes.bias, assets.labels.__getitem__)


def _rank(score_V: Tensor, x_D: Tensor, weight_VD: Tensor, bias_V: Tensor | None, name: Callable[[int], str]) -> Told:
    """The highest scores with their rows and biases; of the others together the sum of e^(score - highest)."""
    ids_R = score_V.argsort(descending=True, stable=True)[:MOST]
    power_V = (score_V - score_V.max()).exp()
    bias_R = score_V.new_zeros(len(ids_R)) if bias_V is None else bias_V[ids_R].double()
    values = {
        "names": [name(id) for id in ids_R.tolist()],
        "count": len(score_V),
        "sum": float(power_V.sum()),
    }
    arrays = {
        "input": _numbers(x_D),
        "row": _numbers(weight_VD[ids_R]),
        "bias": bias_R.cpu().numpy(),
        "score": score_V[ids_R].cpu().numpy(),
        "probability": (power_V / power_V.sum())[ids_R].cpu().numpy(),
    }
    return values, arrays


INSIDE: dict[str, Inside] = {
    "embedding": _embedding,
    "positions": _embedding,
    "attention": _attention,
    "cross": _attention,
    "feedforward": _feed_forward,
    "output": _output,
    "head": _head,
}
"""What is told of a box by its part."""
