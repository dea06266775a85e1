"""Labels of whole texts or images in the making: the loss, the validation, and what is fitted at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import Classification as Section
from regard.config import nearest
from regard.data.coding import LabelIds
from regard.data.corpora import Corpus
from regard.data.labels import split_labels
from regard.data.prepare_examples import PreparedExamples
from regard.errors import RegardError
from regard.models.adversary import EMBEDDING, worst
from regard.models.inputs import Patches, Tokens
from regard.nn import ops, probe
from regard.tasks.criteria import CRITERIA, Labels
from regard.tasks.reading import averaged
from regard.tasks.sizing import epochs_for
from regard.tasks.teaching import Paths, ShouldStop
from regard.tasks.verdicts import Scores
from regard.training.objective import Done, Loss, Sample, Validation, tick, unheard

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
    def ids(self) -> LabelIds:
        """Every label once, in order, as ids; that of what belongs to no class stands apart."""
        outside = self._section.out_of_scope
        names = sorted(label for label in self._counts if label and label != outside)
        return LabelIds(self._section.kind, names, outside)


def refuse_nothing_outside(section: Section, corpora: Sequence[Corpus], validation: Corpus | None) -> None:
    """Raise a RegardError where a label of what belongs to no class is named, but nothing has it to fit a threshold to.

    Args:
        section: names it; a threshold that it gives needs nothing to be fitted to.
        corpora: what is learned from, and validated on where there is no ``validation``.
    """
    if section.kind != "single" or not section.out_of_scope or section.threshold:
        return
    there = dict[str, None]()
    every = [*corpora, *([validation] if validation else [])]
    for _, label in (pair for corpus in every for pair in corpus.pairs()):
        if label == section.out_of_scope:
            return
        there[label] = None
    raise RegardError(
        f"nothing to learn from or to validate on has the label {section.out_of_scope!r}, so no threshold can be "
        f"chosen; name another, or give classification.threshold.{nearest(section.out_of_scope, there)}",
        "classification.out_of_scope",
    )


class LabelTeaching(ABC):
    """Labels of whole examples as training sees them; fits :class:`~regard.tasks.teaching.Teaching`.

    While it is learned from, each window of a text that is too long for one is an example of its own. Where the model
    is judged, or something fitted, a text counts once, by the mean of its windows' scores, as in use.

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
        section = task.recipe.classification
        self.criterion = CRITERIA[section.kind](
            section, task.recipe.training.label_smoothing, len(task.assets.labels), self._weights()
        )
        ops.use(task.model, paths.training)

    @abstractmethod
    def read(self, batch: Any) -> Tokens | Patches:
        """What the model reads of a batch."""

    @abstractmethod
    def validating(self) -> list[Any]:
        """All windows of the validation examples, in order, packed."""

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
        return epochs_for(self.task.recipe.task, self.prepared.wholes.count, self.task.recipe.model.family)

    def _refuse_nothing_to_tell_apart(self) -> None:
        """Raise a RegardError where one class alone is learned, or no validation example is of a class."""
        if self.task.recipe.classification.kind != "single":
            return
        classes, held_out = len(self.task.assets.labels), self._held_out
        if classes < 2:
            raise RegardError(f"{classes or 'no'} class is left to learn from: there is nothing to tell apart")
        if (held_out.labels_X >= classes).all():
            message = f"none of the {len(held_out.counts_B):,} has a label that anything is learned of"
            raise RegardError(message, f"the {self.noun} to validate on")

    @cached_property
    def _held_out(self) -> Labels:
        """The labels of the validation examples."""
        return Labels(*self.prepared.validation_labels.gather(0, self.prepared.validation_wholes.first_B))

    def _weights(self) -> Tensor | None:
        """A weight for each class, the mean over all windows being one, where they are to be balanced."""
        section = self.task.recipe.classification
        if section.class_weights == "none" or section.kind == "regression":
            return None
        labels, _ = self.prepared.labels.gather(0, np.arange(self.prepared.count))
        counts_C = np.bincount(labels, minlength=len(self.task.assets.labels))[: len(self.task.assets.labels)]
        return torch.from_numpy(counts_C.sum() / (len(counts_C) * np.maximum(counts_C, 1))).float()

    def loss(self, batch: Any) -> Loss:
        """The loss of a batch's windows; those whose label is not known count nothing.

        In training it may be the mean (in the paper the sum) of that and of the loss when embeddings are moved against
        it [Miyato17 §3].
        """
        given, size = self.read(batch), self.task.recipe.classification.adversarial
        if not size or not self.model.training:
            return self._loss(given, batch)
        with probe.listen([EMBEDDING]) as heard:
            plain = self._loss(given, batch)
        moved_TD = worst(plain.total, heard[EMBEDDING][0], given.sequences, size)
        with probe.replace(EMBEDDING, lambda x_TD: x_TD + moved_TD):
            moved = self._loss(given, batch)
        return Loss((plain.total + moved.total) / 2, plain.nll, plain.count)

    def _loss(self, given: Tokens | Patches, batch: Any) -> Loss:
        score_BC = self.model(given)
        return self.criterion.loss(score_BC, self.criterion.wanted(batch, score_BC.device), self.model.training)

    @torch.no_grad()
    def validate(self, generate: bool) -> Validation:
        """Loss and scores of the validation examples, in full precision."""
        score_BC, wanted = self._judged(), self._wanted
        loss = self.criterion.loss(torch.from_numpy(score_BC), wanted, False)
        scores = self.criterion.scores(score_BC, wanted.numpy())
        return Validation(float(loss.nll) / max(1, loss.count), scores, self._samples(score_BC))

    def trial(self, generate: bool, done: Done) -> None:
        """Every validation example through the model; nothing takes longer."""
        if not generate:
            self._judged(done)

    @torch.no_grad()
    def _judged(self, done: Done = unheard) -> Scores:
        """``score_BC`` of the validation examples, by the model as it is, in full precision."""
        with ops.using(self.model, self.paths.exact):
            found = [self.model(self.read(batch)) for batch in tick(self.validation, done)]
        return averaged(torch.cat(found).cpu().numpy(), self.prepared.validation_wholes.windows_B)

    @cached_property
    def validation(self) -> list[Any]:
        """The windows of the validation examples, packed once."""
        return self.validating()

    @cached_property
    def _wanted(self) -> Tensor:
        return self.criterion.wanted(self._held_out, torch.device("cpu"))

    def _samples(self, score_BC: Scores) -> tuple[Sample, ...]:
        places = np.linspace(0, len(score_BC) - 1, min(SAMPLES, len(score_BC))).astype(np.int64)
        verdicts = self.task.verdicts(score_BC[places])
        return tuple(
            Sample(
                self.shown(place),
                self.criterion.named(self._label(place), self.task.assets.labels),
                f"{verdict.label} {verdict.probability:.2f}" if verdict.value is None else f"{verdict.value:.3g}",
            )
            for place, verdict in zip(places.tolist(), verdicts, strict=True)
        )

    def _label(self, place: int) -> NDArray[np.int64]:
        return self.prepared.validation_labels.sentence(self.prepared.validation_wholes.first_B[place])

    def data_lines(self) -> list[str]:
        """How many examples and labels there are, and how many windows where a text has several."""
        prepared, labels = self.prepared, len(self.task.assets.labels)
        said = [prepared.wholes.counted(f"{self.noun} to learn from")]
        said.append(prepared.validation_wholes.counted("to validate on"))
        if self.task.recipe.classification.kind != "regression":
            said.append(f"{labels:,} labels")
        return [", ".join(said)]

    def final_seconds(self, loss: float, text: float) -> float:
        """As a validation."""
        return loss

    def finish(self, task: Any, should_stop: ShouldStop) -> list[str]:
        """Fit temperature and threshold to the validation examples, and say how well the model does on them."""
        score_BC, wanted = type(self)(task, self.prepared, self.paths)._judged(), self._wanted.numpy()
        fitted = self.criterion.fitted(score_BC, wanted)
        task.assets = replace(task.assets, fitted=fitted)
        scores = [f"{name} {value:.2f}" for name, value in self.criterion.scores(score_BC, wanted).items()]
        return [f"* {line}" for line in scores + self.criterion.notes(score_BC, wanted, fitted)]
