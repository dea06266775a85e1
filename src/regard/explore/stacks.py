"""A stack of layers: what it knows of places, and how vectors move through it."""

from __future__ import annotations

from typing import Any

import numpy as np

from regard.errors import UsageError
from regard.explore.asked import Asked, Fields, Without, a_list, a_whole, which
from regard.explore.drift import Drift, Stack, drift
from regard.explore.facts import positions_of
from regard.explore.looks import tokens_told
from regard.explore.models import Models, refuse_others
from regard.explore.passes import scene_of
from regard.explore.payload import Answer
from regard.explore.places import places

STACKS: tuple[Stack, ...] = ("encoder", "decoder")
PLACES = 512
SCENES = 2
"""Sentences whose tokens are followed at once."""


def places_of(models: Models, given: Fields) -> Answer:
    """The vectors that positions add, how alike they are, and what positions add to scores."""
    task = models.loaded(*which(given)).task
    stack, count = given.word("stack", STACKS), given.whole("count", 1, PLACES, 64)
    given.end()
    section = task.recipe.model
    found = places(task.model, section, stack, count)
    arrays = {"vector": found.vector_TD, "likeness": found.likeness_TT, "by_distance": found.likeness_by_distance}
    if found.bias_HX is not None:
        arrays["bias"] = found.bias_HX
    floats = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
    return {"kind": positions_of(section)}, floats


def drift_of(models: Models, given: Fields) -> Answer:
    """The paths of the tokens of one text or two, from layer to layer, on one plane."""
    number, snapshot, weights = which(given)
    stack = _stack(given)
    without = Without.read(given.inner("changes"))
    wanted = given.items("scenes", SCENES) or []
    pair = given.items("pair", 2)
    given.end()
    if not wanted:
        raise UsageError("one text or two are wanted", "scenes")
    asked = [_asked(one, number, snapshot, without) for one in wanted]
    loaded = models.loaded(number, snapshot, weights)
    for one in asked:
        refuse_others(one.weights, loaded.weights)
    with without.changes.made(loaded.task.recipe.model):
        scenes = [scene_of(models, loaded, one) for one in asked]
        found = drift(scenes, stack)
    sides = [seen.source if stack == "encoder" else seen.target for seen in scenes]
    values: dict[str, Any] = {
        "tokens": [tokens_told(side) for side in sides],
        "share": found.plane.share,
        "alike": None if pair is None else _alike(found, pair),
    }
    return values, {f"path.{one}": path.astype(np.float32) for one, path in enumerate(found.paths)}


def _stack(given: Fields) -> Stack:
    word = given.word("stack", STACKS)
    return "encoder" if word == "encoder" else "decoder"


def _asked(given: Any, number: int, snapshot: str | None, without: Without) -> Asked:
    """A text, or an image, before the model that all of them share."""
    from dataclasses import replace

    fields = Fields(given, "scenes")
    found = Asked.read(fields)
    fields.end()
    return replace(found, model=number, snapshot=snapshot, without=without)


def _alike(found: Drift, pair: list[Any]) -> list[float]:
    """The cosine of two tokens in each layer."""
    if len(pair) != 2:
        raise UsageError("two tokens are wanted, each by its text and its place", "pair")
    first, second = (_place(one, found) for one in pair)
    return found.alike(first, second)


def _place(given: Any, found: Drift) -> tuple[int, int]:
    one = a_list(given, "pair", 2)
    if len(one) != 2:
        raise UsageError("a token is named by its text and its place", "pair")
    scene = a_whole(one[0], 0, len(found.vectors) - 1, "pair")
    return scene, a_whole(one[1], 0, found.vectors[scene].shape[1] - 1, "pair")
