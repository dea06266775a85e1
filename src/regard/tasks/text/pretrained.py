"""Initialisation from a pretrained model: its tokenizer, its sizes, and every weight that fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from regard.config import Data, Recipe, Text, recipe_from, recipe_values
from regard.models import store
from regard.system.errors import RegardError
from regard.tasks.defaults import pool_fields
from regard.tasks.model_path import RECIPE, model_folder
from regard.text.tokenizers.tokenizer import learn
from regard.text.tokenizers.vocabulary import AnyTokenizer, read_tokenizer, sample

SYMBOLS = ("[CLS]", "[MASK]")
"""Of vocabularies of encoder-only models."""


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
        from regard.training.checkpoints.manifest import verify

        folder = model_folder(folder)
        if not (folder / RECIPE).exists() or not (folder / "model.safetensors").exists():
            raise RegardError("is no model folder to initialise from", str(folder))
        verify(folder, extra=True)
        recipe = recipe_from(recipe_values(folder / RECIPE), str(folder / RECIPE))
        if recipe.task == "image-classification":
            raise RegardError("is a classifier of images, from which no training can begin", str(folder))
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
        from regard.data.prepare.folder import sha256_of

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


def learned_tokenizer(
    section: Text, texts: Iterable[str], pretrained: Pretrained | None, symbols: Sequence[str] = SYMBOLS
) -> AnyTokenizer:
    """A tokenizer learned from a seeded sample of texts, or that of the pretrained model."""
    if pretrained is not None:
        for _ in texts:  # labels are counted while they pass
            pass
        return pretrained.tokenizer
    drawn = sample(((text, "") for text in texts), section.sample, 0)
    return learn(
        (text for text, _ in drawn),
        section.vocabulary,
        section.normalisation,
        symbols,
        units=section.units,
        lowercase=section.lowercase,
    )
