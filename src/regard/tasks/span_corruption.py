"""Missing spans: what stood where a text has ``<extra_0>``, ``<extra_1>`` …, with a trained encoder-decoder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, overload

import numpy as np
import torch
from numpy.typing import NDArray

from regard.config import Recipe, TransformerSection
from regard.decoding.rows import Symbols
from regard.decoding.search import search
from regard.errors import RegardError, UsageError
from regard.models.build import transformer
from regard.models.transformer import Transformer
from regard.tasks.teaching import device_of
from regard.tasks.text_assets import TextAssets
from regard.tasks.texts import refuse_others

Ids = NDArray[np.int64]


class SpanCorruption:
    """A model of missing spans, ready to use: chiefly to begin another from.

    Args:
        recipe: what it was made by; its section ``decoding`` gives the defaults.
        assets: the tokenizer.
        model: the trained encoder-decoder, on its device.

    Raises:
        RegardError: the vocabulary has no symbols for spans, two at least.
    """

    name: ClassVar[str] = "span-corruption"

    def __init__(self, recipe: Recipe, assets: TextAssets, model: Transformer) -> None:
        self.recipe, self.assets, self.model = recipe, assets, model
        tokenizer = assets.tokenizer
        if len(tokenizer.sentinels) < 2:
            raise RegardError("the vocabulary has no symbols for missing spans, like <extra_0>", "tokenizer.json")
        said = [*tokenizer.ordinary.tolist(), *tokenizer.sentinels, tokenizer.end]
        never = np.setdiff1d(np.arange(tokenizer.size), said)
        self.symbols = Symbols(tokenizer.start, tokenizer.end, tuple(never.tolist()))
        self._gap = re.compile("|".join(re.escape(tokenizer.piece(id)) for id in reversed(tokenizer.sentinels)))

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Transformer:
        """The encoder-decoder of a recipe, for so many pieces on both sides."""
        assert isinstance(recipe.model, TransformerSection)
        return transformer(recipe.model, sizes[0], sizes[0], key)

    @staticmethod
    def opened(folder: Path) -> TextAssets:
        """The tokenizer of a model folder."""
        return TextAssets.load(folder)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return device_of(self.model)

    @overload
    def fill(self, text: str, beam: int | None = None) -> list[str]: ...
    @overload
    def fill(self, text: list[str], beam: int | None = None) -> list[list[str]]: ...
    def fill(self, text: str | list[str], beam: int | None = None) -> list[str] | list[list[str]]:
        """What is missing in a text, or in each text of a list, where it says ``<extra_0>``, ``<extra_1>`` and so on.

        Args:
            text: one or several, with at least one such place each; every place has another number.
            beam: hypotheses kept while searching; default: the recipe's.

        Raises:
            UsageError: a text has no such place, or the same twice, or is too long.
        """
        texts = [text] if isinstance(text, str) else text
        refuse_others(texts)
        sources = [self._ids(one) for one in texts]
        found = [
            [self.assets.tokenizer.decode(spans.get(id, ())) for id in source.tolist() if id in self._sentinels]
            for source, spans in zip(sources, self.spans(sources, beam), strict=True)
        ]
        return found[0] if isinstance(text, str) else found

    def spans(self, sources: list[Ids], beam: int | None = None) -> list[dict[int, list[int]]]:
        """What is said of each sentinel, for sources that are ids already, ``</s>`` at the end of each."""
        decoding = self.recipe.decoding
        decoding = decoding if beam is None else decoding.model_copy(update={"beam": beam})
        limits = [len(source) + decoding.max_extra for source in sources]
        found = search(self.model.stepper(self.device), sources, decoding, self.symbols, limits=limits)
        return [self._parted(hypotheses[0].tokens) for hypotheses in found]

    @property
    def _sentinels(self) -> frozenset[int]:
        return frozenset(self.assets.tokenizer.sentinels)

    def _parted(self, tokens: Iterable[int]) -> dict[int, list[int]]:
        """The tokens behind each sentinel, up to the next; what stands before the first belongs to none."""
        spans: dict[int, list[int]] = {}
        current: list[int] = []
        for token in tokens:
            if token in self._sentinels:
                current = spans.setdefault(token, [])
            else:
                current.append(token)
        return spans

    def _ids(self, text: str) -> Ids:
        tokenizer = self.assets.tokenizer
        names = {tokenizer.piece(id): id for id in tokenizer.sentinels}
        gaps = [names[name] for name in self._gap.findall(text)]
        if not gaps or len(set(gaps)) < len(gaps):
            raise UsageError("a text needs places like <extra_0>, each with another number", text[:40])
        parts = [part.removesuffix(" ") for part in self._gap.split(text)]
        pieces = tokenizer.ids_batch([*parts[:-1], self._gap.split(text)[-1]])
        ids = [np.append(part, gap) for part, gap in zip(pieces, gaps, strict=False)]
        whole = np.concatenate([*ids, pieces[-1], [tokenizer.end]]).astype(np.int64)
        if len(whole) > self.recipe.data.max_tokens:
            raise UsageError(f"{len(whole)} tokens are more than the {self.recipe.data.max_tokens} the model learned")
        return whole
