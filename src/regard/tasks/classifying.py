"""A classifier in the making: its data, its loss, its validation, and what is fitted when the weights are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import Recipe
from regard.data.coding import ClassCoding, Coding
from regard.data.corpora import Corpus, Pair
from regard.data.examples import Examples, TextBatch
from regard.data.framing import Frame
from regard.data.labels import split_labels
from regard.data.prepare_examples import PreparedExamples, prepare_examples
from regard.data.survey import Progress
from regard.models.bert import Bert
from regard.models.inputs import tokens
from regard.nn import ops
from regard.tasks import calibration
from regard.tasks.classes import class_scores, label_scores, number_scores
from regard.tasks.classification import Classification
from regard.tasks.pretrained import Pretrained, learned_tokenizer
from regard.tasks.sizing import epochs_for
from regard.tasks.teaching import Paths, ShouldStop, device_of
from regard.tasks.text_assets import Fitted, TextAssets
from regard.training.objective import Loss, Sample, Validation

SAMPLES = 3
"""Texts shown at a validation."""
NUMBER = "number"
"""What a regression's only score is called."""


class ClassificationTeaching:
    """Classification as training sees it; fits :class:`~regard.tasks.teaching.Teaching`.

    Args:
        task: the model in the making.
        prepared: texts and labels as ids.
        paths: how products are computed.
    """

    def __init__(self, task: Classification, prepared: PreparedExamples, paths: Paths) -> None:
        self.task, self.prepared, self.paths = task, prepared, paths
        section = task.recipe.training
        self.examples = Examples.of(prepared.text, prepared.labels, section.tokens)
        make = self.examples.dimmed(task.recipe.data.word_dropout, task.assets.hidden, task.recipe.seed)
        self.batches = self.examples.feed(task.recipe, prepared.fingerprint, make)
        self.criterion = CRITERIA[task.recipe.classification.kind](
            section.label_smoothing, len(task.assets.labels), self._weights()
        )
        ops.use(task.model, paths.training)

    @property
    def model(self) -> Bert:
        """The model whose weights are trained."""
        return self.task.model

    @property
    def epochs(self) -> int:
        """By the table of sizes."""
        return epochs_for(self.task.recipe.task, self.prepared.count)

    def _weights(self) -> Tensor | None:
        """A weight for each class, the mean over the texts being one, where they are to be balanced."""
        if self.task.recipe.classification.class_weights == "none":
            return None
        labels, _ = self.prepared.labels.gather(0, np.arange(self.prepared.count))
        counts_C = np.bincount(labels, minlength=len(self.task.assets.labels) + 1)[:-1]
        return torch.from_numpy(counts_C.sum() / (len(counts_C) * np.maximum(counts_C, 1))).float()

    def loss(self, batch: TextBatch) -> Loss:
        """The loss of a batch's texts; those whose label is not known count nothing."""
        score_BC = self._scores(batch)
        return self.criterion.loss(score_BC, self.criterion.wanted(batch, score_BC.device), self.model.training)

    def _scores(self, batch: TextBatch) -> Tensor:
        score_BC: Tensor = self.model(tokens(batch.text, device_of(self.model)))
        return score_BC

    @torch.no_grad()
    def validate(self, generate: bool) -> Validation:
        """Loss and scores of the validation texts, in full precision; a window of a long text counts as a text."""
        with ops.using(self.model, self.paths.exact):
            found = [(self._scores(batch), batch) for batch in self.validation]
        losses = [
            self.criterion.loss(score_BC, self.criterion.wanted(batch, score_BC.device), False)
            for score_BC, batch in found
        ]
        loss = sum(float(part.nll) for part in losses) / max(1, sum(part.count for part in losses))
        score_BC = torch.cat([one for one, _ in found]).double().cpu().numpy()
        wanted = torch.cat([self.criterion.wanted(batch, torch.device("cpu")) for _, batch in found]).numpy()
        return Validation(loss, self.criterion.scores(score_BC, wanted), self._samples(score_BC))

    @cached_property
    def validation(self) -> list[TextBatch]:
        """The validation texts, packed."""
        prepared = self.prepared
        return replace(self.examples, text=prepared.validation_text, labels=prepared.validation_labels).all()

    def _samples(self, score_BC: NDArray[np.float64]) -> tuple[Sample, ...]:
        tokenizer, count = self.task.assets.tokenizer, min(SAMPLES, len(score_BC))
        places = np.linspace(0, len(score_BC) - 1, count).astype(np.int64)
        verdicts = self.task.verdicts(score_BC[places])
        return tuple(
            Sample(
                tokenizer.decode(self.prepared.validation_text.sentence(int(place))),
                self.criterion.named(self.prepared.validation_labels.sentence(int(place)), self.task.assets.labels),
                f"{verdict.label} {verdict.probability:.2f}" if verdict.value is None else f"{verdict.value:.3g}",
            )
            for place, verdict in zip(places, verdicts, strict=True)
        )

    def data_lines(self) -> list[str]:
        """How many texts and labels there are."""
        counts = f"{self.prepared.count:,} texts to learn from, {self.prepared.validation_text.count:,} to validate on"
        labels = (
            "" if self.task.recipe.classification.kind == "regression" else f", {len(self.task.assets.labels):,} labels"
        )
        return [counts + labels]

    def finish(self, task: Classification, should_stop: ShouldStop) -> list[str]:
        """Fit temperature and threshold to the validation texts, and say how well the model does on them."""
        teaching = ClassificationTeaching(task, self.prepared, self.paths)
        with torch.no_grad(), ops.using(task.model, self.paths.exact):
            found = [(teaching._scores(batch).double().cpu().numpy(), batch) for batch in self.validation]
        score_BC = np.concatenate([one for one, _ in found])
        wanted = torch.cat([self.criterion.wanted(batch, torch.device("cpu")) for _, batch in found]).numpy()
        fitted = self.criterion.fitted(score_BC, wanted, task.recipe)
        task.assets = replace(task.assets, fitted=fitted)
        scores = self.criterion.scores(score_BC, wanted)
        lines = [f"* {name} {value:.2f}" for name, value in scores.items()]
        return lines + self.criterion.notes(score_BC, wanted, fitted)


