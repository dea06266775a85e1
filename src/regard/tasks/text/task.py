"""Base classes of tasks with a text encoder, and checks of their input texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from regard.config import Recipe
from regard.data.prepare.windowing import Frame
from regard.models.rnn import Reader
from regard.system.errors import UsageError
from regard.tasks.protocols import device_of
from regard.tasks.text.assets import TextAssets
from regard.text.tokenizers.vocabulary import AnyTokenizer

Read = tuple[int, int, int]
"""An input id and its characters, from and to; none for a symbol."""


def refuse_others(texts: object) -> None:
    """Raise a UsageError for anything but a list of texts, naming its type."""
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
    """Base class of tasks with one tokenizer and optional labels."""

    model: nn.Module

    @staticmethod
    def load_assets(folder: Path) -> TextAssets:
        """The tokenizer of a model folder, and its labels where it has some."""
        return TextAssets.load(folder)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return device_of(self.model)


class TextReader(TextTask):
    """A task whose model is an encoder of texts framed by symbols.

    Args:
        recipe: of the model.
        assets: the tokenizer, and what else the task has.
        model: the encoder with its head, on its device.
    """

    model: Reader

    def __init__(self, recipe: Recipe, assets: TextAssets, model: Reader) -> None:
        self.recipe, self.assets, self.model = recipe, assets, model
        self.frame = Frame.of(assets.tokenizer, recipe.data.max_tokens)

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The model's input for a text and its characters, for inspection."""
        return read_as(self.assets.tokenizer, text, self.frame.begin, (self.frame.end,))
