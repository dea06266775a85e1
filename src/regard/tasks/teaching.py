"""Teacher forcing: the loss of a translator on sentence pairs, and its validation, as training wants them."""

from __future__ import annotations

import math

import numpy as np
import torch

from regard.config import Recipe
from regard.data.batch import PairBatch
from regard.data.batches import Batches
from regard.data.prepared import Prepared
from regard.models.inputs import pairs
from regard.models.transformer import Transformer
from regard.nn import ops
from regard.nn.loss import SmoothedCrossEntropy
from regard.tasks.metrics import score
from regard.tasks.translation import Translation
from regard.training.objective import Loss, Sample, Validation

SAMPLES = 3
"""Sample translations shown at a validation."""
MAX_EXTRA = 16
"""Tokens an output may have more than its source while validating: a young model does not know when to stop."""


def max_extra(recipe: Recipe) -> int:
    """:data:`MAX_EXTRA`, or fewer where learned positions end before; how text is made later must not matter here."""
    if recipe.model.positions != "learned":
        return MAX_EXTRA
    return min(MAX_EXTRA, recipe.model.max_positions - recipe.data.max_tokens - 1)


class Teaching:
    """The translation task as training sees it [Vaswani17 §5]; fits ``training.objective.Objective`` by shape.

    Args:
        translation: the model in the making with its recipe and vocabularies.
        batches: for validation: the packed validation pairs.
        prepared: their text.
        training_path, exact_path: how products are computed while training, and while validating.
    """

    def __init__(
        self,
        translation: Translation,
        batches: Batches,
        prepared: Prepared,
        training_path: ops.Path,
        exact_path: ops.Path,
    ) -> None:
        self.translation = translation
        self.batches = batches
        self.prepared = prepared
        self.criterion = SmoothedCrossEntropy(translation.recipe.training.label_smoothing)
        self.exact_path: ops.Path = exact_path
        ops.use(translation.model, training_path)
        ops.use(self.criterion, training_path)

    @property
    def model(self) -> Transformer:
        """The model whose weights are trained."""
        return self.translation.model

    def loss(self, batch: PairBatch) -> Loss:
        """The smoothed loss of a batch, every target position a sample."""
        self.criterion.train(self.model.training)
        inputs = pairs(batch, self.translation.device)
        hidden_TD = self.model(inputs)
        table_V1D = self.model.output.weight
        total, nll = self.criterion(hidden_TD, table_V1D, inputs.labels_T, inputs.weight_T, self.model.pieces)
        return Loss(total, nll, batch.tokens)

    @torch.no_grad()
    def validate(self, generate: bool) -> Validation:
        """Loss on all validation pairs; greedy BLEU and chrF on the first few hundred; in full precision."""
        with ops.using(self.model, self.exact_path):
            losses = [self.loss(batch) for batch in self.batches.validation]
            loss = sum(float(part.nll) for part in losses) / max(1, sum(part.count for part in losses))
            if not math.isfinite(loss):  # nothing can be searched for then
                return Validation(loss)
            recipe = self.translation.recipe
            texts = self.prepared.validation_pairs()[: recipe.training.validation_sentences if generate else SAMPLES]
            found = self.translation.nbest([source for source, _ in texts], 1, beam=1, max_extra=max_extra(recipe))
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
