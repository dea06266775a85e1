"""Training of translators: data, teacher forcing, validation, and scores of the best model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.config import Recipe, TransformerSection
from regard.data.batches.batch import PairBatch
from regard.data.batches.pairs import PairBatches
from regard.data.corpora.pairs import Corpus, Pair
from regard.data.corpora.passes import Progress
from regard.data.prepare.pairs import PreparedPairs, prepare
from regard.decoding.rows import Rows
from regard.decoding.trace import Trace
from regard.models.inputs import pairs
from regard.models.rnn import Rnn
from regard.models.transformer import Transformer
from regard.nn import ops
from regard.nn.loss import SmoothedCrossEntropy
from regard.tasks import card
from regard.tasks.defaults import size_for
from regard.tasks.metrics.bleu import score
from regard.tasks.model_writer import StoppableTrace
from regard.tasks.protocols import DataPaths, ShouldStop
from regard.tasks.translation.translator import Hypothesis, Translation
from regard.text.tokenizers.vocabulary import Vocabularies
from regard.training.objective import Done, Loss, Sample, Validation, ignore_progress, tick

SAMPLES = 3
"""Sample translations shown at a validation."""
MAX_EXTRA = 16
"""Tokens an output may have more than its source while validating: a young model does not know when to stop."""


BEAMS = 1.5
"""Times greedy search that each hypothesis of a beam takes: of five it was 1.4."""


def max_extra(recipe: Recipe) -> int:
    """:data:`MAX_EXTRA`, or fewer if learned positions end earlier; independent of the decoding options."""
    if not isinstance(recipe.model, TransformerSection) or recipe.model.positions != "learned":
        return MAX_EXTRA
    return min(MAX_EXTRA, recipe.model.max_positions - recipe.data.max_tokens - 1)


class TranslationTraining:
    """Training task of translation [Vaswani17 §5]; implements :class:`~regard.tasks.protocols.TrainingTask`.

    Args:
        task: the model to train, with its recipe and vocabularies.
        batches: for validation: the packed validation pairs.
        prepared: their text.
        paths: how products are computed.
    """

    def __init__(self, task: Translation, batches: PairBatches, prepared: PreparedPairs, paths: DataPaths) -> None:
        self.task = task
        self.batches = batches
        self.prepared = prepared
        self.criterion = SmoothedCrossEntropy(task.recipe.training.label_smoothing)
        self.paths = paths
        ops.use(task.model, paths.training)
        ops.use(self.criterion, paths.training)

    @property
    def model(self) -> Transformer | Rnn:
        """The model to train."""
        return self.task.model

    @property
    def epochs(self) -> int:
        """By the table of sizes."""
        return size_for(self.batches.pairs).epochs

    def loss(self, batch: PairBatch) -> Loss:
        """The smoothed loss of a batch, every target position a sample."""
        self.criterion.train(self.model.training)
        inputs = pairs(batch, self.task.device)
        hidden_TD = self.model(inputs)
        table_V1D = self.model.output.weight
        total, nll = self.criterion(hidden_TD, table_V1D, inputs.labels_T, inputs.weight_T, self.model.pieces)
        return Loss(total, nll, batch.tokens)

    @torch.no_grad()
    def validate(self, generate: bool) -> Validation:
        """Loss on all validation pairs; greedy BLEU and chrF on the first few hundred; in full precision."""
        with ops.using(self.model, self.paths.exact):
            loss = self._mean(self.batches.validation)
            if not math.isfinite(loss):  # nothing can be searched for then
                return Validation(loss)
            texts = self._texts(generate)
            hypotheses = self._greedy(texts)
        samples = tuple(
            Sample(source, reference, hypothesis.text)
            for (source, reference), hypothesis in list(zip(texts, hypotheses, strict=True))[:SAMPLES]
        )
        if not generate:
            return Validation(loss, samples=samples)
        references = [reference for _, reference in texts]
        scores = score([h.text for h in hypotheses], references, self.task.recipe.text.target_language, samples=1)
        return Validation(loss, {"bleu": scores.bleu, "chrf": scores.chrf}, samples)

    @torch.no_grad()
    def trial(self, generate: bool, done: Done) -> None:
        """Loss and samples; or the sentences of a validation, to as many tokens as their references have.

        A model that has not learned to stop writes more, which is not held against it.
        """
        if generate:
            done(0.0)
        with ops.using(self.model, self.paths.exact):
            if not generate:
                if math.isfinite(self._mean(self.batches.validation, done)):
                    self._greedy(self._texts(False))
            elif math.isfinite(self._mean(self.batches.validation[:1])):
                texts = self._texts(True)
                self._greedy(texts, ValidationTranslation(self._target_tokens(len(texts)), done))

    def _mean(self, batches: Sequence[PairBatch], done: Done = ignore_progress) -> float:
        losses = [self.loss(batch) for batch in tick(batches, done)]
        return sum(float(part.nll) for part in losses) / max(1, sum(part.count for part in losses))

    def _texts(self, generate: bool) -> list[Pair]:
        """The validation sentences to translate."""
        section = self.task.recipe.training
        return self.prepared.validation_pairs()[: section.validation_sentences if generate else SAMPLES]

    def _greedy(self, texts: Sequence[Pair], trace: Trace | None = None) -> list[Hypothesis]:
        sources, most = [source for source, _ in texts], max_extra(self.task.recipe)
        return [best[0] for best in self.task.nbest(sources, 1, beam=1, max_extra=most, trace=trace)]

    def _target_tokens(self, count: int) -> int:
        return int(self.prepared.validation_target.lengths(0, np.arange(count)).sum())

    def final_seconds(self, loss: float, text: float) -> float:
        """Estimated seconds of final scoring: greedy search scaled to all validation pairs and the beam."""
        held, beam = self.prepared.validation_source.count, self.task.recipe.decoding.beam
        tokens = self._target_tokens(held) / max(1, self._target_tokens(len(self._texts(True))))
        return (text - loss) * tokens * (BEAMS * beam if beam > 1 else 1)

    def data_lines(self) -> list[str]:
        """How many pairs there are."""
        pairs = self.prepared.pairs, self.prepared.validation_source.count
        return ["{:,} sentence pairs to learn from, {:,} to validate on".format(*pairs)]

    def finish(self, task: Translation, should_stop: ShouldStop) -> list[str]:
        """BLEU and chrF on the validation pairs, searched as it will be used."""
        sources, references = zip(*self.prepared.validation_pairs(), strict=True)
        scores = task.evaluate(sources, references, trace=StoppableTrace(should_stop))
        return card.score_lines(scores, task.recipe.decoding.beam)


class ValidationTranslation(Trace):
    """Reports at every step the share of expected tokens generated; records nothing."""

    def __init__(self, expected: int, done: Done) -> None:
        super().__init__()
        self.expected, self.done, self.tokens = max(1, expected), done, 0

    def record(self, rows: Rows, *step: Any) -> None:
        """Every row has a token more."""
        self.tokens += rows.count
        self.done(min(1.0, self.tokens / self.expected))


@dataclass(frozen=True)
class TranslationJob:
    """Translation from corpora of sentence pairs."""

    corpora: Sequence[Corpus]
    validation: Corpus | None = None
    task = Translation

    def prepare(self, recipe: Recipe, folder: Path, progress: Progress) -> PreparedPairs:
        """The pairs as ids."""
        return prepare(self.corpora, recipe, folder, self.validation, progress=progress)

    def assets(self, prepared: PreparedPairs) -> Vocabularies:
        """The vocabularies learned from them."""
        return prepared.vocabularies

    def begin(self, model: nn.Module) -> None:
        """Nothing: translators begin afresh."""

    def teach(self, task: Translation, prepared: PreparedPairs, paths: DataPaths) -> TranslationTraining:
        """Teacher forcing on the pairs."""
        return TranslationTraining(task, PairBatches(prepared, task.recipe), prepared, paths)

    def more(self) -> dict[str, str]:
        """Nothing."""
        return {}
