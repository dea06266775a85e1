"""Training shared by the tasks on running text: batches, loss and validation."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from regard.data.batches.language_modelling import PredictionBatch, PredictionExamples, SpanCorruptionExamples
from regard.data.prepare.prepared import PreparedExamples
from regard.data.prepare.shards import Shards
from regard.models.inputs import tokens
from regard.nn import ops
from regard.nn.loss import SmoothedCrossEntropy
from regard.tasks.protocols import BaseTraining, DataPaths, device_of
from regard.training.objective import Done, Loss, Sample, Validation, ignore_progress, mean_loss, tick

VALIDATED = 1 << 17
"""Tokens that are read at a validation at most, evenly chosen; the scores on the card are those of all."""


class RunningTextTraining(BaseTraining):
    """Training task on running text, before its loss; implements :class:`~regard.tasks.protocols.TrainingTask`.

    Args:
        task: the model to train.
        prepared: documents as ids.
        paths: how products are computed.
        characters: of the text, for the size table.
    """

    def __init__(self, task: Any, prepared: PreparedExamples, paths: DataPaths, characters: int) -> None:
        super().__init__(task, prepared, paths, characters)
        recipe = task.recipe
        self.batches = self.guessing(prepared.text, prepared.labels, recipe.seed).feed(recipe, prepared.fingerprint)
        self.criterion = SmoothedCrossEntropy(recipe.training.label_smoothing)
        ops.use(self.criterion, paths.training)

    @abstractmethod
    def guessing(self, text: Shards, labels: Shards, seed: int | None) -> PredictionExamples | SpanCorruptionExamples:
        """Documents as batches; without a seed their windows are always the same."""

    @abstractmethod
    def loss(self, batch: Any) -> Loss:
        """The smoothed loss of a batch."""

    @abstractmethod
    def samples(self) -> tuple[Sample, ...]:
        """A few guesses on the validation text, as people read them."""

    @cached_property
    def validation(self) -> list[Any]:
        """The validation text, or evenly chosen windows of it, packed once."""
        prepared, recipe = self.prepared, self.task.recipe
        found = self.guessing(prepared.validation_text, prepared.validation_labels, None)
        return [*found.some(recipe.seed, VALIDATED)]

    def validate(self, generate: bool) -> Validation:
        """Loss on the validation text, in full precision."""
        return self.predict_validation()

    @torch.no_grad()
    def predict_validation(self, done: Done = ignore_progress) -> Validation:
        with ops.using(self.model, self.paths.exact):
            loss = self.validation_loss(done)
            return Validation(loss, samples=self.samples() if math.isfinite(loss) else ())

    def validation_loss(self, done: Done) -> float:
        """Nats a token of the validation text."""
        return mean_loss([self.loss(batch) for batch in tick(self.validation, done)])

    def final_seconds(self, loss: float, text: float) -> float:
        """The loss of all the validation text."""
        return loss * max(1.0, self.prepared.validation_text.tokens / VALIDATED)

    def data_lines(self) -> list[str]:
        """How much text there is."""
        learned, held = self.prepared.text, self.prepared.validation_text
        return [f"{learned.tokens:,} tokens to learn from, {held.tokens:,} to validate on"]


class PredictionTraining(RunningTextTraining):
    """Training task of (masked) language models."""

    @abstractmethod
    def hidden_states(self, batch: PredictionBatch) -> Tensor:
        """``hidden_ND``: hidden states at the positions to predict."""

    @abstractmethod
    def table(self, hidden_ND: Tensor) -> tuple[Tensor, Tensor]:
        """``(hidden_NX, table_VX)``, whose products are the scores of all pieces."""

    def loss(self, batch: PredictionBatch) -> Loss:
        """The smoothed loss of a batch, every guess a sample."""
        self.criterion.train(self.model.training)
        hidden_NX, table_VX = self.table(self.hidden_states(batch))
        labels_N = torch.from_numpy(batch.labels_N).to(hidden_NX.device)
        ones_N = torch.ones(len(labels_N), dtype=hidden_NX.dtype, device=hidden_NX.device)
        total, nll = self.criterion(hidden_NX, table_VX, labels_N, ones_N, len(table_VX))
        return Loss(total, nll, len(labels_N))

    def model_inputs(self, batch: PredictionBatch) -> Any:
        """The model's input for a batch."""
        return tokens(batch.text, device_of(self.model))
