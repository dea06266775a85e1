"""A model folder → a ready task: ``recipe.toml``, ``model.safetensors``, assets, ``card.md``, one manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from regard.config import Recipe, recipe_from, recipe_values
from regard.errors import RegardError, UsageError
from regard.models.store import fits, read
from regard.nn import ops
from regard.tasks.classification import Classification
from regard.tasks.image_classification import ImageClassification
from regard.tasks.language_model import LanguageModel
from regard.tasks.masked_lm import MaskedLm
from regard.tasks.model_folder import RECIPE as RECIPE
from regard.tasks.model_folder import model_folder
from regard.tasks.span_corruption import SpanCorruption
from regard.tasks.tagging import Tagging
from regard.tasks.teaching import Assets
from regard.tasks.text_encoding import Encoding
from regard.tasks.translation import Translation
from regard.training.manifest import verify

MODEL = "model.safetensors"


TASKS: dict[str, type[Any]] = {
    task.name: task
    for task in (
        *(Translation, Classification, ImageClassification, Tagging),
        *(LanguageModel, MaskedLm, SpanCorruption, Encoding),
    )
}
"""The word ``task`` of a recipe to its class."""


def load(folder: Path | str, device: str | None = None) -> Any:
    """The task a model folder was made for, ready to use; the folder's manifest is verified first.

    Args:
        folder: what ``regard train`` wrote, or ``regard demo``.
        device: ``cpu``, ``cuda``, ``cuda:1`` …; default: a GPU if there is one.

    Raises:
        RegardError: it is no model folder, or a file of it is damaged.
    """
    folder = model_folder(folder)
    _refuse_others(folder)
    if not (folder / MODEL).exists():
        unfinished = (folder / "training").is_dir()
        wait = "training has not validated yet, or it was lost; wait for it, or go on with it by the same command"
        raise RegardError(f"has no {MODEL}: {wait if unfinished else 'is no model folder'}", str(folder))
    verify(folder, extra=True)  # first, for a damaged file may look like anything
    recipe, assets = opened(folder)
    kind = TASKS[recipe.task]
    fits(folder / MODEL, outline(recipe, assets))  # before memory is taken for what a recipe claims
    model = kind.build(recipe, assets.sizes)
    read(folder / MODEL, model)
    return ready(recipe, assets, model, device)


def outline(recipe: Recipe, assets: Assets) -> torch.nn.Module:
    """The model of a recipe without memory for its weights: to count and to check shapes."""
    with torch.device("meta"):
        model: torch.nn.Module = TASKS[recipe.task].build(recipe, assets.sizes)
    return model


def ready(recipe: Recipe, assets: Assets, model: torch.nn.Module, device: str | None = None) -> Any:
    """A model in evaluation mode on its device, its products computed the fastest exact way."""
    model.eval().requires_grad_(False).to(placed(device))
    ops.use(model, ops.full(str(placed(device))))
    return TASKS[recipe.task](recipe, assets, model)


def opened(folder: Path) -> tuple[Recipe, Any]:
    """Recipe and assets of a model folder."""
    folder = model_folder(folder)
    _refuse_others(folder)
    path = folder / RECIPE
    recipe = recipe_from(recipe_values(path), str(path))
    return recipe, TASKS[recipe.task].opened(folder)


def _refuse_others(folder: Path) -> None:
    """Raise a RegardError for what is no model folder, even an unfinished one."""
    if not folder.exists():
        raise RegardError("no such folder", str(folder))
    if not (folder / RECIPE).exists():
        raise RegardError(f"is no model folder: it has no {RECIPE}", str(folder))
    for path in folder.iterdir():  # reading a pipe waits for a writer, and a device may have no end
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise RegardError("is a pipe or a device; a model folder holds files", str(path))


def placed(device: str | None) -> torch.device:
    """The device named, or the best there is.

    Raises:
        UsageError: torch knows no such device here.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
        if chosen.type == "meta" or (chosen.type == "cpu" and chosen.index):  # torch takes these
            raise RuntimeError
    except (RuntimeError, AssertionError):
        raise UsageError(f"{device!r} is no device of this machine; try cpu", "--device") from None
    return chosen
