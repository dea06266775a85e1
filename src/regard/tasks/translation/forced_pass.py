"""What a model says of a pair that it was given: one pass of torch, which hands out its attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regard.models.captured_attention import capture_layers, pass_over
from regard.tasks.text.task import inference_mode
from regard.tasks.translation.guard import ForcedPass

if TYPE_CHECKING:
    from torch import Tensor

    from regard.tasks.protocols import TargetWriter


@inference_mode
def forced_pass(task: TargetWriter, source: str, output: str) -> tuple[str, str, ForcedPass | None]:
    """Source and output as the tokenizers have them, and what a translator says of the pair.

    Pairs are read one by one, so that none depends on the others.

    Returns:
        Nothing of the model where there is no source, or a text is longer than it reads at once.
    """
    (source, read), (output, written) = task.reads(source), task.reads_target(output)
    most = task.recipe.data.max_tokens
    if not source.strip() or len(read) > most + 1 or len(written) > most + task.recipe.decoding.max_extra:
        return source, output, None
    ids, model, skip = [id for id, _, _ in written], task.model, len(task.symbols.prefix)
    run = pass_over(model, [[id for id, _, _ in read]], [[task.symbols.start, *ids]])
    hidden: list[Tensor] = []
    found = capture_layers(model, task.recipe.model.family, lambda: hidden.append(run()), [len(ids) + 1])
    heads = [weight_HTS for [weight_HTS] in found.get("cross", [])]
    coverage_S = np.full(len(read), np.nan)
    if heads:
        coverage_S = np.mean([weight_HTS.double().mean(0).sum(0).cpu().numpy() for weight_HTS in heads], axis=0)
    log_probability_TV = model.scores(hidden[0]).double().log_softmax(1).cpu().numpy()[skip:]
    own_T = log_probability_TV[np.arange(len(log_probability_TV)), [*ids[skip:], task.symbols.end]]
    source_places, output_places = ([(begin, end) for _, begin, end in one] for one in (read, written[skip:]))
    return source, output, ForcedPass(source_places, output_places, coverage_S, own_T[:-1], float(own_T.mean()))
