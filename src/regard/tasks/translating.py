"""A translator in the making: its data, teacher forcing, validation, and the scores of the best model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from regard.config import Recipe, TransformerSection
from regard.data.batch import PairBatch
from regard.data.batches import Batches
from regard.data.corpora import Corpus
from regard.data.prepare import prepare
from regard.data.prepared import Prepared
from regard.data.survey import Progress
from regard.models.inputs import pairs
from regard.models.rnn import Rnn
from regard.models.transformer import Transformer
from regard.nn import ops
from regard.nn.loss import SmoothedCrossEntropy
from regard.tasks import card
from regard.tasks.metrics import score
from regard.tasks.saver import Stoppable
from regard.tasks.sizing import size_for
from regard.tasks.teaching import Paths, ShouldStop
from regard.tasks.translation import Translation
from regard.text.vocabulary import Vocabularies
from regard.training.objective import Loss, Sample, Validation

SAMPLES = 3
"""Sample translations shown at a validation."""
MAX_EXTRA = 16
"""Tokens an output may have more than its source while validating: a young model does not know when to stop."""


def max_extra(recipe: Recipe) -> int:
    """:data:`MAX_EXTRA`, or fewer where learned positions end before; how text is made later must not matter here."""
    if not isinstance(recipe.model, TransformerSection) or recipe.model.positions != "learned":
        return MAX_EXTRA
    return min(MAX_EXTRA, recipe.model.max_positions - recipe.data.max_tokens - 1)


class TranslationTeaching:
    """The translation task as training sees it [Vaswani17 §5]; fits :class:`~regard.tasks.teaching.Teaching`.

    Args:
        task: the model in the making with its recipe and vocabularies.
        batches: for validation: the packed validation pairs.
        prepared: their text.
        paths: how products are computed.
    """

    def __init__(self, task: Translation, batches: Batches, prepared: Prepared, paths: Paths) -> None:
        self.task = task
        self.batches = batches
        self.prepared = prepared
        self.criterion = SmoothedCrossEntropy(task.recipe.training.label_smoothing)
        self.paths = paths
        ops.use(task.model, paths.training)
        ops.use(self.criterion, paths.training)

    @property
    def model(self) -> Transformer | Rnn:
        """The model whose weights are trained."""
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
            losses = [self.loss(batch) for batch in self.batches.validation]
            loss = sum(float(part.nll) for part in losses) / max(1, sum(part.count for part in losses))
            if not math.isfinite(loss):  # nothing can be searched for then
                return Validation(loss)
            recipe = self.task.recipe
            texts = self.prepared.validation_pairs()[: recipe.training.validation_sentences if generate else SAMPLES]
            found = self.task.nbest([source for source, _ in texts], 1, beam=1, max_extra=max_extra(recipe))
        hypotheses = [hypothesis[0] for hypothesis in found]
        samples = tuple(
            Sample(source, reference, hypothesis.text)
            for (source, reference), hypothesis in list(zip(texts, hypotheses, strict=True))[:SAMPLES]
        )
        if not generate:
            return Validation(loss, samples=samples)
        references = [reference for _, reference in texts]
        scores = score([h.text for h in hypotheses], references, recipe.text.target_language, samples=1)
        generated = sum(len(h.tokens) + 1 for h in hypotheses)
        return Validation(
            loss, {"bleu": scores.bleu, "chrf": scores.chrf}, samples, generated, self._expected(len(texts))
        )

    def _expected(self, count: int) -> int:
        return int(self.prepared.validation_target.lengths(0, np.arange(count)).sum())

    def data_lines(self) -> list[str]:
        """How many pairs there are."""
        pairs = self.prepared.pairs, self.prepared.validation_source.count
        return ["{:,} sentence pairs to learn from, {:,} to validate on".format(*pairs)]

    def finish(self, task: Translation, should_stop: ShouldStop) -> list[str]:
        """BLEU and chrF on the validation pairs, searched as it will be used."""
        sources, references = zip(*self.prepared.validation_pairs(), strict=True)
        scores = task.evaluate(sources, references, trace=Stoppable(should_stop))
        return card.scored(scores, task.recipe.decoding.beam)


@dataclass(frozen=True)
class TranslationJob:
    """Translation from corpora of sentence pairs."""

    corpora: Sequence[Corpus]
    validation: Corpus | None = None
    task = Translation

    def prepare(self, recipe: Recipe, folder: Path, progress: Progress) -> Prepared:
        """The pairs as ids."""
        return prepare(self.corpora, recipe, folder, self.validation, progress=progress)

    def assets(self, prepared: Prepared) -> Vocabularies:
        """The vocabularies learned from them."""
        return prepared.vocabularies

    def begin(self, model: nn.Module) -> None:
        """Nothing: translators begin afresh."""

    def teach(self, task: Translation, prepared: Prepared, paths: Paths) -> TranslationTeaching:
        """Teacher forcing on the pairs."""
        return TranslationTeaching(task, Batches(prepared, task.recipe), prepared, paths)

    def more(self) -> dict[str, str]:
        """Nothing."""
        return {}
