"""The terms of a model folder: shown and changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.system.errors import UsageError
from regard.tasks.assets import AnswerAssets
from regard.tasks.model_folder import load_recipe_and_assets
from regard.tasks.model_path import model_folder
from regard.text.terms import NO_TERMS, TermList
from regard.text.tokenizers.vocabulary import TERMS, Vocabularies
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files


def edit_terms(folder: Path, add: Path | None = None, remove: Sequence[str] = ()) -> TermList:
    """The terms of a model folder, some removed and then those of a file added; the folder changes at once.

    Raises:
        UsageError: its model neither translates nor answers.
        RegardError: folder or file is damaged, or a term to remove is not there.
    """
    folder = model_folder(folder)
    recipe, assets = load_recipe_and_assets(folder)
    if not isinstance(assets, Vocabularies | AnswerAssets):
        raise UsageError(f"is {recipe.info.noun}; terms are kept by what translate and ask write", str(folder))
    before = assets.terms or NO_TERMS
    found = before.without(remove)
    if add is not None:
        found = found.with_lines(TermList.read(add))
    if found.lines != before.lines:
        manifest.replace(folder, {TERMS: [found.content]}, Files())
    return found
