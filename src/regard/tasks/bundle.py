"""A model folder → a ready task: ``recipe.toml``, ``model.safetensors``, vocabularies, ``card.md``, one manifest."""

from __future__ import annotations

from pathlib import Path

import torch

from regard.config import Recipe, recipe_from, recipe_values
from regard.errors import RegardError, UsageError
from regard.models.build import outline, transformer
from regard.models.store import fits, read
from regard.nn import ops
from regard.tasks.translation import Translation
from regard.text.vocabulary import Vocabularies
from regard.training.manifest import verify

MODEL = "model.safetensors"
RECIPE = "recipe.toml"


def load(folder: Path | str, device: str | None = None) -> Translation:
    """The task a model folder was made for, ready to use; the folder's manifest is verified first.

    Args:
        folder: what ``regard train`` wrote.
        device: ``cpu``, ``cuda``, ``cuda:1`` …; default: a GPU if there is one.

    Raises:
        RegardError: it is no model folder, or a file of it is damaged.
    """
    folder = Path(folder)
    _refuse_others(folder)
    if not (folder / MODEL).exists():
        unfinished = (folder / "training").is_dir()
        wait = "training has not validated yet, or it was lost; wait for it, or go on with it by the same command"
        raise RegardError(f"has no {MODEL}: {wait if unfinished else 'is no model folder'}", str(folder))
    verify(folder, extra=True)  # first, for a damaged file may look like anything
    recipe, vocabularies = opened(folder)
    shape = recipe.model, vocabularies.source.size, vocabularies.target.size
    fits(folder / MODEL, outline(*shape))  # before memory is taken for what a recipe claims
    model = transformer(*shape)
    read(folder / MODEL, model)
    return ready(recipe, vocabularies, model, device)


def ready(recipe: Recipe, vocabularies: Vocabularies, model: torch.nn.Module, device: str | None = None) -> Translation:
    """A model in evaluation mode on its device, its products computed the fastest exact way."""
    from regard.models.transformer import Transformer

    assert isinstance(model, Transformer)
    model.eval().requires_grad_(False).to(placed(device))
    ops.use(model, ops.full(str(placed(device))))
    return Translation(recipe, vocabularies, model)


def opened(folder: Path) -> tuple[Recipe, Vocabularies]:
    """Recipe and vocabularies of a model folder."""
    _refuse_others(folder)
    path = folder / RECIPE
    return recipe_from(recipe_values(path), str(path)), Vocabularies.load(folder)


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