class OneOf:
    """One label a text: cross-entropy, smoothed; classes may weigh."""

    def __init__(self, smoothing: float, classes: int, weights: Tensor | None) -> None:
        self.smoothing, self.classes, self.weights = smoothing, classes, weights

    def wanted(self, batch: TextBatch, device: torch.device) -> Tensor:
        """The class of each text; one behind the last: not known."""
        return torch.from_numpy(batch.labels_X).to(device)

    def loss(self, score_BC: Tensor, wanted_B: Tensor, training: bool) -> Loss:
        """Summed over texts whose class is known."""
        known_B = wanted_B < self.classes
        score_BC, wanted_B = score_BC[known_B], wanted_B[known_B]
        nll = F.cross_entropy(score_BC.float(), wanted_B, reduction="sum")
        if not training:
            return Loss(nll, nll.detach(), len(wanted_B))
        weights = None if self.weights is None else self.weights.to(score_BC.device)
        total = F.cross_entropy(score_BC.float(), wanted_B, weights, reduction="sum", label_smoothing=self.smoothing)
        return Loss(total, nll.detach(), len(wanted_B))

    def scores(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64]) -> dict[str, float]:
        """Accuracy and macro F1 over texts whose class is known."""
        known_B = wanted_B < self.classes
        if not known_B.any():
            return {}
        names = [str(place) for place in range(self.classes)]
        found = class_scores(wanted_B[known_B], score_BC[known_B].argmax(1), names)
        return {"accuracy": found.accuracy, "f1": found.macro_f1}

    def named(self, label: NDArray[np.int64], labels: Sequence[str]) -> str:
        """The label of a text, for people."""
        return labels[label[0]] if len(label) and label[0] < len(labels) else "(not known)"

    def fitted(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64], recipe: Recipe) -> Fitted:
        """Temperature by texts whose class is known; threshold by those, and by those that have none."""
        known_B = wanted_B < self.classes
        section, warm = recipe.classification, 1.0
        if section.calibrate and known_B.any():
            warm = calibration.temperature(score_BC[known_B], wanted_B[known_B])
        if known_B.all() or not section.out_of_scope or section.threshold:
            return Fitted(warm, section.threshold)
        confidence_B, right_B = self._confidence(score_BC, wanted_B, warm)
        chosen = calibration.choose_threshold(confidence_B, right_B, ~known_B)
        return Fitted(warm, chosen.value)

    def _confidence(
        self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64], warm: float
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        score_BC = score_BC / warm
        return np.exp(score_BC.max(1) - calibration.log_sum_exp(score_BC)), score_BC.argmax(1) == wanted_B

    def notes(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64], fitted: Fitted) -> list[str]:
        """How far probabilities can be trusted, and what is said to be out of scope."""
        known_B = wanted_B < self.classes
        confidence_B, right_B = self._confidence(score_BC, wanted_B, fitted.temperature)
        error = calibration.expected_calibration_error(confidence_B[known_B], right_B[known_B])
        lines = [f"* expected calibration error {error:.2f} at temperature {fitted.temperature:.3f}"]
        if fitted.threshold and not known_B.all():
            outside = 100 * float((confidence_B[~known_B] < fitted.threshold).mean())
            kept = 100 * float((confidence_B[known_B] >= fitted.threshold).mean())
            lines.append(
                f"* out of scope below probability {fitted.threshold:.3f}: {outside:.1f} % of such texts are seen to "
                f"be, {kept:.1f} % of the others are kept"
            )
        return lines


