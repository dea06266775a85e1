"""Answers about a stack of layers: its positional encodings, and token vectors layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from regard.explore.folders.facts import positions_of
from regard.explore.folders.models import Models, refuse_replaced_weights
from regard.explore.forward.passes import inputs_of
from regard.explore.forward.positions import position_views
from regard.explore.forward.vector_space import LayerPaths, Stack, layer_paths
from regard.explore.payload import Answer
from regard.explore.questions.look import token_values
from regard.explore.requests import AblationRequest, Fields, Request, check_list, check_whole, model_reference
from regard.system.errors import UsageError

STACKS: tuple[Stack, ...] = ("encoder", "decoder")
PLACES = 512
SCENES = 2
"""Most inputs followed at once."""


def places_of(models: Models, given: Fields) -> Answer:
    """Position vectors, their similarity, and the biases that positions add to scores."""
    task = models.load(*model_reference(given)).task
    stack, count = given.word("stack", STACKS), given.whole("count", 1, PLACES, 64)
    given.end()
    section = task.recipe.model
    found = position_views(task.model, section, stack, count)
    arrays = {"vector": found.vector_TD, "likeness": found.likeness_TT, "by_distance": found.likeness_by_distance}
    if found.bias_HX is not None:
        arrays["bias"] = found.bias_HX
    floats = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
    return {"kind": positions_of(section)}, floats


def drift_of(models: Models, given: Fields) -> Answer:
    """The paths of the tokens of one or two texts from layer to layer, on a common plane."""
    number, snapshot, weights = model_reference(given)
    stack = _stack(given)
    without = AblationRequest.from_fields(given.inner("changes"))
    wanted = given.items("scenes", SCENES) or []
    pair = given.items("pair", 2)
    given.end()
    if not wanted:
        raise UsageError("expected one or two texts", "scenes")
    asked = [_request(one, number, snapshot, without) for one in wanted]
    loaded = models.load(number, snapshot, weights)
    for one in asked:
        refuse_replaced_weights(one.weights, loaded.weights)
    with without.changes.apply(loaded.task.recipe.model):
        scenes = [inputs_of(models, loaded, one) for one in asked]
        found = layer_paths(scenes, stack)
    sides = [seen.source if stack == "encoder" else seen.target for seen in scenes]
    values: dict[str, Any] = {
        "tokens": [token_values(side) for side in sides],
        "share": found.plane.share,
        "alike": None if pair is None else _alike(found, pair),
    }
    return values, {f"path.{one}": path.astype(np.float32) for one, path in enumerate(found.paths)}


def _stack(given: Fields) -> Stack:
    word = given.word("stack", STACKS)
    return "encoder" if word == "encoder" else "decoder"


def _request(given: Any, number: int, snapshot: str | None, without: AblationRequest) -> Request:
    """A request for a text or an image, for the model shared by all."""
    from dataclasses import replace

    fields = Fields(given, "scenes")
    found = Request.from_fields(fields)
    fields.end()
    return replace(found, model=number, snapshot=snapshot, without=without)


def _alike(found: LayerPaths, pair: list[Any]) -> list[float]:
    """The cosine of two tokens in each layer."""
    if len(pair) != 2:
        raise UsageError("expected two tokens, each as text index and token index", "pair")
    first, second = (_place(one, found) for one in pair)
    return found.layer_cosines(first, second)


def _place(given: Any, found: LayerPaths) -> tuple[int, int]:
    one = check_list(given, "pair", 2)
    if len(one) != 2:
        raise UsageError("a token is named by its text and its place", "pair")
    scene = check_whole(one[0], 0, len(found.vectors) - 1, "pair")
    return scene, check_whole(one[1], 0, found.vectors[scene].shape[1] - 1, "pair")
