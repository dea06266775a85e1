"""What a page asks and what it is answered; this knows no HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

import regard
from regard.errors import UsageError
from regard.explore import embeddings, equations, exports, looks, owing, stacks, writing
from regard.explore.asked import Fields, a_whole, told, which
from regard.explore.models import Models
from regard.explore.passes import IMAGES
from regard.explore.payload import packed
from regard.explore.runs import running

POINTS = 10_000
"""Of a training's course at most."""
VALIDATIONS = 40
"""Whose sample outputs are given, evenly chosen, the first and the last among them."""
PICTURES = 256
"""Images that are shown at once."""


def images(models: Models, given: Fields) -> bytes:
    """Images that may be put before a model."""
    number, snapshot = which(given)
    begin, count = given.whole("begin", 0, 10**9, 0), given.whole("count", 1, PICTURES, 24)
    given.end()
    task = models.loaded(number, snapshot).task
    if task.name != IMAGES:
        raise UsageError("this model reads texts", "model")
    found = models.gallery.some(task, begin, count)
    pixels = np.rint(np.clip(found.pixels / task.cut.scale.largest, 0, 1) * 255).astype(np.uint8)
    return packed({"labels": list(found.labels), "total": found.total}, {"pixels": pixels})


ANSWERS: Mapping[str, Callable[[Models, Fields], bytes]] = {
    "look": looks.look,
    "head": looks.head,
    "equation": equations.equation_of,
    "tree": writing.tree_of,
    "places": stacks.places_of,
    "drift": stacks.drift_of,
    "near": embeddings.near,
    "map": embeddings.map_of,
    "vectors": embeddings.vectors,
    "owes": owing.owes,
    "images": images,
}
"""By the name of the question."""


def answer(models: Models, name: str, asked: Any) -> bytes:
    """The answer to a question.

    Args:
        models: that may be asked.
        name: a key of :data:`ANSWERS`.
        asked: what came with it, of any type.

    Returns:
        What :func:`~regard.explore.payload.packed` makes.

    Raises:
        RegardError: it cannot be answered; the sentence says why.
    """
    if name not in ANSWERS:
        raise UsageError(f"there is no question {told(name)}; there are {', '.join(ANSWERS)}")
    return ANSWERS[name](models, Fields(asked))


def state(models: Models) -> dict[str, Any]:
    """What there is to look at; no weights are loaded."""
    return {"version": regard.__version__, "models": models.states()}


def written(models: Models, asked: Any) -> Iterator[dict[str, Any]]:
    """Each token as it is decided, then the whole text.

    Raises:
        RegardError: the model does not write, or not this; said before the first token.
    """
    return writing.written(models, Fields(asked))


def exported(models: Models, asked: Any) -> tuple[bytes, str, str]:
    """A file to keep: its content, its media type, and its name.

    Raises:
        RegardError: it cannot be made.
    """
    return exports.exported(models, Fields(asked))


def course(models: Models, number: int, points: int) -> bytes:
    """How a training goes, or went, as far as its log says.

    Args:
        models: that may be asked.
        number: of the model.
        points: of each curve at most.

    Raises:
        RegardError: there is no such model, or no log beside it.
    """
    points = a_whole(points, 1, POINTS, "points")
    folder, followed = models.folder(a_whole(number, 0, 10**6, "model")), models.courses[number]
    followed.advance()
    names = list(dict.fromkeys(name for one in followed.norms for name in one["norms"]))
    table = [[_finite(one["norms"].get(name)) for name in names] for one in followed.norms]
    values = {
        "planned": followed.planned,
        "running": running(folder.path),
        "valid": followed.valid,
        "samples": _some(followed.samples),
        "norms": {"steps": [one["step"] for one in followed.norms], "names": names},
    }
    arrays = {name: array.astype(np.float32) for name, array in followed.thinned(points).items()}
    norms = np.array(table, np.float32).reshape(len(table), len(names))
    return packed(values, {**arrays, "norms": norms})


def _some(samples: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sample outputs of some validations."""
    found = list(samples)
    steps = list(dict.fromkeys(one["step"] for one in found))
    places = np.linspace(0, len(steps) - 1, min(len(steps), VALIDATIONS)).round().astype(int)
    chosen = {steps[place] for place in places}
    return [one for one in found if one["step"] in chosen]


def _finite(value: Any) -> float:
    return float("nan") if value is None else float(value)
