"""Answers to the page's requests, by endpoint name; independent of HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, TypeVar, get_type_hints

from pydantic import Field

from regard.inspection.folders.folder import is_running
from regard.inspection.folders.models import Models
from regard.inspection.folders.walk import measurements
from regard.inspection.forward.passes import shown_pixels
from regard.inspection.questions import attribution, export, figure, heads, layers, look, search, vectors
from regard.inspection.requests import Answer, Count, ModelRequest, Whole, pack, question, split_fields
from regard.runs.demo import NAME
from regard.system import VERSION
from regard.system.errors import RegardError, UsageError
from regard.tasks.kinds import reads_image

POINTS = 10_000
"""Most points of a training's curves."""
PICTURES = 256
"""Most images per request."""

T = TypeVar("T")


@question
def images(
    models: Models,
    asked: ModelRequest,
    begin: Annotated[Whole, Field(le=10**9)] = 0,
    count: Annotated[Count, Field(le=PICTURES)] = 24,
) -> Answer:
    """Images to explore a model with."""
    task = models.load_for(asked).task
    if not reads_image(task):
        raise UsageError("this model reads texts", "model")
    found = models.gallery.batch(task, begin, count)
    return {"labels": list(found.labels), "total": found.total}, {"pixels": shown_pixels(task, found.pixels)}


@question
def without(models: Models, asked: ModelRequest) -> Answer:
    """What a demonstration's model does without an idea of the paper: the values of every idea measured so far.

    Raises:
        UsageError: nothing was measured beside this model.
        RegardError: the file is damaged.
    """
    from regard.runs.demo.without import read

    path = measurements(models.folder(asked.model).path)
    try:
        found = path and read(path)
    except RegardError as error:
        raise RegardError(f"{NAME} beside this model {error.message}; rerun regard demo --without", str(path)) from None
    if not found:
        raise UsageError("nothing was measured beside this model; rerun regard demo with --without IDEA", "model")
    return found.to_dict(), {}


ANSWERS: Mapping[str, Callable[..., Answer]] = {
    "look": look.look,
    "head": look.head,
    "row": look.row,
    "equation": layers.equation_of,
    "tree": search.tree_of,
    "places": vectors.places_of,
    "drift": vectors.drift_of,
    "near": vectors.nearest_pieces,
    "map": vectors.embedding_map,
    "vectors": vectors.vectors,
    "owes": attribution.input_attribution,
    "needs": attribution.head_ablation,
    "heads": heads.heads,
    "images": images,
    "layers": layers.layers_of,
    "figure": figure.figure_of,
    "box": figure.box_of,
    "distribution": search.distribution,
    "without": without,
}
"""Answer functions by endpoint name."""


def answer(models: Models, name: str, asked: object) -> bytes:
    """Answer a request.

    Args:
        models: the explored models.
        name: a key of :data:`ANSWERS`.
        asked: the request body, of any type.

    Returns:
        What :func:`~regard.inspection.requests.pack` makes; ``weights`` is the name of those that answered.

    Raises:
        WeightsReplaced: the requested weights no longer exist.
        RegardError: it cannot be answered; the message says why.
    """
    if name not in ANSWERS:
        raise UsageError(f"there is no endpoint {name[:40]!r}; there are {', '.join(ANSWERS)}")
    weights, (values, arrays) = _ask(models, ANSWERS[name], asked)
    return pack({**values, "weights": weights}, arrays)


def _ask(models: Models, function: Callable[..., T], asked: object) -> tuple[str, T]:
    """The name of the current weights, and what a question's function makes of an object's fields.

    Every question comes through here: so all of an answer is of the same weights, whatever a training writes meanwhile,
    and of those that the question names where it names some.
    """
    request, others = split_fields(get_type_hints(function)["asked"], asked)
    weights = models.load_for(request).weights
    return weights, function(models, replace(request, weights=weights), **others)


def state(models: Models) -> dict[str, object]:
    """The state of all models; no weights are loaded."""
    return {"version": VERSION, "models": models.states()}


def stream_tokens(models: Models, asked: object) -> Iterator[dict[str, object]]:
    """Stream each token as it is decoded, then the whole text and the name of the weights.

    Raises:
        WeightsReplaced: the requested weights no longer exist.
        RegardError: the model cannot generate this; raised before the first token.
    """
    return _ask(models, search.stream_tokens, asked)[1]


def export_file(models: Models, asked: object) -> tuple[bytes, str, str]:
    """An exported file: content, media type and name.

    Raises:
        WeightsReplaced: the requested weights no longer exist.
        RegardError: it cannot be made.
    """
    return _ask(models, export.export_file, asked)[1]


@question
def course(models: Models, model: Whole, points: Annotated[Count, Field(le=POINTS)]) -> bytes:
    """The metrics of a training, from its log.

    Args:
        models: the explored models.
        model: its number.
        points: of each curve at most.

    Raises:
        RegardError: there is no such model, or no log beside it.
    """
    folder, followed = models.folder(model), models.courses[model]
    followed.advance()
    values, arrays = followed.summary(points)
    return pack({**values, "running": is_running(folder.path)}, arrays)
