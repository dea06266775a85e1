"""Filling of missing spans in a text, with an encoder-decoder trained by span corruption."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

from regard.config import Recipe
from regard.data.batches.batch import Ids
from regard.decoding.hypotheses import Hypothesis
from regard.system.errors import RegardError, UsageError
from regard.tasks.assets import TextAssets
from regard.tasks.language.gaps import GappedText, SpanGaps
from regard.tasks.text.encoder_decoder import SharedVocabularyTask
from regard.tasks.text.task import Read, refuse_others
from regard.text.tokenizers.tokenizer import MASK

if TYPE_CHECKING:
    from regard.models.transformer import Transformer

MOST = 100
"""Hypotheses that a search keeps at most."""


@dataclass(frozen=True)
class Filling:
    """A joint filling of all gaps of a text.

    Args:
        spans: for each gap, in the order of the text; empty if the model predicts that nothing is missing.
        probability: of the whole output, given the text.
        text: the whole text with them.
    """

    spans: tuple[str, ...]
    probability: float
    text: str


@dataclass(frozen=True)
class _GapSource:
    """A text with gaps and its model input: all tokens, or those near the gaps if there are too many."""

    text: GappedText
    source: Ids


class SpanCorruption(SharedVocabularyTask):
    """A span-corruption model, ready to use, mainly to initialise others from.

    Raises:
        RegardError: the vocabulary has fewer than two sentinels.
    """

    def __init__(self, recipe: Recipe, assets: TextAssets, model: Transformer) -> None:
        tokenizer = assets.tokenizer
        if len(tokenizer.sentinels) < 2:
            raise RegardError("the vocabulary has no symbols for missing spans, like <extra_0>", "tokenizer.json")
        super().__init__(recipe, assets, model, said=tokenizer.sentinels)
        self.gaps = SpanGaps(tokenizer)
        self.marks = self.gaps.pattern

    @overload
    def fill(self, text: str, beam: int | None = None) -> list[str]: ...
    @overload
    def fill(self, text: list[str], beam: int | None = None) -> list[list[str]]: ...
    def fill(self, text: str | list[str], beam: int | None = None) -> list[str] | list[list[str]]:
        """The filling of each gap of a text, or of each text of a list.

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

        There are fewer if hypotheses coincide. A text longer than any in training is read around its
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
        asked = [self.gap_source(one) for one in texts]
        gapped = [one for one in asked if one.text.gaps]
        searched = iter(self.search([one.source for one in gapped], k, beam))
        return [self._fillings(one, next(searched)) if one.text.gaps else [] for one in asked]

    def gap_source(self, text: str) -> _GapSource:
        """The model input for a text with gaps.

        Raises:
            UsageError: its gaps are too far from each other, or there are too many.
        """
        gapped, room = self.gaps.parse(text), self.recipe.data.max_tokens - 1
        ids, start = gapped.ids, 0
        if len(ids) > room:
            first, last = (gapped.gaps[0], gapped.gaps[-1]) if gapped.gaps else (0, 0)
            if last - first >= room:
                apart = f"from its first gap to its last there are {last - first + 1} tokens"
                raise UsageError(f"{apart}, more than the {room} of the model's texts", text[:40])
            start = min(max(0, (first + last - room + 1) // 2), len(ids) - room)
        source = [*ids[start : start + room], self.assets.tokenizer.end]
        return _GapSource(gapped, np.array(source, np.int64))

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The encoder's input for a text with gaps and its characters, for inspection; ``</s>`` comes last."""
        found = self.gaps.parse(text)
        return found.text, [*found.read, (self.assets.tokenizer.end, len(found.text), len(found.text))]

    def reads_target(self, text: str) -> tuple[str, list[Read]]:
        """The pieces of spans, each after its sentinel, for inspection; without ``</s>``."""
        found = self.gaps.parse(text)
        return found.text, list(found.read)

    def spans(self, sources: list[Ids], beam: int | None = None) -> list[dict[int, list[int]]]:
        """The span of each sentinel, for sources given as ids with ``</s>``."""
        return [self._split_spans(hypotheses[0].tokens) for hypotheses in self.search(sources, 1, beam)]

    def greedy_output(self, source: Ids) -> list[int]:
        """Greedy output for one such source."""
        return list(self.search([source], 1, 1)[0][0].tokens)

    def _fillings(self, asked: _GapSource, hypotheses: Sequence[Hypothesis]) -> list[Filling]:
        tokenizer, found = self.assets.tokenizer, dict[tuple[str, ...], Filling]()
        for hypothesis in hypotheses:
            spans = self._split_spans(hypothesis.tokens)
            ids = asked.text.ids
            said = {ids[gap]: spans.get(ids[gap], []) for gap in asked.text.gaps}
            texts = tuple(tokenizer.decode(span).strip() for span in said.values())
            whole = [part for id in ids for part in said.get(id, [id])]
            found.setdefault(texts, Filling(texts, math.exp(hypothesis.log_probability), tokenizer.decode(whole)))
        return list(found.values())

    def _split_spans(self, tokens: Iterable[int]) -> dict[int, list[int]]:
        """The tokens after each sentinel, up to the next; tokens before the first are dropped."""
        sentinels = frozenset(self.assets.tokenizer.sentinels)
        spans: dict[int, list[int]] = {}
        current: list[int] = []
        for token in tokens:
            if token in sentinels:
                current = spans.setdefault(token, [])
            else:
                current.append(token)
        return spans
