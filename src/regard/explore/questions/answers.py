"""Answers to the page's requests, by endpoint name; independent of HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import regard
from regard.explore.folders.models import Models
from regard.explore.folders.runs import is_running
from regard.explore.forward.passes import IMAGES
from regard.explore.payload import Answer, pack
from regard.explore.questions import ablation, attribution, embeddings, equation, export, layers, look, search
from regard.explore.requests import Fields, check_whole, format_value, model_reference
from regard.system.errors import UsageError

POINTS = 10_000
"""Most points of a training's curves."""
PICTURES = 256
"""Most images per request."""


def images(models: Models, given: Fields) -> Answer:
    """Images to explore a model with."""
    asked = model_reference(given)
    begin, count = given.whole("begin", 0, 10**9, 0), given.whole("count", 1, PICTURES, 24)
    given.end()
    task = models.load(*asked).task
    if task.name != IMAGES:
        raise UsageError("this model reads texts", "model")
    found = models.gallery.batch(task, begin, count)
    pixels = np.rint(np.clip(found.pixels / task.cut.scale.largest, 0, 1) * 255).astype(np.uint8)
    return {"labels": list(found.labels), "total": found.total}, {"pixels": pixels}


ANSWERS: Mapping[str, Callable[[Models, Fields], Answer]] = {
    "look": look.look,
    "head": look.head,
    "row": look.row,
    "equation": equation.equation_of,
    "tree": search.tree_of,
    "places": layers.places_of,
    "drift": layers.drift_of,
    "near": embeddings.nearest_pieces,
    "map": embeddings.embedding_map,
    "vectors": embeddings.vectors,
    "owes": attribution.input_attribution,
    "needs": ablation.head_ablation,
    "images": images,
}
"""Answer functions by endpoint name."""


def answer(models: Models, name: str, asked: Any) -> bytes:
    """Answer a request.

    Args:
        models: the explored models.
        name: a key of :data:`ANSWERS`.
        asked: the request body, of any type.

    Returns:
        What :func:`~regard.explore.payload.pack` makes; ``weights`` is the name of those that answered.

    Raises:
        WeightsReplaced: the requested weights no longer exist.
        RegardError: it cannot be answered; the message says why.
    """
    if name not in ANSWERS:
        raise UsageError(f"there is no endpoint {format_value(name)}; there are {', '.join(ANSWERS)}")
    weights, given = pin_weights(models, asked)
    values, arrays = ANSWERS[name](models, given)
    return pack({**values, "weights": weights}, arrays)


def pin_weights(models: Models, asked: Any) -> tuple[str, Fields]:
    """Pin a request to the current weights: their name, and the request's fields with that name.

    Every question comes through here, and none ends with a field that it has not read: so all of an answer is of the
    same weights, whatever a training writes meanwhile, and of those that the question names where it names some.

    Raises:
        WeightsReplaced: the requested weights no longer exist.
        RegardError: it is no question, or there are no weights.
    """
    weights = models.load(*model_reference(Fields(asked))).weights
    return weights, Fields({**asked, "weights": weights})


def state(models: Models) -> dict[str, Any]:
    """The state of all models; no weights are loaded."""
    return {"version": regard.__version__, "models": models.states()}


def stream_tokens(models: Models, asked: Any) -> Iterator[dict[str, Any]]:
    """Stream each token as it is decoded, then the whole text and the name of the weights.

    Raises:
        WeightsReplaced: the requested weights no longer exist.
        RegardError: the model cannot generate this; raised before the first token.
    """
    return search.stream_tokens(models, pin_weights(models, asked)[1])


def export_file(models: Models, asked: Any) -> tuple[bytes, str, str]:
    """An exported file: content, media type and name.

    Raises:
        WeightsReplaced: the requested weights no longer exist.
        RegardError: it cannot be made.
    """
    return export.export_file(models, pin_weights(models, asked)[1])


def course(models: Models, number: int, points: int) -> bytes:
    """The metrics of a training, from its log.

    Args:
        models: the explored models.
        number: of the model.
        points: of each curve at most.

    Raises:
        RegardError: there is no such model, or no log beside it.
    """
    points = check_whole(points, 1, POINTS, "points")
    folder, followed = models.folder(check_whole(number, 0, 10**6, "model")), models.courses[number]
    followed.advance()
    values, arrays = followed.summary(points)
    return pack({**values, "running": is_running(folder.path)}, arrays)
