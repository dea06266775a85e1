"""Missing spans: what stood at the gaps of a text, with a trained encoder-decoder."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe, TransformerSection
from regard.decoding.hypotheses import Hypothesis
from regard.decoding.rows import Symbols
from regard.decoding.search import search
from regard.errors import RegardError, UsageError
from regard.models.build import transformer
from regard.models.transformer import Transformer
from regard.tasks.gapped import Gapped, Gaps
from regard.tasks.text_assets import TextAssets
from regard.tasks.texts import TextTask, refuse_others
from regard.text.tokenizer import MASK

Ids = NDArray[np.int64]
MOST = 100
"""Hypotheses that a search keeps at most."""


@dataclass(frozen=True)
class Filling:
    """What may have stood at the gaps of a text, all of them together.

    Args:
        spans: for each gap, in the order of the text; empty where the model says that nothing is missing.
        probability: of all that the model wrote, given the text.
        text: the whole text with them.
    """

    spans: tuple[str, ...]
    probability: float
    text: str


@dataclass(frozen=True)
class _Asked:
    """A text with gaps, and what the model reads of it: all tokens, or where they are too many those near the gaps."""

    text: Gapped
    source: Ids


class SpanCorruption(TextTask):
    """A model of missing spans, ready to use: chiefly to begin another from.

    Args:
        recipe: what it was made by; its section ``decoding`` gives the defaults.
        assets: the tokenizer.
        model: the trained encoder-decoder, on its device.

    Raises:
        RegardError: the vocabulary has no symbols for spans, two at least.
    """

    model: Transformer
    name: ClassVar[str] = "span-corruption"

    def __init__(self, recipe: Recipe, assets: TextAssets, model: Transformer) -> None:
        self.recipe, self.assets, self.model = recipe, assets, model
        tokenizer = assets.tokenizer
        if len(tokenizer.sentinels) < 2:
            raise RegardError("the vocabulary has no symbols for missing spans, like <extra_0>", "tokenizer.json")
        said = [*tokenizer.ordinary.tolist(), *tokenizer.sentinels, tokenizer.end]
        never = np.setdiff1d(np.arange(tokenizer.size), said)
        self.symbols = Symbols(tokenizer.start, tokenizer.end, tuple(never.tolist()))
        self.gaps = Gaps(tokenizer)

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Transformer:
        """The encoder-decoder of a recipe, for so many pieces on both sides."""
        assert isinstance(recipe.model, TransformerSection)
        return transformer(recipe.model, sizes[0], sizes[0], key)

    @overload
    def fill(self, text: str, beam: int | None = None) -> list[str]: ...
    @overload
    def fill(self, text: list[str], beam: int | None = None) -> list[list[str]]: ...
    def fill(self, text: str | list[str], beam: int | None = None) -> list[str] | list[list[str]]:
        """What is missing at each gap of a text, or of each text of a list.

        Args:
            text: one or several; a gap is ``[MASK]``, or ``<extra_0>``, ``<extra_1>`` and so on, each another one.
            beam: hypotheses kept while searching; default: the recipe's.

        Raises:
            UsageError: a text has no gap, or the same twice, or its gaps are too far from each other.
        """
        texts = [text] if isinstance(text, str) else text
        found = self.fillings(texts, 1, beam)
        for one, fillings in zip(texts, found, strict=True):
            if not fillings:
                raise UsageError(f"a text needs a gap: {MASK}, or <extra_0>, <extra_1> …", one[:40])
        spans = [list(fillings[0].spans) for fillings in found]
        return spans[0] if isinstance(text, str) else spans

    def fillings(self, texts: list[str], k: int = 5, beam: int | None = None) -> list[list[Filling]]:
        """The ``k`` best ways to fill all gaps of each text, best first; none for a text without a gap.

        There are fewer where several hypotheses say the same. A text longer than the model ever saw is read around its
        gaps.

        Args:
            texts: as :meth:`fill` has them.
            k: ways for each text.
            beam: hypotheses kept while searching, ``k`` at least; default: the recipe's.

        Raises:
            UsageError: as :meth:`fill`; or ``k`` is not in 1 … ``MOST``.
        """
        if not 1 <= k <= MOST:
            raise UsageError(f"{k} fillings cannot be given; ask for 1 to {MOST}", "k")
        refuse_others(texts)
        asked = [self.asked(one) for one in texts]
        gapped = [one for one in asked if one.text.gaps]
        searched = iter(self._searched([one.source for one in gapped], k, beam))
        return [self._fillings(one, next(searched)) if one.text.gaps else [] for one in asked]

    def asked(self, text: str) -> _Asked:
        """What the model reads of a text with gaps.

        Raises:
            UsageError: its gaps are too far from each other, or there are too many.
        """
        gapped, room = self.gaps.read(text), self.recipe.data.max_tokens - 1
        ids, start = gapped.ids, 0
        if len(ids) > room:
            first, last = (gapped.gaps[0], gapped.gaps[-1]) if gapped.gaps else (0, 0)
            if last - first >= room:
                apart = f"from its first gap to its last there are {last - first + 1} tokens"
                raise UsageError(f"{apart}, more than the {room} of the model's texts", text[:40])
            start = min(max(0, (first + last - room + 1) // 2), len(ids) - room)
        source = [*ids[start : start + room], self.assets.tokenizer.end]
        return _Asked(gapped, np.array(source, np.int64))

    def spans(self, sources: list[Ids], beam: int | None = None) -> list[dict[int, list[int]]]:
        """What is said of each sentinel, for sources that are ids already, ``</s>`` at the end of each."""
        return [self._parted(hypotheses[0].tokens) for hypotheses in self._searched(sources, 1, beam)]

    def written(self, source: Ids) -> list[int]:
        """All that the model writes of one such source, the most probable token every time."""
        return list(self._searched([source], 1, 1)[0][0].tokens)

    def _searched(self, sources: list[Ids], k: int, beam: int | None) -> list[list[Hypothesis]]:
        decoding = self.recipe.decoding
        decoding = decoding.model_copy(update={"beam": max(k, decoding.beam if beam is None else beam)})
        limits = [len(source) + decoding.max_extra for source in sources]
        return search(self.model.stepper(self.device), sources, decoding, self.symbols, nbest=k, limits=limits)

    def _fillings(self, asked: _Asked, hypotheses: Sequence[Hypothesis]) -> list[Filling]:
        tokenizer, found = self.assets.tokenizer, dict[tuple[str, ...], Filling]()
        for hypothesis in hypotheses:
            spans = self._parted(hypothesis.tokens)
            said = {asked.text.read[gap][0]: spans.get(asked.text.read[gap][0], []) for gap in asked.text.gaps}
            texts = tuple(tokenizer.decode(span).strip() for span in said.values())
            whole = [part for id in asked.text.ids for part in said.get(id, [id])]
            found.setdefault(texts, Filling(texts, math.exp(hypothesis.log_probability), tokenizer.decode(whole)))
        return list(found.values())

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
