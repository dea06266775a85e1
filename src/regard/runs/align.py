"""Chooses the attention heads that align words, and notes them in the recipe of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.config import recipe_toml
from regard.data.prepare.folder import PreparedPairs
from regard.system.errors import UsageError
from regard.tasks.kinds import translates
from regard.tasks.model_folder import RECIPE, load, load_recipe_and_assets, open_without_torch
from regard.tasks.model_path import model_folder
from regard.tasks.translation.align import Heads, choose_heads
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files

TAKEN = 10_000
"""Pairs of a training by which heads are chosen: with more the choice is the same (docs/lab/2026-11.md)."""


def tune_alignment(
    folder: Path | str, texts: Sequence[str] | None = None, translations: Sequence[str] = ()
) -> tuple[Heads, float, float]:
    """Choose the heads by these pairs, or by those that the model learned from, and write them to the recipe.

    Returns:
        The heads, and how many links agree with the lexical model: their own, and those of the usual choice.

    Raises:
        UsageError: the model translates nothing, or there are too few pairs, or none that it learned from.
    """
    folder = model_folder(folder)
    recipe, _ = load_recipe_and_assets(folder)
    if recipe.info.learns_from != "pairs":
        raise UsageError(f"is {recipe.info.noun}; words are aligned by models that translate", str(folder))
    task = open_without_torch(folder, "cpu") or load(folder)
    assert translates(task)
    if texts is None:
        texts, translations = learned_pairs(folder)
    heads, *agreement = choose_heads(task, texts, translations)
    decoding = recipe.decoding.model_copy(update={"alignment_heads": tuple(map(str, heads))})
    content = recipe_toml(recipe.model_copy(update={"decoding": decoding})).encode()
    manifest.replace(folder, {RECIPE: [content]}, Files())
    return heads, agreement[0], agreement[1]


def learned_pairs(folder: Path) -> tuple[list[str], list[str]]:
    """The pairs that a model learned from, of many :data:`TAKEN` at equal distances, as its training prepared them.

    Raises:
        UsageError: they are not there, or are of several directions.
    """
    data = folder / "training" / "data"
    if not data.is_dir():
        raise UsageError(
            "has no training data beside it; give --input and --target with some thousand pairs", str(folder)
        )
    prepared = PreparedPairs(data)
    if prepared.directions:
        raise UsageError("learned several directions; give --input and --target with pairs of one", str(folder))
    places = np.linspace(0, prepared.pairs - 1, min(prepared.pairs, TAKEN), dtype=np.int64)
    both, texts = prepared.vocabularies, list[list[str]]()
    for side, tokenizer in ((prepared.source, both.source), (prepared.target, both.target)):
        ids_T, lengths_B = side.gather(0, places)
        texts.append(tokenizer.decode_batch(np.split(ids_T, lengths_B.cumsum()[:-1])))
    return texts[0], texts[1]
