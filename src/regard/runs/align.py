"""Chooses the attention heads that align words, and notes them in the recipe of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.config import recipe_toml
from regard.system.errors import UsageError
from regard.tasks.kinds import translates
from regard.tasks.model_folder import RECIPE, load, load_recipe_and_assets
from regard.tasks.model_path import model_folder
from regard.tasks.translation.align import Heads, choose_heads
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files


def tune_alignment(folder: Path | str, texts: Sequence[str], translations: Sequence[str]) -> tuple[Heads, float, float]:
    """Choose the heads by these pairs, and write them to the recipe.

    Returns:
        The heads, and how many links agree with the lexical model: their own, and those of the usual choice.

    Raises:
        UsageError: the model translates nothing, or there are too few pairs.
    """
    folder = model_folder(folder)
    recipe, _ = load_recipe_and_assets(folder)
    if recipe.info.learns_from != "pairs":
        raise UsageError(f"is {recipe.info.noun}; words are aligned by models that translate", str(folder))
    task = load(folder)
    assert translates(task)
    heads, *agreement = choose_heads(task, texts, translations)
    decoding = recipe.decoding.model_copy(update={"alignment_heads": tuple(map(str, heads))})
    content = recipe_toml(recipe.model_copy(update={"decoding": decoding})).encode()
    manifest.replace(folder, {RECIPE: [content]}, Files())
    return heads, agreement[0], agreement[1]
