"""Encoding: a text → a vector, by an encoder that was brought in without a head, or with a pool alone."""

from __future__ import annotations

from typing import ClassVar, overload

from regard.config import BertSection, Recipe
from regard.models.bert import Bert
from regard.models.build import bert, vectors
from regard.tasks.encoding import Floats, Pool, TextVectors
from regard.tasks.texts import TextReader


class Encoding(TextReader):
    """An encoder of texts, ready to use; to be taught something it is the beginning of another task.

    Args:
        recipe: what is known of it.
        assets: the tokenizer.
        model: the encoder, on its device.
    """

    name: ClassVar[str] = "encoding"

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Bert:
        """The encoder of a recipe."""
        assert isinstance(recipe.model, BertSection)
        return bert(recipe.model, sizes[0], vectors(recipe.model), key)

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
