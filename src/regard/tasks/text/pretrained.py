"""Initialisation from a pretrained model: its tokenizer, its sizes, and every weight that fits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from regard.config import Data, Recipe, saved_recipe
from regard.data.prepare.folder import sha256_of
from regard.models import store
from regard.system.errors import RegardError
from regard.tasks.model_path import RECIPE, model_folder
from regard.tasks.training.defaults import pool_fields
from regard.text.tokenizers.vocabulary import AnyTokenizer, read_tokenizer
from regard.training.checkpoints.manifest import verify


@dataclass(frozen=True)
class Pretrained:
    """A pretrained model folder to initialise from.

    Args:
        folder: where it lies.
        recipe: of the model.
        tokenizer: its text to pieces.
    """

    folder: Path
    recipe: Recipe
    tokenizer: AnyTokenizer

    @classmethod
    def load(cls, folder: Path | str) -> Pretrained:
        """The model folder, its manifest verified.

        Raises:
            RegardError: it is no model folder, or damaged, or reads images, or is a translator's with two vocabularies.
        """
        folder = model_folder(folder)
        if not (folder / RECIPE).exists() or not (folder / "model.safetensors").exists():
            raise RegardError("is no model folder to initialise from", str(folder))
        verify(folder, extra=True)
        recipe = saved_recipe(folder / RECIPE)
        if recipe.info.reads == "image":
            raise RegardError(f"is {recipe.info.noun}, from which no training can begin", str(folder))
        return cls(folder, recipe, read_tokenizer(folder / "tokenizer.json"))

    def values(self, task: str) -> dict[str, Any]:
        """Recipe values taken over: the model section, the tokenizer settings, and the maximum length."""
        text = self.recipe.text.model_dump(include={"vocabulary", "units", "normalisation", "lowercase"})
        found = {"model": pool_fields(task, self.recipe.model.model_dump(exclude_none=True)), "text": text}
        longest = self.recipe.data.max_tokens
        return found | ({"data": {"max_tokens": longest}} if longest < Data().max_tokens else {})

    @property
    def fingerprint(self) -> dict[str, str]:
        """Of its weights, by name."""
        return {"fingerprint.from": sha256_of(self.folder / "model.safetensors")}

    def give(self, model: nn.Module) -> None:
        """Copy every weight of the same name and shape; the head stays fresh where it is another.

        Raises:
            RegardError: a weight below the head is not there, or of another shape; half a model would be no beginning.
        """
        taken = set(store.take(self.folder / "model.safetensors", model))
        if missing := [
            name for name in store.named_tensors(model) if name not in taken and not name.startswith("head.")
        ]:
            more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            message = f"does not fit the model to be trained, which has another {missing[0]}{more}"
            raise RegardError(f"{message}; leave the sizes of the section model as they are there", str(self.folder))
