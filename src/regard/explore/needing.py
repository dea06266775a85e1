"""What a piece that was written, a label, or a word's tag needs: every head switched off in turn, and what is left."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from regard.errors import UsageError
from regard.explore.asked import Asked, Fields, Without, a_whole
from regard.explore.kinds import KINDS, Kind
from regard.explore.looks import ROWS
from regard.explore.models import Models
from regard.explore.owing import Score, apart, is_number, scored
from regard.explore.passes import scene_of
from regard.explore.payload import Answer, refuse_no_numbers
from regard.explore.scene import Scene

SECONDS = 2.0
"""After which an answer is given, though heads are left: others wait for their turn, and whoever asked may leave."""
Heads = Sequence[tuple[Kind, int, int]]


def needs(models: Models, given: Fields) -> Answer:
    """The score that :mod:`~regard.explore.owing` explains, without each head from ``begin`` on, as time allows.

    What is written stays what it is with all heads, and other changes are kept. Of several places the scores are
    summed: of pieces that are written one behind the other, the logarithm of the probability of all of them; of gaps,
    which are filled each by itself, that of all as they are meant. A tag is one score, however many its tokens are.

    Raises:
        RegardError: what the model computes are no numbers.
    """
    asked = Asked.read(given)
    places = [a_whole(place, 0, 1 << 20, "places") for place in given.items("places", ROWS) or ()]
    label, begin = given.text("label", None), given.whole("begin", 0, 1 << 20, 0)
    given.end()
    loaded = models.asked(asked)
    section = loaded.task.recipe.model
    with asked.without.changes.made(section):
        seen = scene_of(models, loaded, asked)
    scores = [scored(seen, place, label) for place in apart(seen, places)] or [scored(seen, None, label)]
    heads = every_head(section.attention)
    if begin > len(heads):
        raise UsageError(f"there are {len(heads)} heads", "begin")
    whole, *rest = within(scores_without(seen, asked.without, scores, heads[begin:]), SECONDS)
    refuse_no_numbers(np.array([whole, *rest]))
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


def scores_without(seen: Scene, without: Without, scores: Sequence[Score], heads: Heads) -> Iterator[float]:
    """The sum of some scores with all heads, then without each of some, a pass each, as they are asked for."""
    yield _score(seen, without, scores)
    for head in heads:
        yield _score(seen, replace(without, off=(*without.off, head)), scores)


def within(values: Iterator[float], seconds: float) -> list[float]:
    """The first two values, and more while there is time."""
    end = time.monotonic() + seconds
    found = list(islice(values, 2))
    while time.monotonic() < end and (more := list(islice(values, 1))):
        found += more
    return found


def _score(seen: Scene, without: Without, scores: Sequence[Score]) -> float:
    import torch

    from regard.models.reading import evaluating

    task = seen.task
    with torch.inference_mode(), evaluating(task.model), without.changes.made(task.recipe.model):
        hidden_TD = seen.run()
        return sum(float(score(hidden_TD)) for score in scores)