class AnyOf(OneOf):
    """Any number of labels a text: each is there or not, on its own."""

    def wanted(self, batch: TextBatch, device: torch.device) -> Tensor:
        """1.0 where a text has a label."""
        rows = np.repeat(np.arange(len(batch.counts_B)), batch.counts_B)
        there_BC = np.zeros((len(batch.counts_B), self.classes + 1), np.float32)
        there_BC[rows, batch.labels_X] = 1.0
        return torch.from_numpy(there_BC[:, : self.classes]).to(device)

    def loss(self, score_BC: Tensor, wanted_BC: Tensor, training: bool) -> Loss:
        """Summed over texts and labels, divided by the number of labels."""
        target_BC = wanted_BC * (1 - self.smoothing) + self.smoothing / 2 if training else wanted_BC
        weights = None if self.weights is None or not training else self.weights.to(score_BC.device)
        nll = F.binary_cross_entropy_with_logits(score_BC.float(), wanted_BC, reduction="sum") / self.classes
        total = F.binary_cross_entropy_with_logits(score_BC.float(), target_BC, weights, reduction="sum")
        return Loss(total / self.classes, nll.detach(), len(score_BC))

    def scores(self, score_BC: NDArray[np.float64], wanted_BC: NDArray[np.int64]) -> dict[str, float]:
        """F1 over all labels, and the share of texts whose labels are all right."""
        names = [str(place) for place in range(self.classes)]
        found = label_scores(wanted_BC > 0.5, score_BC > 0, names)
        return {"f1": found.micro.f1, "accuracy": found.exact}

    def named(self, label: NDArray[np.int64], labels: Sequence[str]) -> str:
        return "|".join(labels[one] for one in label if one < len(labels)) or "(none)"

    def fitted(self, score_BC: NDArray[np.float64], wanted_BC: NDArray[np.int64], recipe: Recipe) -> Fitted:
        if not recipe.classification.calibrate:
            return Fitted()
        return Fitted(calibration.temperature_of_labels(score_BC, wanted_BC > 0.5))

    def notes(self, score_BC: NDArray[np.float64], wanted_BC: NDArray[np.int64], fitted: Fitted) -> list[str]:
        confidence_BC = 1 / (1 + np.exp(-np.abs(score_BC) / fitted.temperature))
        right_BC = (score_BC > 0) == (wanted_BC > 0.5)
        error = calibration.expected_calibration_error(confidence_BC.ravel(), right_BC.ravel())
        return [f"* expected calibration error {error:.2f} at temperature {fitted.temperature:.3f}"]


