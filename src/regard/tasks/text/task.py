"""What tasks of texts share: base class, checks of texts, batched forward passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import Recipe
from regard.data.batches.batch import batches_in_order, pack_sources
from regard.data.prepare.windowing import Frame
from regard.models.inputs import Tokens, tokens
from regard.models.rnn_encoder import Reader
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


Ids = NDArray[np.int64]
ROOM = 8192
"""Tokens read at once."""


@torch.inference_mode()
def forward_windows(
    model: nn.Module, windows: Sequence[Ids], device: torch.device, each: bool, room: int = ROOM
) -> list[NDArray[np.float32]]:
    """The model's outputs for every window, in order.

    Args:
        model: answers with a row for each window, or a row for each token.
        windows: framed ids.
        device: where the model is.
        each: a row for each token.
        room: tokens read at once.
    """
    return forward_batches(lambda given: model(given), windows, device, each, room)


def mean_over_windows(score_WC: NDArray[Any], windows_B: Ids) -> NDArray[np.float64]:
    """``score_BC``: for each text the mean over its windows, which are consecutive.

    Args:
        score_WC: of the windows of all texts.
        windows_B: how many each text has, one or more.
    """
    sums_BC = np.add.reduceat(score_WC.astype(np.float64), windows_B.cumsum() - windows_B)
    return np.asarray(sums_BC / windows_B[:, None])


def forward_batches(
    answer: Callable[[Tokens], Tensor], windows: Sequence[Ids], device: torch.device, each: bool, room: int = ROOM
) -> list[NDArray[np.float32]]:
    """As :func:`forward_windows`, of any function of packed texts; windows of similar length are read together."""
    lengths = np.array([len(window) for window in windows], np.int64)
    order = np.argsort(-lengths, kind="stable")
    found: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(windows)
    for part in batches_in_order([lengths[order]], [room], len(windows)) if len(windows) else ():
        chosen = order[part]
        given = tokens(pack_sources([windows[place] for place in chosen]), device)
        rows = answer(given).float().cpu().numpy()
        split = np.split(rows, lengths[chosen].cumsum()[:-1]) if each else list(rows)
        for place, one in zip(chosen.tolist(), split, strict=True):
            found[place] = one
    return found
