"""The residual stream of a stack: what each sub-layer adds to it, and what the model would predict after each layer.

What is added is measured as its length beside that of the stream that it is added to, and by the cosine of both
[Elhage21; Kobayashi21]. The prediction after a layer is the logit lens: the stream through the stack's last norm and
the output [Nostalgebraist20]. Layers in the middle were never trained to predict, so an early guess says what can be
read off there, not what the model believes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.config.families import Recurrent
from regard.inspection.folders.models import Models
from regard.inspection.forward.inputs import ModelInputs, piece
from regard.inspection.forward.outputs import PIECE_SCORES
from regard.inspection.forward.passes import inputs_of
from regard.inspection.forward.text_windows import fit_request
from regard.inspection.requests import Answer, Request, check_finite, question
from regard.system.errors import UsageError
from regard.tasks.kinds import reads_text

if TYPE_CHECKING:
    from torch import Tensor

SUB_LAYERS = ("attention", "cross", "feedforward")
"""In their order within a layer."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SubLayer:
    """What one sub-layer did to the stream.

    Args:
        layer: counted from 1.
        part: of :data:`SUB_LAYERS`.
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
    import torch

    from regard.models.captured_attention import evaluating
    from regard.nn import hooks

    model = seen.task.model
    entered: list[Tensor] = []
    watch = getattr(model, stack).input.register_forward_hook(lambda part, given, made: entered.append(made))
    try:
        with (
            torch.inference_mode(),
            evaluating(model),
            hooks.capture([f"{stack}.*.output", f"{stack}.*.residual"]) as found,
        ):
            seen.run()
    finally:
        watch.remove()
    (stream_TD,) = entered
    made = []
    for layer in range(len(getattr(model, stack).layers)):
        for part in SUB_LAYERS:
            name = f"{stack}.{layer}.{part}"
            if f"{name}.output" in found:
                (added_TD,), (after_TD,) = found[f"{name}.output"], found[f"{name}_residual.residual"]
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

    loaded = models.load_for(asked)
    section = loaded.task.recipe.model
    if isinstance(section, Recurrent):
        raise UsageError("a recurrent model has no residual stream", "model")
    there = tuple(dict.fromkeys(section.info.stacks.values()))
    stack = stack or there[-1]
    if stack not in there:
        raise UsageError(f"this model has no {stack[:20]!r}; it has {' and '.join(there)}", "stack")
    asked = fit_request(models, loaded, asked).asked
    seen = inputs_of(models, loaded, asked)
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
    tokens = seen.source if stack == section.info.stacks["source"] else seen.target
    values: dict[str, object] = {
        "stack": stack,
        "stacks": list(there),
        "norm_place": section.norm_place,
        "tokens": [token.text for token in tokens],
        "parts": [[one.layer, one.part] for one in found],
        "lens": None,
    }
    if stack == there[-1] and loaded.task.info.writes in PIECE_SCORES:
        lens, more = _lens(seen, [one.after_TD for one in found if one.part == "feedforward"], stack)
        values["lens"], arrays = lens, arrays | more
    return values, {name: array.astype(np.float32) for name, array in arrays.items()}


def _lens(seen: ModelInputs, streams: list[Tensor], stack: str) -> tuple[list[list[str]], dict[str, Floats]]:
    """The most probable piece after each layer at each place; its probability, and that and the rank of the last's."""
    import torch

    from regard.models.captured_attention import evaluating

    task = seen.task
    assert reads_text(task)
    score, final = PIECE_SCORES[task.info.writes], getattr(task.model, stack).final
    with torch.inference_mode(), evaluating(task.model):
        best, own, rank, names = [], [], [], []
        said_T = None
        for stream_TD in reversed(streams):
            probability_TV = score(task.model, final(stream_TD)).double().softmax(1)
            high_T, ids_T = probability_TV.max(1)
            said_T = ids_T if said_T is None else said_T
            said_T1 = probability_TV.gather(1, said_T[:, None])
            best.append(high_T.cpu().numpy())
            own.append(said_T1[:, 0].cpu().numpy())
            rank.append((probability_TV > said_T1).sum(1).cpu().numpy() + 1.0)
            names.append([piece(task.target_tokenizer, id) for id in ids_T.tolist()])
    return names[::-1], {"best": np.stack(best[::-1]), "own": np.stack(own[::-1]), "rank": np.stack(rank[::-1])}
