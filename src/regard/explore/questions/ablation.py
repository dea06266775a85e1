"""Head ablation: how a score changes when each attention head is switched off in turn."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from regard.explore.folders.models import Models
from regard.explore.forward.inputs import ModelInputs
from regard.explore.forward.passes import inputs_of
from regard.explore.kinds import KINDS, Kind
from regard.explore.payload import Answer, check_finite
from regard.explore.questions.attribution import Score, distinct_places, explained_score, is_number
from regard.explore.questions.look import ROWS
from regard.explore.requests import AblationRequest, Fields, Request, check_whole
from regard.system.errors import UsageError

SECONDS = 2.0
"""Seconds after which a partial answer is returned: other requests wait, and the client may have left."""
Heads = Sequence[tuple[Kind, int, int]]


def head_ablation(models: Models, given: Fields) -> Answer:
    """Head ablation: the score explained by ``attribution``, without each head from ``begin`` on, as time allows.

    What is written stays what it is with all heads, and other changes are kept. Of several places the scores are
    summed: of consecutive pieces, the log-probability of all of them; of gaps,
    which are filled each by itself, that of all as they are meant. A tag is one score, however many its tokens are.

    Raises:
        RegardError: the model computes NaN or infinite values.
    """
    asked = Request.from_fields(given)
    places = [check_whole(place, 0, 1 << 20, "places") for place in given.items("places", ROWS) or ()]
    label, begin = given.text("label", None), given.whole("begin", 0, 1 << 20, 0)
    given.end()
    loaded = models.load_for(asked)
    section = loaded.task.recipe.model
    with asked.without.changes.apply(section):
        seen = inputs_of(models, loaded, asked)
    scores = [explained_score(seen, place, label) for place in distinct_places(seen, places)] or [
        explained_score(seen, None, label)
    ]
    heads = every_head(section.attention)
    if begin > len(heads):
        raise UsageError(f"there are {len(heads)} heads", "begin")
    whole, *rest = values_in_time(scores_without(seen, asked.without, scores, heads[begin:]), SECONDS)
    check_finite(np.array([whole, *rest]))
    values = {
        "score": whole,
        "logarithm": not is_number(loaded.task),
        "heads": heads[begin : begin + len(rest)],
        "total": len(heads),
    }
    return values, {"without": np.array(rest, np.float32)}


def every_head(attention: dict[str, tuple[int, int]]) -> Heads:
    """Kind, layer and number of every head, counted from 1."""
    return [(kind, layer + 1, head + 1) for kind in KINDS for layer, head in np.ndindex(*attention.get(kind, (0, 0)))]


def scores_without(
    seen: ModelInputs, without: AblationRequest, scores: Sequence[Score], heads: Heads
) -> Iterator[float]:
    """The sum of scores with all heads, then without each given head, computed lazily, one pass each."""
    yield _score(seen, without, scores)
    for head in heads:
        yield _score(seen, replace(without, off=(*without.off, head)), scores)


def values_in_time(values: Iterator[float], seconds: float) -> list[float]:
    """The first two values, and more until time is up."""
    end = time.monotonic() + seconds
    found = list(islice(values, 2))
    while time.monotonic() < end and (more := list(islice(values, 1))):
        found += more
    return found


def _score(seen: ModelInputs, without: AblationRequest, scores: Sequence[Score]) -> float:
    import torch

    from regard.models.captured_attention import evaluating

    task = seen.task
    with torch.inference_mode(), evaluating(task.model), without.changes.apply(task.recipe.model):
        hidden_TD = seen.run()
        return sum(float(score(hidden_TD)) for score in scores)