class Number(OneOf):
    """A number a text: squared error."""

    def wanted(self, batch: TextBatch, device: torch.device) -> Tensor:
        """The number of each text."""
        return torch.from_numpy(batch.labels_X.astype(np.uint32).view(np.float32)).to(device)

    def loss(self, score_BC: Tensor, wanted_B: Tensor, training: bool) -> Loss:
        """Summed over texts."""
        total = F.mse_loss(score_BC[:, 0].float(), wanted_B, reduction="sum")
        return Loss(total, total.detach(), len(wanted_B))

    def scores(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64]) -> dict[str, float]:
        """Correlations."""
        found = number_scores(wanted_B, score_BC[:, 0])
        return {"pearson": found.pearson, "spearman": found.spearman}

    def named(self, label: NDArray[np.int64], labels: Sequence[str]) -> str:
        return f"{label.astype(np.uint32).view(np.float32)[0]:.3g}"

    def fitted(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64], recipe: Recipe) -> Fitted:
        return Fitted()

    def notes(self, score_BC: NDArray[np.float64], wanted_B: NDArray[np.int64], fitted: Fitted) -> list[str]:
        error = float(np.sqrt(np.square(score_BC[:, 0] - wanted_B).mean()))
        return [f"* root of the mean squared error {error:.4g}"]


CRITERIA: dict[str, type[OneOf]] = {"single": OneOf, "multi": AnyOf, "regression": Number}


@dataclass(frozen=True)
class ClassificationJob:
    """Classification from corpora of labelled texts; from another model, where one is named."""

    recipe: Recipe
    corpora: Sequence[Corpus]
    validation: Corpus | None = None
    pretrained: Pretrained | None = None
    task = Classification

    def prepare(self, recipe: Recipe, folder: Path, progress: Progress) -> PreparedExamples:
        """The texts and labels as ids."""
        rests = {"classification.kind": recipe.classification.kind, **self.more()}
        rests["classification.out_of_scope"] = recipe.classification.out_of_scope
        return prepare_examples(
            self.corpora, recipe, folder, lambda pairs: self._coding(recipe, pairs), rests, self.validation, progress
        )

    def _coding(self, recipe: Recipe, pairs: Iterator[Pair]) -> Coding:
        counts: Counter[str] = Counter()
        kind = recipe.classification.kind

        def texts() -> Iterator[str]:
            for text, label in pairs:
                if kind != "regression":
                    counts.update(split_labels(label) if kind == "multi" else [label])
                yield text

        tokenizer = learned_tokenizer(recipe.text, texts(), self.pretrained)
        labels = sorted(label for label in counts if label and label != recipe.classification.out_of_scope)
        return ClassCoding(tokenizer, Frame.of(tokenizer, recipe.data.max_tokens), kind, labels)

    def assets(self, prepared: PreparedExamples) -> TextAssets:
        """Tokenizer and labels."""
        found = TextAssets.load(prepared.folder)
        regression = self.recipe.classification.kind == "regression"
        return replace(found, labels=(NUMBER,) if regression else tuple(prepared.own["labels"]))

    def begin(self, model: nn.Module) -> None:
        """The encoder of the model that is begun from."""
        if self.pretrained:
            self.pretrained.give(model)

    def teach(self, task: Classification, prepared: PreparedExamples, paths: Paths) -> ClassificationTeaching:
        """The teaching of a fresh model."""
        return ClassificationTeaching(task, prepared, paths)

    def more(self) -> dict[str, str]:
        """The fingerprint of the model that is begun from."""
        return self.pretrained.fingerprint if self.pretrained else {}
