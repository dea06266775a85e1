"""How well a model guesses what is hidden from it: the scores, and what finds them for text that nobody trained on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regard.config import Recipe
from regard.data.coding import Coding
from regard.data.corpora import Corpus
from regard.data.prepare_examples import OF_DOCUMENTS, PreparedExamples, prepare_examples
from regard.nn import ops
from regard.tasks.fresh_folder import scratch
from regard.tasks.teaching import Paths, ShouldStop
from regard.text.vocabulary import AnyTokenizer


@dataclass(frozen=True)
class GuessScores:
    """Of tokens that were hidden from a model.

    Args:
        nats: its surprise at all of them.
        tokens: how many they are.
        right: of how many it thought most probable what stood there; of spans, which are written, nothing is counted.
    """

    nats: float
    tokens: int
    right: int | None = None

    @property
    def loss(self) -> float:
        """Nats a token."""
        return self.nats / max(1, self.tokens)

    @property
    def perplexity(self) -> float:
        """Of a token."""
        return math.exp(min(self.loss, 700))

    @property
    def accuracy(self) -> float | None:
        """Per cent of the tokens that were guessed right."""
        return None if self.right is None else 100 * self.right / max(1, self.tokens)

    def to_dict(self) -> dict[str, float | None]:
        """Plain values, for JSON."""
        found: dict[str, float | None] = {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "nats": self.nats,
            "tokens": self.tokens,
        }
        return found if self.right is None else {**found, "right": self.right, "accuracy": self.accuracy}


def evaluated(
    task: Any,
    corpus: Corpus,
    coding: Callable[[AnyTokenizer, Recipe], Coding],
    scored: Callable[[Any, PreparedExamples, Paths, ShouldStop], GuessScores],
) -> GuessScores:
    """The scores that training would end with, had it validated on this text: what is hidden is drawn by its seed.

    Args:
        task: a loaded model.
        corpus: running text.
        coding: how it becomes ids.
        scored: the scores on the validation part of prepared text.
    """
    known, paths = coding(task.assets.tokenizer, task.recipe), Paths(*[ops.full(str(task.device))] * 2)
    with scratch() as folder:
        place = folder / "data"
        prepared = prepare_examples([corpus], task.recipe, place, lambda pairs: known, {}, corpus, called=OF_DOCUMENTS)
        return scored(task, prepared, paths, lambda: False)
