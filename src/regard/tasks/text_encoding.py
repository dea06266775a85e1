"""Encoding: a text → a vector, by an encoder that was brought in without a head, or with a pool alone."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, overload

import torch

from regard.config import BertSection, Recipe
from regard.data.framing import Frame
from regard.models.bert import Bert
from regard.models.build import bert, vectors
from regard.tasks.encoding import Floats, Pool, TextVectors
from regard.tasks.teaching import device_of
from regard.tasks.text_assets import TextAssets
from regard.tasks.texts import Read, read_as


class Encoding:
    """An encoder of texts, ready to use; to be taught something it is the beginning of another task.

    Args:
        recipe: what is known of it.
        assets: the tokenizer.
        model: the encoder, on its device.
    """

    name: ClassVar[str] = "encoding"

    def __init__(self, recipe: Recipe, assets: TextAssets, model: Bert) -> None:
        self.recipe, self.assets, self.model = recipe, assets, model
        self.frame = Frame.of(assets.tokenizer, recipe.data.max_tokens)

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Bert:
        """The encoder of a recipe."""
        assert isinstance(recipe.model, BertSection)
        return bert(recipe.model, sizes[0], vectors(recipe.model), key)

    @staticmethod
    def opened(folder: Path) -> TextAssets:
        """The tokenizer of a model folder."""
        return TextAssets.load(folder)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return device_of(self.model)

    @overload
    def encode(self, text: str, pool: Pool | None = None, normalise: bool | None = None) -> Floats: ...
    @overload
    def encode(self, text: list[str], pool: Pool | None = None, normalise: bool | None = None) -> Floats: ...
    def encode(self, text: str | list[str], pool: Pool | None = None, normalise: bool | None = None) -> Floats:
        """The vector of a text, or a row for each text of a list; see :class:`~regard.tasks.encoding.TextVectors`.

        Args:
            text: one text or several, of any length.
            pool: first, mean, max or last; default: what the model was made with, else the mean.
            normalise: vectors get length one; default: as the model was made.
        """
        rows = TextVectors(self).texts([text] if isinstance(text, str) else text, pool, normalise)
        return rows[0] if isinstance(text, str) else rows

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """What the model reads of a text, for those who look inside."""
        return read_as(self.assets.tokenizer, text, self.frame.begin, (self.frame.end,))
