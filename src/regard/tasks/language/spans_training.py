"""Training by span corruption [Raffel20], with spans redrawn at every step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch

from regard.config import Recipe
from regard.data.batches.batch import PairBatch
from regard.data.batches.document_windows import Windows
from regard.data.batches.language_modelling import SpanCorruptionExamples, SpanSymbols
from regard.data.prepare.encoders import DocumentEncoder
from regard.data.prepare.prepared import PreparedExamples
from regard.data.prepare.shards import Shards
from regard.models.inputs import pairs
from regard.models.transformer import Transformer
from regard.nn import ops
from regard.nn.loss import SmoothedCrossEntropy
from regard.system.errors import UsageError
from regard.tasks.defaults import epochs_for
from regard.tasks.language.dataset import RunningTextJob
from regard.tasks.language.gaps import decode_with_symbols
from regard.tasks.language.scores import PredictionScores
from regard.tasks.language.spans import SpanCorruption
from regard.tasks.language.training import VALIDATED
from regard.tasks.model_writer import StoppableTrace
from regard.tasks.protocols import DataPaths, ShouldStop
from regard.text.tokenizers.vocabulary import AnyTokenizer
from regard.training.objective import Done, Loss, Sample, Validation, ignore_progress, tick

SENTINELS = 100
"""As many as T5 has."""
SAMPLES = 2
"""Windows shown at a validation."""


class SpanCorruptionTraining:
    """Training task of span corruption [Raffel20 §3.1.4]; implements :class:`~regard.tasks.protocols.TrainingTask`.

    ``training.tokens`` are those of the source side here, the longer one.

    Args:
        task: the model to train.
        prepared: documents as ids.
        paths: how products are computed.
        characters: of the text, for the size table.
    """

    def __init__(self, task: SpanCorruption, prepared: PreparedExamples, paths: DataPaths, characters: int) -> None:
        self.task, self.prepared, self.paths, self.characters = task, prepared, paths, characters
        recipe = task.recipe
        self.batches = self._missing(prepared.text, recipe.seed).feed(recipe, prepared.fingerprint)
        self.criterion = SmoothedCrossEntropy(recipe.training.label_smoothing)
        ops.use(task.model, paths.training)
        ops.use(self.criterion, paths.training)

    def _missing(self, text: Shards, seed: int | None) -> SpanCorruptionExamples:
        recipe, tokenizer = self.task.recipe, self.task.assets.tokenizer
        windows = Windows(text, max(1, recipe.data.max_tokens - 2), seed)  # both sides then fit into max_tokens
        symbols = SpanSymbols(tokenizer.sentinels, tokenizer.end, tokenizer.start)
        return SpanCorruptionExamples(windows, recipe.training.tokens, symbols, recipe.masking)

    @property
    def model(self) -> Transformer:
        """The model to train."""
        return self.task.model

    @property
    def epochs(self) -> int:
        """By the table of sizes."""
        return epochs_for(self.task.recipe.task, self.characters, self.task.recipe.model.family)

    def loss(self, batch: PairBatch) -> Loss:
        """The smoothed loss of a batch, every target position a sample."""
        self.criterion.train(self.model.training)
        inputs = pairs(batch, self.task.device)
        hidden_TD = self.model(inputs)
        table_V1D = self.model.output.weight
        total, nll = self.criterion(hidden_TD, table_V1D, inputs.labels_T, inputs.weight_T, self.model.pieces)
        return Loss(total, nll, batch.tokens)

    @cached_property
    def validation(self) -> list[PairBatch]:
        """The validation text, or evenly chosen windows of it; its missing spans are fixed."""
        return self._missing(self.prepared.validation_text, None).some(self.task.recipe.seed, VALIDATED)

    def validate(self, generate: bool) -> Validation:
        """Loss on the validation text, in full precision."""
        return self._validation()

    @torch.no_grad()
    def _validation(self, done: Done = ignore_progress) -> Validation:
        with ops.using(self.model, self.paths.exact):
            loss = self._scores(self.validation, done=done).loss
            return Validation(loss, samples=self._samples() if math.isfinite(loss) else ())

    def trial(self, generate: bool, done: Done) -> None:
        """The loss, and the output for a few windows."""
        if not generate:
            self._validation(done)

    def _scores(
        self, batches: list[PairBatch], stop: StoppableTrace | None = None, done: Done = ignore_progress
    ) -> PredictionScores:
        nats, count = 0.0, 0
        for batch in tick(batches, done):
            if stop:
                stop.record()
            part = self.loss(batch)
            nats, count = nats + float(part.nll), count + part.count
        return PredictionScores(nats, count)

    def _samples(self) -> tuple[Sample, ...]:
        """The first windows: the input, the missing spans, and the model's."""
        tokenizer, batch = self.task.assets.tokenizer, self.validation[0]
        sentinels = frozenset(tokenizer.sentinels)
        read, said = batch.source, batch.target
        found = []
        for b in range(min(SAMPLES, read.count)):
            source = read.ids_T[read.starts_B[b] :][: read.lengths_B[b]]
            target = batch.labels_T[said.starts_B[b] :][: said.lengths_B[b]]
            (spans,) = self.task.spans([source], beam=1)
            guess = [id for sentinel, span in spans.items() for id in (sentinel, *span)]
            shown = (
                decode_with_symbols(tokenizer, ids, sentinels) for ids in (source.tolist(), target.tolist(), guess)
            )
            found.append(Sample(*shown))
        return tuple(found)

    def data_lines(self) -> list[str]:
        """How much text there is."""
        learned, held = self.prepared.text, self.prepared.validation_text
        return [f"{learned.tokens:,} tokens to learn from, {held.tokens:,} to validate on"]

    def final_seconds(self, loss: float, text: float) -> float:
        """The loss of all the validation text."""
        return loss * max(1.0, self.prepared.validation_text.tokens / VALIDATED)

    def finish(self, task: SpanCorruption, should_stop: ShouldStop) -> list[str]:
        """Loss over the whole validation text."""
        found = self.validation_scores(task, self.prepared, self.paths, should_stop)
        return [f"* loss {found.loss:.4f} nats per missing token; perplexity {found.perplexity:.2f}"]

    @classmethod
    def validation_scores(
        cls, task: SpanCorruption, prepared: PreparedExamples, paths: DataPaths, should_stop: ShouldStop
    ) -> PredictionScores:
        """Loss on the validation part of prepared text; its missing spans are fixed."""
        teaching, text = cls(task, prepared, paths, 0), prepared.validation_text
        teaching.criterion.eval()
        batches = teaching._missing(text, None).some(task.recipe.seed, text.tokens)
        with torch.no_grad(), ops.using(task.model, paths.exact):
            return teaching._scores(batches, StoppableTrace(should_stop))


@dataclass(frozen=True)
class SpanCorruptionJob(RunningTextJob):
    """A model of missing spans from running text; from another one, where it is named."""

    task: ClassVar[type[SpanCorruption]] = SpanCorruption
    symbols: ClassVar[tuple[str, ...]] = tuple(f"<extra_{number}>" for number in range(SENTINELS))

    @staticmethod
    def encoder(tokenizer: AnyTokenizer, recipe: Recipe) -> DocumentEncoder:
        """Pieces alone.

        Raises:
            UsageError: the pretrained model's vocabulary has no sentinels.
        """
        if len(tokenizer.sentinels) < 2:
            raise UsageError("its vocabulary has no symbols for missing spans, like <extra_0>", "--from")
        return DocumentEncoder(tokenizer, ended=False)

    def teach(self, task: SpanCorruption, prepared: PreparedExamples, paths: DataPaths) -> SpanCorruptionTraining:
        """The training task for a fresh model."""
        return SpanCorruptionTraining(task, prepared, paths, self.characters)
