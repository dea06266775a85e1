"""Training by span corruption [Raffel20], with spans redrawn at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from regard.config import Recipe
from regard.data.batches.batch import PairBatch
from regard.data.batches.language_modelling import SpanCorruptionExamples, SpanSymbols, Windows
from regard.data.prepare.encoders import DocumentEncoder
from regard.data.prepare.folder import PreparedExamples
from regard.data.prepare.shards import Shards
from regard.nn import ops
from regard.system.errors import UsageError
from regard.tasks.language.gaps import decode_with_symbols
from regard.tasks.language.scores import PredictionScores
from regard.tasks.language.spans import SpanCorruption
from regard.tasks.language.training import RunningTextJob, RunningTextTraining
from regard.tasks.protocols import Divide, ShouldStop, find_at_once
from regard.tasks.training.base import ProductPaths, pair_loss
from regard.tasks.training.model_writer import StoppableTrace
from regard.text.tokenizers.vocabulary import AnyTokenizer
from regard.training.objective import Done, Loss, Sample, mean_loss
from regard.training.world import ALONE, World

SENTINELS = 100
"""As many as T5 has."""
SAMPLES = 2
"""Windows shown at a validation."""


class SpanCorruptionTraining(RunningTextTraining):
    """Span corruption as training sees it [Raffel20 §3.1.4].

    ``training.tokens`` are those of the source side here, the longer one.
    """

    task: SpanCorruption

    def guessing(self, text: Shards, labels: Shards, seed: int | None) -> SpanCorruptionExamples:
        """Windows of ``data.max_tokens``; missing spans differ in every epoch."""
        recipe, tokenizer = self.task.recipe, self.task.assets.tokenizer
        windows = Windows(text, max(1, recipe.data.max_tokens - 2), seed)  # both sides then fit into max_tokens
        symbols = SpanSymbols(tokenizer.sentinels, tokenizer.end, tokenizer.start)
        return SpanCorruptionExamples(windows, recipe.training.shard_tokens, symbols, recipe.masking)

    def loss(self, batch: PairBatch) -> Loss:
        """The smoothed loss of a batch, every target position a sample."""
        return pair_loss(self.task, self.criterion, batch)

    def validation_loss(self, done: Done, world: World = ALONE) -> float:
        """Nats a token of the validation text."""
        return mean_loss(self.validation, self.loss, world, done)

    def samples(self) -> tuple[Sample, ...]:
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

    def finish(self, task: SpanCorruption, should_stop: ShouldStop) -> list[str]:
        """Loss over the whole validation text."""
        found = self.validation_scores(task, self.prepared, self.paths, should_stop)
        return [f"* loss {found.loss:.4f} nats per missing token; perplexity {found.perplexity:.2f}"]

    @classmethod
    def validation_scores(
        cls,
        task: SpanCorruption,
        prepared: PreparedExamples,
        paths: ProductPaths,
        should_stop: ShouldStop,
        divide: Divide = find_at_once,
    ) -> PredictionScores:
        """Loss on the validation part of prepared text; its missing spans are fixed."""
        teaching, text = cls(task, prepared, paths, 0), prepared.validation_text
        teaching.criterion.eval()
        batches = teaching.guessing(text, prepared.validation_labels, None).some(task.recipe.seed, text.tokens)
        stop = StoppableTrace(should_stop)

        def sums(some: Sequence[PairBatch], first: int) -> list[tuple[float, int]]:
            found = []
            for batch in some:
                stop.record()
                loss = teaching.loss(batch)
                found.append((float(loss.nll), loss.count))
            return found

        with torch.no_grad(), ops.using(task.model, paths.exact):
            found = divide(sums, batches)
        return PredictionScores(*map(sum, zip(*(found or [(0.0, 0)]), strict=True)))


@dataclass(frozen=True)
class SpanCorruptionJob(RunningTextJob):
    """A model of missing spans from running text; from another one, where it is named."""

    task: ClassVar[type[SpanCorruption]] = SpanCorruption
    training: ClassVar[type[SpanCorruptionTraining]] = SpanCorruptionTraining
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
