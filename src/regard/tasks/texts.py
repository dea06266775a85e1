"""What a list of texts must be, what a model reads of one, and what all encoders of texts have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from regard.config import Recipe
from regard.data.framing import Frame
from regard.errors import UsageError
from regard.models.rnn_reader import Reader
from regard.tasks.teaching import device_of
from regard.tasks.text_assets import TextAssets
from regard.text.vocabulary import AnyTokenizer

Read = tuple[int, int, int]
"""An id that a model reads, and the characters it stands for, from and to; none for a symbol."""


def refuse_others(texts: object) -> None:
    """Raise a UsageError that names the type of what is no list of texts."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise UsageError(f"a list of texts is wanted, not {type(texts).__name__}")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(f"a text must be str, not {type(text).__name__}", f"texts[{place}]")


def read_as(
    tokenizer: AnyTokenizer, text: str, begin: Sequence[int], end: Sequence[int] = ()
) -> tuple[str, list[Read]]:
    """A text as the tokenizer has it, and its pieces between symbols, each with its characters."""
    encoding = tokenizer.encode(text)
    last = len(encoding.text)
    inner = [(id, start, stop) for id, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True)]
    return encoding.text, [*((id, 0, 0) for id in begin), *inner, *((id, last, last) for id in end)]


class TextTask:
    """What tasks have in common whose folder holds one tokenizer, and labels at most."""

    model: nn.Module

    @staticmethod
    def opened(folder: Path) -> TextAssets:
        """The tokenizer of a model folder, and its labels where it has some."""
        return TextAssets.load(folder)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return device_of(self.model)


class TextReader(TextTask):
    """A task whose model is an encoder that reads a text between symbols.

    Args:
        recipe: what it was made by.
        assets: the tokenizer, and what else the task has.
        model: the encoder with its head, on its device.
    """

    model: Reader

    def __init__(self, recipe: Recipe, assets: TextAssets, model: Reader) -> None:
        self.recipe, self.assets, self.model = recipe, assets, model
        self.frame = Frame.of(assets.tokenizer, recipe.data.max_tokens)

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """What the model reads of a text, for those who look inside."""
        return read_as(self.assets.tokenizer, text, self.frame.begin, (self.frame.end,))
