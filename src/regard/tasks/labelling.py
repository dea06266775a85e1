"""Labels of whole texts or images in the making: the loss, the validation, and what is fitted at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import Classification as Section
from regard.data.labels import split_labels
from regard.data.prepare_examples import PreparedExamples
from regard.errors import RegardError
from regard.nn import ops
from regard.tasks.criteria import CRITERIA
from regard.tasks.sizing import epochs_for
from regard.tasks.teaching import Paths, ShouldStop
from regard.training.objective import Loss, Sample, Validation

SAMPLES = 3
"""Texts or images shown at a validation."""


class LabelNames:
    """The labels of the examples that are learned from, counted while they pass."""

    def __init__(self, section: Section) -> None:
        self._section, self._counts = section, Counter[str]()

    def see(self, label: str) -> None:
        """Count the label, or the labels, of an example; a number is none."""
        if self._section.kind != "regression":
            self._counts.update(split_labels(label) if self._section.kind == "multi" else [label])

    @property
    def names(self) -> list[str]:
        """Every label once, in order; not that of what belongs to no class."""
        return sorted(label for label in self._counts if label and label != self._section.out_of_scope)


class LabelTeaching(ABC):
    """Labels of whole examples as training sees them; fits :class:`~regard.tasks.teaching.Teaching`.

    Args:
        task: the model in the making.
        prepared: examples and labels as ids.
        paths: how products are computed.
    """

    noun: ClassVar[str]
    """What has a label, in the plural."""

    def __init__(self, task: Any, prepared: PreparedExamples, paths: Paths) -> None:
        self.task, self.prepared, self.paths = task, prepared, paths
        self._refuse_nothing_to_tell_apart()
        self.criterion = CRITERIA[task.recipe.classification.kind](
            task.recipe.training.label_smoothing, len(task.assets.labels), self._weights()
        )
        ops.use(task.model, paths.training)

    @abstractmethod
    def scored(self, batch: Any) -> Tensor:
        """``score_BC`` of a batch by the model as it is."""

    @abstractmethod
    def validating(self) -> list[Any]:
        """The validation examples, packed."""

    @abstractmethod
    def shown(self, place: int) -> str:
        """A validation example as people see it."""

    @property
    def model(self) -> nn.Module:
        """The model whose weights are trained."""
        found: nn.Module = self.task.model
        return found

    @property
    def epochs(self) -> int:
        """By the table of sizes."""
        return epochs_for(self.task.recipe.task, self.prepared.count)

    def _refuse_nothing_to_tell_apart(self) -> None:
        """Raise a RegardError where one class alone is learned, or no validation example is of a class."""
        if self.task.recipe.classification.kind != "single":
            return
        classes, held_out = len(self.task.assets.labels), self.prepared.validation_labels
        if classes < 2:
            raise RegardError(f"{classes or 'no'} class is left to learn from: there is nothing to tell apart")
        if (held_out.gather(0, np.arange(held_out.count))[0] >= classes).all():
            message = f"none of the {held_out.count:,} has a label that anything is learned of"
            raise RegardError(message, f"the {self.noun} to validate on")

    def _weights(self) -> Tensor | None:
        """A weight for each class, the mean over the examples being one, where they are to be balanced."""
        section = self.task.recipe.classification
        if section.class_weights == "none" or section.kind == "regression":
            return None
        labels, _ = self.prepared.labels.gather(0, np.arange(self.prepared.count))
        counts_C = np.bincount(labels, minlength=len(self.task.assets.labels) + 1)[:-1]
        return torch.from_numpy(counts_C.sum() / (len(counts_C) * np.maximum(counts_C, 1))).float()

    def loss(self, batch: Any) -> Loss:
        """The loss of a batch's examples; those whose label is not known count nothing."""
        score_BC = self.scored(batch)
        return self.criterion.loss(score_BC, self.criterion.wanted(batch, score_BC.device), self.model.training)

    @torch.no_grad()
    def validate(self, generate: bool) -> Validation:
        """Loss and scores of the validation examples, in full precision; a window of a long text counts as a text."""
        with ops.using(self.model, self.paths.exact):
            found = [(self.scored(batch), batch) for batch in self.validation]
        losses = [
            self.criterion.loss(score_BC, self.criterion.wanted(batch, score_BC.device), False)
            for score_BC, batch in found
        ]
        loss = sum(float(part.nll) for part in losses) / max(1, sum(part.count for part in losses))
        score_BC = torch.cat([one for one, _ in found]).double().cpu().numpy()
        return Validation(loss, self.criterion.scores(score_BC, self._wanted()), self._samples(score_BC))

    @cached_property
    def validation(self) -> list[Any]:
        """The validation examples, packed once."""
        return self.validating()

    def _wanted(self) -> NDArray[Any]:
        wanted = [self.criterion.wanted(batch, torch.device("cpu")) for batch in self.validation]
        found: NDArray[Any] = torch.cat(wanted).numpy()
        return found

    def _samples(self, score_BC: NDArray[np.float64]) -> tuple[Sample, ...]:
        places = np.linspace(0, len(score_BC) - 1, min(SAMPLES, len(score_BC))).astype(np.int64)
        verdicts = self.task.verdicts(score_BC[places])
        return tuple(
            Sample(
                self.shown(int(place)),
                self.criterion.named(self.prepared.validation_labels.sentence(int(place)), self.task.assets.labels),
                f"{verdict.label} {verdict.probability:.2f}" if verdict.value is None else f"{verdict.value:.3g}",
            )
            for place, verdict in zip(places, verdicts, strict=True)
        )

    def data_lines(self) -> list[str]:
        """How many examples and labels there are."""
        learned, held_out = self.prepared.count, self.prepared.validation_labels.count
        counts = f"{learned:,} {self.noun} to learn from, {held_out:,} to validate on"
        labels = (
            "" if self.task.recipe.classification.kind == "regression" else f", {len(self.task.assets.labels):,} labels"
        )
        return [counts + labels]

    def finish(self, task: Any, should_stop: ShouldStop) -> list[str]:
        """Fit temperature and threshold to the validation examples, and say how well the model does on them."""
        teaching = type(self)(task, self.prepared, self.paths)
        with torch.no_grad(), ops.using(task.model, self.paths.exact):
            found = [teaching.scored(batch).double().cpu().numpy() for batch in self.validation]
        score_BC, wanted = np.concatenate(found), self._wanted()
        fitted = self.criterion.fitted(score_BC, wanted, task.recipe)
        task.assets = replace(task.assets, fitted=fitted)
        scores = self.criterion.scores(score_BC, wanted)
        lines = [f"* {name} {value:.2f}" for name, value in scores.items()]
        return lines + self.criterion.notes(score_BC, wanted, fitted)
