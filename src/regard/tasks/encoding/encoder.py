"""Text embeddings with a trained or imported encoder: a text → a vector."""

from __future__ import annotations

from typing import ClassVar, overload

from regard.config import BertSection, Recipe
from regard.models.bert import Bert
from regard.models.build import bert, vectors
from regard.tasks.encoding.vectors import Floats, Pool, TextVectors
from regard.tasks.text.task import TextReader


class Encoding(TextReader):
    """A text encoder, ready to use, or to initialise another task from.

    Args:
        recipe: of the model, as far as known.
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
        """The vector of a text, or a row for each text of a list; see :class:`vectors.TextVectors`.

        Args:
            text: one text or several, of any length.
            pool: first, mean, max or last; default: the model's own, else the mean.
            normalise: scale vectors to length one; default: the model's own.
        """
        rows = TextVectors(self).texts([text] if isinstance(text, str) else text, pool, normalise)
        return rows[0] if isinstance(text, str) else rows
