"""What tasks share whose encoder-decoder reads and writes with one vocabulary, as T5 does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.config import Decoding, Recipe, TransformerSection, check_value
from regard.data.batches.batch import Ids
from regard.decoding.hypotheses import Hypothesis, Symbols
from regard.decoding.search import search
from regard.decoding.trace import Trace
from regard.tasks.assets import TextAssets
from regard.tasks.engine import step_of
from regard.tasks.protocols import Unloaded
from regard.tasks.text.task import TextTask

if TYPE_CHECKING:
    from regard.models.transformer import Transformer


class SharedVocabularyTask(TextTask[TextAssets, "Transformer"]):
    """Base class of these tasks.

    Args:
        recipe, assets, model: as of every task.
        start: what begins a text that is written; default: the tokenizer's start symbol.
        said: symbols that are written, beside pieces and the end.
    """

    def __init__(
        self,
        recipe: Recipe,
        assets: TextAssets,
        model: Transformer | Unloaded[Transformer],
        *,
        start: int | None = None,
        said: Sequence[int] = (),
    ) -> None:
        super().__init__(recipe, assets, model)
        tokenizer = assets.tokenizer
        never = np.setdiff1d(np.arange(tokenizer.size), [*tokenizer.ordinary.tolist(), *said, tokenizer.end])
        self.symbols = Symbols(tokenizer.start if start is None else start, tokenizer.end, tuple(never.tolist()))

    def engine_sizes(self) -> tuple[int, int]:
        """What the engine's builder asks for: source and target pieces, those of the one vocabulary."""
        return self.assets.sizes[0], self.assets.sizes[0]

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Transformer:
        """The encoder-decoder of a recipe, for n pieces on both sides."""
        from regard.models.build import transformer

        assert isinstance(recipe.model, TransformerSection)
        return transformer(recipe.model, sizes[0], sizes[0], key)

    def stepper(self) -> Any:
        """The model's incremental decoder, or its engine."""
        return step_of(self)

    def decoding(self, k: int, beam: int | None) -> Decoding:
        """The recipe's decoding options with a beam of at least ``k``.

        Raises:
            UsageError: the beam is none.
        """
        if beam is not None:
            check_value("decoding.beam", beam, "beam")
        decoding = self.recipe.decoding
        return decoding.model_copy(update={"beam": max(k, decoding.beam if beam is None else beam)})

    def search(
        self,
        sources: Sequence[Ids],
        k: int,
        beam: int | None,
        max_extra: int | None = None,
        trace: Trace | None = None,
        scores: bool = True,
    ) -> list[list[Hypothesis]]:
        """The ``k`` best outputs of each source, best first.

        Args:
            sources: ids with ``</s>``.
            k: outputs of each.
            beam: hypotheses kept while searching, ``k`` at least; default: the recipe's.
            max_extra: tokens an output may have more than its source; default: the recipe's.
            trace: told of every step.
            scores: whether they are wanted; greedy search is faster without.
        """
        if not sources:
            return []
        decoding = self.decoding(k, beam)
        limits = [len(source) + (decoding.max_extra if max_extra is None else max_extra) for source in sources]
        return search(
            self.stepper(), sources, decoding, self.symbols, nbest=k, limits=limits, trace=trace, scores=scores
        )
