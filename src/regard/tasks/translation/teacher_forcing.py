"""Training on pairs of texts by teacher forcing: loss, validation that writes, and what tells how long that takes."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import torch

from regard.config import Recipe, TransformerSection
from regard.data.batches.batch import PairBatch
from regard.data.batches.texts import PairBatches
from regard.data.corpora.corpus import TextPair
from regard.decoding.hypotheses import Rows
from regard.decoding.trace import Trace
from regard.nn import ops
from regard.nn.loss import SmoothedCrossEntropy
from regard.tasks.engine import use_engine
from regard.tasks.metrics.calibration import doubted_below
from regard.tasks.protocols import ShouldStop, TargetWriter
from regard.tasks.training.base import BaseTraining, ProductPaths, pair_loss
from regard.tasks.training.model_writer import StoppableTrace
from regard.training.objective import Done, Loss, Sample, Validation, ignore_progress, mean_loss
from regard.training.world import ALONE, World

if TYPE_CHECKING:
    from regard.tasks.translation.text_to_text.writer import TextToText
    from regard.tasks.translation.translator import Translation

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


class GeneratedText(Protocol):
    """A text that a search found."""

    @property
    def text(self) -> str:
        """On one line."""


class Writer(TargetWriter, Protocol):
    """A task that writes the best texts for texts."""

    def nbest(
        self,
        texts: Sequence[str],
        n: int = 1,
        beam: int | None = None,
        *,
        max_extra: int | None = None,
        trace: Trace | None = None,
        scores: bool = True,
    ) -> Sequence[Sequence[GeneratedText]]:
        """The ``n`` best of each text, best first; their scores may be left out."""


AnyWriter = TypeVar("AnyWriter", bound=Writer)


class TeacherForcing(BaseTraining[AnyWriter]):
    """Training on pairs of texts [Vaswani17 §5]; implements :class:`~regard.tasks.training.base.TrainingTask`.

    Args:
        task: the model to train, with its recipe and vocabularies.
        batches: for validation: the packed validation pairs.
        prepared: their text.
        paths: how products are computed.
    """

    def __init__(self, task: AnyWriter, batches: PairBatches, prepared: Any, paths: ProductPaths) -> None:
        self.criterion = SmoothedCrossEntropy(task.recipe.training.label_smoothing)
        super().__init__(task, prepared, paths, batches.pairs, self.criterion)
        self.batches = batches

    @property
    def max_extra(self) -> int:
        """Tokens an output may have more than its source while validating."""
        return max_extra(self.task.recipe)

    @abstractmethod
    def scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> Mapping[str, float]:
        """The scores of a validation, that first by which the best model is chosen."""

    def loss(self, batch: PairBatch) -> Loss:
        """The smoothed loss of a batch, every target position a sample."""
        return pair_loss(self.task, self.criterion, batch)

    @torch.no_grad()
    def validate(self, generate: bool, world: World = ALONE) -> Validation:
        """Loss on all validation pairs; scores of greedy search on the first few hundred; in full precision."""
        with ops.using(self.model, self.paths.exact):
            loss = self.predict_validation(world=world)
            if not math.isfinite(loss):  # nothing can be searched for then
                return Validation(loss)
            texts = self._texts(generate)
            hypotheses = self._translate_texts(texts, world)
        samples = tuple(
            Sample(source, reference, hypothesis)
            for (source, reference), hypothesis in list(zip(texts, hypotheses, strict=True))[:SAMPLES]
        )
        if not generate:
            return Validation(loss, samples=samples)
        references = [reference for _, reference in texts]
        return Validation(loss, dict(self.scores(hypotheses, references)), samples)

    @torch.no_grad()
    def trial(self, generate: bool, done: Done) -> None:
        """Loss and samples; or the sentences of a validation, to as many tokens as their references have.

        A model that has not learned to stop writes more, which is not held against it.
        """
        if generate:
            done(0.0)
        with ops.using(self.model, self.paths.exact):
            if not generate:
                if math.isfinite(self.predict_validation(done)):
                    self._greedy(self._texts(False))
            elif math.isfinite(mean_loss(self.batches.validation[:1], self.loss, ALONE)):
                texts = self._texts(True)
                self._greedy(texts, ValidationSearch(self._target_tokens(len(texts)), done))

    def predict_validation(self, done: Done = ignore_progress, world: World = ALONE) -> float:
        """Nats a token of all validation pairs."""
        return mean_loss(self.batches.validation, self.loss, world, done)

    def _texts(self, generate: bool) -> list[TextPair]:
        """The validation texts to be searched for."""
        section = self.task.recipe.training
        found: list[TextPair] = self.prepared.validation_pairs()
        return found[: section.validation_sentences if generate else SAMPLES]

    def _translate_texts(self, texts: Sequence[TextPair], world: World) -> list[str]:
        """What is written for the texts, which are searched in as many groups as a step has shards."""
        each = -(-len(texts) // world.shards)
        groups = [texts[first : first + each] for first in range(0, len(texts), each)]

        def search(group: Sequence[TextPair]) -> bytes:
            return json.dumps([hypothesis.text for hypothesis in self._greedy(group)]).encode()

        return [text for found in world.divide(groups, search) for text in json.loads(found)]

    def _greedy(self, texts: Sequence[TextPair], trace: Trace | None = None) -> list[GeneratedText]:
        sources = [source for source, _ in texts]
        found = self.task.nbest(sources, 1, beam=1, max_extra=self.max_extra, trace=trace, scores=False)
        return [best[0] for best in found]

    def _target_tokens(self, count: int) -> int:
        return int(self.prepared.validation_target.lengths(0, np.arange(count)).sum())

    def final_seconds(self, loss: float, text: float) -> float:
        """Estimated seconds of final scoring: greedy search scaled to all validation pairs and the beam."""
        held, beam = self.prepared.validation_source.count, self.task.recipe.decoding.beam
        tokens = self._target_tokens(held) / max(1, self._target_tokens(len(self._texts(True))))
        return (text - loss) * tokens * (BEAMS * beam if beam > 1 else 1)


def final_outputs(
    task: Translation | TextToText, sources: Sequence[str], references: Sequence[str], should_stop: ShouldStop
) -> list[str]:
    """What the finished model writes for the validation texts; below which confidence it is doubted goes to its assets.

    Raises:
        Stopped: ``should_stop`` returned true.
    """
    use_engine(task)
    best = [found[0] for found in task.nbest(sources, trace=StoppableTrace(should_stop))]
    right = [one.text.strip() == wanted.strip() for one, wanted in zip(best, references, strict=True)]
    task.assets = replace(task.assets, doubted_below=doubted_below([one.confidence for one in best], right))
    return [one.text for one in best]


class ValidationSearch(Trace):
    """Reports at every step the share of expected tokens generated; records nothing."""

    def __init__(self, expected: int, done: Done) -> None:
        super().__init__()
        self.expected, self.done, self.tokens = max(1, expected), done, 0

    def record(self, rows: Rows, *step: Any) -> None:
        """Every row has a token more."""
        self.tokens += rows.count
        self.done(min(1.0, self.tokens / self.expected))
