"""Loads a model folder: ``recipe.toml``, ``model.safetensors``, assets, ``card.md``, one manifest."""

from __future__ import annotations

from pathlib import Path

import torch

from regard.config import Recipe
from regard.models.store import check_weights, load_weights, refuse_infinite
from regard.nn import ops
from regard.system import processor
from regard.system.errors import UsageError
from regard.tasks.assets import PROCESSORS, ProcessorFile, read_json
from regard.tasks.model_path import MODEL as MODEL
from regard.tasks.model_path import RECIPE as RECIPE
from regard.tasks.model_path import load_recipe_and_assets as load_recipe_and_assets
from regard.tasks.model_path import opened_folder
from regard.tasks.protocols import Assets, Task


def load(folder: Path | str, device: str | None = None) -> Task:
    """Load the task of a model folder, ready to use; the folder's manifest is verified first.

    Args:
        folder: what ``regard train`` wrote, or ``regard demo``.
        device: ``cpu``, ``cuda``, ``cuda:1`` …; default: a GPU if there is one.

    Raises:
        RegardError: it is no model folder, or a file of it is damaged.
    """
    folder, recipe, assets = opened_folder(folder)
    check_weights(folder / MODEL, outline(recipe, assets))  # before memory is taken for what a recipe claims
    model = recipe.info.model().build(recipe, assets.sizes)
    load_weights(folder / MODEL, model)
    refuse_infinite(folder / MODEL, model)
    return ready(recipe, assets, model, device, validated_paths(folder).get(processor.kind()))


def outline(recipe: Recipe, assets: Assets) -> torch.nn.Module:
    """The model of a recipe without memory for its weights: to count and to check shapes."""
    with torch.device("meta"):
        model: torch.nn.Module = recipe.info.model().build(recipe, assets.sizes)
    return model


def validated_paths(folder: Path) -> dict[str, str]:
    """The path of products by which a model was validated, by kind of processor; empty where nothing is recorded."""
    path = folder / PROCESSORS
    return dict(read_json(path, ProcessorFile).paths) if path.is_file() else {}


def ready(
    recipe: Recipe, assets: Assets, model: torch.nn.Module, device: str | None = None, path: str | None = None
) -> Task:
    """A model in evaluation mode on its device, its products computed in full precision.

    Args:
        recipe, assets, model: of the model.
        device: where it is to be.
        path: of products; where it is not given, or this machine lacks it, the processor's flags decide.
    """
    chosen = choose_device(device)
    model.eval().requires_grad_(False).to(chosen)
    known = [full for full in ops.full_paths(str(chosen)) if full == path]
    ops.use(model, known[0] if known else ops.full(str(chosen)))
    task: Task = recipe.info.model()(recipe, assets, model)
    return task


def choose_device(device: str | None) -> torch.device:
    """The named device, else CUDA if available, else the CPU.

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
