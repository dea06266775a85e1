"""Loss, perplexity and accuracy of masked-token prediction, also on text not trained on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regard.config import Recipe
from regard.data.corpora.pairs import Corpus
from regard.data.prepare.encoders import ExampleEncoder
from regard.data.prepare.examples import OF_DOCUMENTS, PreparedExamples, prepare_examples
from regard.nn import ops
from regard.tasks.protocols import DataPaths, ShouldStop
from regard.text.tokenizers.vocabulary import AnyTokenizer
from regard.training.checkpoints.output_folder import scratch


@dataclass(frozen=True)
class PredictionScores:
    """Scores of masked or missing tokens.

    Args:
        nats: sum of their negative log-likelihoods.
        tokens: their number.
        right: how many were predicted correctly; not counted for spans, which are generated.
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


def evaluate_corpus(
    task: Any,
    corpus: Corpus,
    coding: Callable[[AnyTokenizer, Recipe], ExampleEncoder],
    scored: Callable[[Any, PreparedExamples, DataPaths, ShouldStop], PredictionScores],
) -> PredictionScores:
    """The validation scores of training, computed on this text, masked with the recipe's seed.

    Args:
        task: a loaded model.
        corpus: running text.
        coding: how it becomes ids.
        scored: scores the validation part of prepared text.
    """
    known, paths = coding(task.assets.tokenizer, task.recipe), DataPaths(*[ops.full(str(task.device))] * 2)
    with scratch() as folder:
        place = folder / "data"
        prepared = prepare_examples([corpus], task.recipe, place, lambda pairs: known, {}, corpus, called=OF_DOCUMENTS)
        return scored(task, prepared, paths, lambda: False)
