"""Chooses the attention head that aligns words, and notes it in the recipe of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.config import recipe_toml
from regard.system.errors import UsageError
from regard.tasks.kinds import translates
from regard.tasks.model_folder import RECIPE, load, load_recipe_and_assets
from regard.tasks.model_path import model_folder
from regard.tasks.translation.align import AlignmentHead, choose_head
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files


def tune_alignment(
    folder: Path | str, texts: Sequence[str], translations: Sequence[str]
) -> tuple[AlignmentHead, float, float]:
    """Choose the head by these pairs, and write it to the recipe.

    Returns:
        The head, and how many links agree with the lexical model: its own, and those of the usual choice.

    Raises:
        UsageError: the model translates nothing, or there are too few pairs.
    """
    folder = model_folder(folder)
    recipe, _ = load_recipe_and_assets(folder)
    if recipe.info.learns_from != "pairs":
        raise UsageError(f"is {recipe.info.noun}; words are aligned by models that translate", str(folder))
    task = load(folder)
    assert translates(task)
    head, *agreement = choose_head(task, texts, translations)
    chosen = {"alignment_layer": head.layer, "alignment_head": head.head, "alignment_step": head.step}
    decoding = recipe.decoding.model_copy(update=chosen)
    content = recipe_toml(recipe.model_copy(update={"decoding": decoding})).encode()
    manifest.replace(folder, {RECIPE: [content]}, Files())
    return head, agreement[0], agreement[1]
