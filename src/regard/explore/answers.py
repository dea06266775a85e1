"""What a page asks and what it is answered; this knows no HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import regard
from regard.errors import UsageError
from regard.explore import embeddings, equations, exports, looks, needing, owing, stacks, writing
from regard.explore.asked import Fields, a_whole, told, which
from regard.explore.models import Models
from regard.explore.passes import IMAGES
from regard.explore.payload import Answer, packed
from regard.explore.runs import running

POINTS = 10_000
"""Of a training's course at most."""
PICTURES = 256
"""Images that are shown at once."""


def images(models: Models, given: Fields) -> Answer:
    """Images that may be put before a model."""
    asked = which(given)
    begin, count = given.whole("begin", 0, 10**9, 0), given.whole("count", 1, PICTURES, 24)
    given.end()
    task = models.loaded(*asked).task
    if task.name != IMAGES:
        raise UsageError("this model reads texts", "model")
    found = models.gallery.some(task, begin, count)
    pixels = np.rint(np.clip(found.pixels / task.cut.scale.largest, 0, 1) * 255).astype(np.uint8)
    return {"labels": list(found.labels), "total": found.total}, {"pixels": pixels}


ANSWERS: Mapping[str, Callable[[Models, Fields], Answer]] = {
    "look": looks.look,
    "head": looks.head,
    "row": looks.row,
    "equation": equations.equation_of,
    "tree": writing.tree_of,
    "places": stacks.places_of,
    "drift": stacks.drift_of,
    "near": embeddings.near,
    "map": embeddings.map_of,
    "vectors": embeddings.vectors,
    "owes": owing.owes,
    "needs": needing.needs,
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
        What :func:`~regard.explore.payload.packed` makes; ``weights`` is the name of those that answered.

    Raises:
        Replaced: the question names weights that are there no more.
        RegardError: it cannot be answered; the sentence says why.
    """
    if name not in ANSWERS:
        raise UsageError(f"there is no question {told(name)}; there are {', '.join(ANSWERS)}")
    weights, given = named(models, asked)
    values, arrays = ANSWERS[name](models, given)
    return packed({**values, "weights": weights}, arrays)


def named(models: Models, asked: Any) -> tuple[str, Fields]:
    """The name of the weights that answer a question, and the question with that name in it.

    Every question comes through here, and none ends with a field that it has not read: so all of an answer is of the
    same weights, whatever a training writes meanwhile, and of those that the question names where it names some.

    Raises:
        Replaced: the question names weights that are there no more.
        RegardError: it is no question, or there are no weights.
    """
    weights = models.loaded(*which(Fields(asked))).weights
    return weights, Fields({**asked, "weights": weights})


def state(models: Models) -> dict[str, Any]:
    """What there is to look at; no weights are loaded."""
    return {"version": regard.__version__, "models": models.states()}


def written(models: Models, asked: Any) -> Iterator[dict[str, Any]]:
    """Each token as it is decided, then the whole text, and the name of the weights that wrote it.

    Raises:
        Replaced: the question names weights that are there no more.
        RegardError: the model does not write, or not this; said before the first token.
    """
    return writing.written(models, named(models, asked)[1])


def exported(models: Models, asked: Any) -> tuple[bytes, str, str]:
    """A file to keep: its content, its media type, and its name.

    Raises:
        Replaced: the question names weights that are there no more.
        RegardError: it cannot be made.
    """
    return exports.exported(models, named(models, asked)[1])


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
    values, arrays = followed.told(points)
    return packed({**values, "running": running(folder.path)}, arrays)
