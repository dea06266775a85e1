"""Training of text and image classifiers: loss, validation, calibration at the end; the data of text classifiers."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from regard.config import Classification as Section
from regard.config import nearest
from regard.data.batches.texts import Examples, TextBatch
from regard.data.checks.labels import LabelScan, report_labels
from regard.data.corpora.corpus import Progress
from regard.data.corpora.labelled import split_labels
from regard.data.corpora.scan import DataScan
from regard.data.prepare import split
from regard.data.prepare.encoders import TextEncoder
from regard.data.prepare.folder import PreparedExamples
from regard.data.prepare.shards import DocumentIndex, Shards
from regard.data.prepare.windowing import ClassEncoder, Frame, LabelIds
from regard.models.inputs import Patches, Tokens
from regard.nn import hooks, ops
from regard.nn.loss import EMBEDDING, adversarial_perturbation
from regard.system import disk
from regard.system.errors import RegardError
from regard.tasks.assets import FittedValues
from regard.tasks.classification.classifier import ClassAssets, Classification, LabelTask, Scores, TextLabelTask
from regard.tasks.classification.first_head import fit_head, needs_head
from regard.tasks.classification.losses import CRITERIA, NUMBER, Labels, class_matrix
from regard.tasks.classification.ngrams import NGRAMS, fit, is_fitted, read_ngrams
from regard.tasks.classification.pairs import LabelledPairEncoder, PairClassification, pair_frame
from regard.tasks.metrics.labels import class_scores
from regard.tasks.protocols import InputFiles, ShouldStop, Task
from regard.tasks.text.preparation import learned_tokenizer, prepare_texts, prepared_assets, segmented_sides
from regard.tasks.text.task import BETWEEN, mean_over_windows
from regard.tasks.training.base import BaseTraining, ProductPaths, RecipeFor, Tell, TrainingJob, held_out
from regard.tasks.training.defaults import MORE, SizeDefaults, Values
from regard.text.counts import counted
from regard.text.tokenizers.vocabulary import TOKENIZER, AnyTokenizer, read_tokenizer
from regard.training.objective import Done, Loss, Sample, Validation, ignore_progress, predict
from regard.training.world import ALONE, World

SAMPLES = 3
"""Texts or images shown at a validation."""
MOST_OF_BASELINE = 100_000
"""Texts that the simple baseline learns from; more would take minutes."""
_SMALL: Values = {"text": {"vocabulary": 4000}, "training": {"rate": 1e-3, "ema": 0.99}}
_MANY: Values = {"text": {"vocabulary": 8000}, "training": {"rate": 1e-3}}
_READ: Values = {**_SMALL, "classification": {"ngrams": True}}
_MOVED = {**_SMALL, "classification": {"ngrams": True, "adversarial": 0.5}}
_TWO: Values = {"model": {"segments": 2, "dropout": 0.1}}
_PAIRS, _MANY_PAIRS = {**_SMALL, **_TWO}, {**_MANY, **_TWO}


@dataclass
class LabelNames:
    """The labels of the examples that are learned from, counted while they pass."""

    section: Section
    counts: Counter[str] = field(default_factory=Counter)

    def see(self, label: str) -> None:
        """Count the label, or the labels, of an example; a number is not counted."""
        if self.section.kind != "regression":
            self.counts.update(split_labels(label) if self.section.kind == "multi" else [label])

    @property
    def ids(self) -> LabelIds:
        """Every label once, in order, as ids; the out-of-scope label is separate."""
        outside = self.section.out_of_scope
        names = sorted(label for label in self.counts if label and label != outside)
        return LabelIds(self.section.kind, names, outside)


def refuse_nothing_outside(section: Section, scanned: DataScan[LabelScan[Any]]) -> None:
    """Raise a RegardError if an out-of-scope label is named, but no example has it to fit a threshold.

    Args:
        section: names it; a threshold that it gives needs nothing to be fitted to.
        scanned: the labels of all examples.
    """
    if section.kind != "single" or not section.out_of_scope or section.threshold:
        return
    there = dict.fromkeys(label for scan in scanned.every for label in scan.labels)
    if section.out_of_scope in there:
        return
    raise RegardError(
        f"nothing to learn from or to validate on has the label {section.out_of_scope!r}, so no threshold can be "
        f"chosen; name another, or give classification.threshold.{nearest(section.out_of_scope, there)}",
        "classification.out_of_scope",
    )


AnyLabelTask = TypeVar("AnyLabelTask", bound=LabelTask[Any, Any])


class LabelTrainingTask(BaseTraining[AnyLabelTask]):
    """Training task for labels of whole examples.

    While it is learned from, each window of a text that is too long for one is an example of its own. Where the model
    is judged, or something fitted, a text counts once, by the mean of its windows' scores, as in use.

    Args:
        task: the model to train.
        prepared: examples and labels as ids.
        paths: how products are computed.
    """

    noun: ClassVar[str]
    """Plural noun for the labelled examples."""

    def __init__(self, task: AnyLabelTask, prepared: PreparedExamples, paths: ProductPaths) -> None:
        super().__init__(task, prepared, paths, prepared.wholes.count)
        section, classes = task.recipe.classification, len(task.assets.labels)
        if section.kind == "single":
            if classes < 2:
                raise RegardError(f"{classes or 'no'} class is left to learn from: there is nothing to classify")
            if (self._held_out.labels_X >= classes).all():
                message = f"none of the {len(self._held_out.counts_B):,} has a label of the training data"
                raise RegardError(message, f"the {self.noun} to validate on")
        learned = Labels(*prepared.labels.gather(0, np.arange(prepared.count)))
        smoothing = task.recipe.training.label_smoothing
        self.criterion = CRITERIA[section.kind].of(section, smoothing, classes, learned)
        if task.assets.fitted == FittedValues():
            task.assets = replace(task.assets, fitted=self.criterion.start)

    @abstractmethod
    def model_inputs(self, batch: Any) -> Tokens | Patches:
        """The model's input for a batch."""

    @property
    @abstractmethod
    def validation(self) -> list[Any]:
        """All windows of the validation examples, in order, packed."""

    @abstractmethod
    def example_text(self, place: int) -> str:
        """A validation example as people see it."""

    @cached_property
    def _held_out(self) -> Labels:
        """The labels of the validation examples."""
        return Labels(*self.prepared.validation_labels.gather(0, self.prepared.validation_wholes.first_B))

    def loss(self, batch: Any) -> Loss:
        """The loss of a batch's windows; those with unknown labels are ignored.

        In training, where the recipe says so, the mean (in the paper the sum) of that and of the loss when embeddings
        are moved against it [Miyato17 §3].
        """
        given, size = self.model_inputs(batch), self.task.recipe.classification.adversarial
        if not size or not self.model.training:
            return self._loss(given, batch)
        with hooks.capture([EMBEDDING]) as heard:
            plain = self._loss(given, batch)
        moved_TD = adversarial_perturbation(plain.total, heard[EMBEDDING][0], given.sequences, size)
        with hooks.intervene(EMBEDDING, lambda x_TD: x_TD + moved_TD):
            moved = self._loss(given, batch)
        return Loss((plain.total + moved.total) / 2, plain.nll, plain.count)

    def _loss(self, given: Tokens | Patches, batch: Any) -> Loss:
        score_BC = self.model(given)
        return self.criterion.loss(score_BC, self.criterion.targets(batch, score_BC.device), self.model.training)

    @torch.no_grad()
    def validate(self, generate: bool, world: World = ALONE) -> Validation:
        """Loss and scores of the validation examples, in full precision."""
        score_BC, wanted = self.predict_validation(world=world), self._targets
        scaled_BC = torch.from_numpy(self.criterion.loss_scores(score_BC, self.task.assets.fitted))
        loss = self.criterion.loss(scaled_BC, wanted, False)
        scores = self.criterion.scores(score_BC, wanted.numpy())
        return Validation(float(loss.nll) / max(1, loss.count), scores, self._samples(score_BC))

    @torch.no_grad()
    def predict_validation(self, done: Done = ignore_progress, world: World = ALONE) -> Scores:
        """``score_BC`` of the validation examples, by the model as it is, in full precision."""
        with ops.using(self.model, self.paths.exact):
            found = predict(self.validation, lambda batch: self.model(self.model_inputs(batch)), world, done)
        return mean_over_windows(torch.cat(found).cpu().numpy(), self.prepared.validation_wholes.windows_B)

    @cached_property
    def _targets(self) -> Tensor:
        return self.criterion.targets(self._held_out, torch.device("cpu"))

    def _samples(self, score_BC: Scores) -> tuple[Sample, ...]:
        places = np.linspace(0, len(score_BC) - 1, min(SAMPLES, len(score_BC))).astype(np.int64)
        verdicts = self.task.predictor().predictions(score_BC[places])
        labels, first_B = self.prepared.validation_labels, self.prepared.validation_wholes.first_B
        return tuple(
            Sample(
                self.example_text(place),
                self.criterion.label_text(labels.sentence(first_B[place]), self.task.assets.labels),
                f"{verdict.label} {verdict.probability:.2f}" if verdict.value is None else f"{verdict.value:.3g}",
            )
            for place, verdict in zip(places.tolist(), verdicts, strict=True)
        )

    def data_lines(self) -> list[str]:
        """How many examples and labels there are, and how many windows where a text has several."""
        prepared, labels = self.prepared, len(self.task.assets.labels)
        said = [prepared.wholes.format_count(f"{self.noun} to learn from")]
        said.append(prepared.validation_wholes.format_count("to validate on"))
        if self.task.recipe.classification.kind != "regression":
            said.append(counted(labels, "label"))
        return [", ".join(said)]

    def finish(self, task: AnyLabelTask, should_stop: ShouldStop) -> list[str]:
        """Fit temperature and threshold to the validation examples; returns their scores as card lines."""
        score_BC, wanted = type(self)(task, self.prepared, self.paths).predict_validation(), self._targets.numpy()
        mixed = task.assets.fitted if getattr(task.assets, "ngrams", None) is not None else None
        fitted = self.criterion.fit(score_BC, wanted, mixed)
        task.assets = replace(task.assets, fitted=fitted)
        scores = [f"{name} {value:.2f}" for name, value in self.criterion.scores(score_BC, wanted).items()]
        return [f"* {line}" for line in scores + self.criterion.notes(score_BC, wanted, fitted)]


class ClassificationTraining(LabelTrainingTask[TextLabelTask]):
    """Classification of texts as training sees it."""

    noun: ClassVar[str] = "texts"
    sizes: ClassVar[Sequence[SizeDefaults]] = (
        SizeDefaults(6_000, "classifier-rnn", 17, _MOVED, SizeDefaults(6_000, "classifier-tiny", 12, _READ)),
        SizeDefaults(10_000, "classifier-rnn", 9, _MOVED, SizeDefaults(10_000, "classifier-tiny", 12, _READ)),
        SizeDefaults(100_000, "classifier-tiny", 15, _READ, SizeDefaults(100_000, "classifier-rnn", 15, _MOVED)),
        SizeDefaults(MORE, "classifier-tiny", 4, _MANY, SizeDefaults(MORE, "classifier-rnn", 4, _MANY)),
    )

    def __init__(self, task: TextLabelTask, prepared: PreparedExamples, paths: ProductPaths) -> None:
        super().__init__(task, prepared, paths)
        text, labels = segmented_sides(prepared, task.recipe)
        self.examples = Examples.of(text, labels, task.recipe.training.shard_tokens)
        make = self.examples.with_word_dropout(task.recipe.data.word_dropout, task.assets.masking_id, task.recipe.seed)
        self.batches = self.examples.feed(task.recipe, prepared.fingerprint, make)

    def model_inputs(self, batch: TextBatch) -> Tokens:
        """The tokens of a batch."""
        return self.task.inputs(batch.text)

    @cached_property
    def validation(self) -> list[TextBatch]:
        """The windows of the validation texts, packed."""
        prepared = self.prepared
        return replace(self.examples, text=prepared.validation_text, labels=prepared.validation_labels).all()

    @torch.no_grad()
    def predict_validation(self, done: Done = ignore_progress, world: World = ALONE) -> Scores:
        """With what n-grams say, where there is a classifier of them.

        How much that counts is fitted, and the temperature: so an unfinished run has a model with probabilities.
        """
        score_BC = super().predict_validation(done, world)
        if self._ngrams_BC is None:
            return score_BC
        found = self.criterion.fit_mixture(score_BC, self._ngrams_BC, self._targets.numpy())
        fitted = replace(found, threshold=self.task.assets.fitted.threshold)
        self.task.assets = replace(self.task.assets, fitted=fitted)
        return score_BC + fitted.ngrams * self._ngrams_BC

    @cached_property
    def _ngrams_BC(self) -> Scores | None:
        """What n-grams say of the validation texts."""
        ngrams, text, tokenizer = self.task.assets.ngrams, self.prepared.validation_text, self.task.source_tokenizer
        if ngrams is None:
            return None
        score_WC = ngrams.scores([tokenizer.decode(text.sentence(place).tolist()) for place in range(text.count)])
        return mean_over_windows(score_WC, self.prepared.validation_wholes.windows_B)

    def finish(self, task: TextLabelTask, should_stop: ShouldStop) -> list[str]:
        """As of any labels; where scikit-learn is installed also what the simple baseline reaches."""
        lines, prepared = super().finish(task, should_stop), self.prepared
        simple = task.recipe.classification.kind == "single" and task.info.texts == 1
        if not simple or find_spec("sklearn") is None or prepared.wholes.count > MOST_OF_BASELINE:
            return lines
        learned = self._known(prepared.wholes, prepared.text, prepared.labels)
        held_out = self._known(prepared.validation_wholes, prepared.validation_text, prepared.validation_labels)
        try:
            found = score_baseline(*learned, *held_out, len(self.task.assets.labels))
        except ImportError as error:
            return [*lines, f"* not compared with a linear SVM: scikit-learn cannot be imported ({error})"]
        return [*lines, f"* {found}"] if found else lines

    def _known(self, wholes: DocumentIndex, text: Shards, labels: Shards) -> tuple[list[str], list[int]]:
        """The examples that have a class, as their tokenizer spells them, and their classes."""
        label_B, tokenizer = labels.gather(0, wholes.first_B)[0], self.task.source_tokenizer
        known = np.flatnonzero(label_B < len(self.task.assets.labels)).tolist()
        frame = Frame.of(tokenizer, self.task.recipe.data.max_tokens)
        parts = ([text.sentence(window) for window in wholes.windows(place).tolist()] for place in known)
        return [tokenizer.decode(frame.join(part).tolist()) for part in parts], label_B[known].tolist()

    def example_text(self, place: int) -> str:
        """A validation text; of a long one its first window."""
        first, *more = self.prepared.validation_wholes.windows(place).tolist()
        ids, tokenizer = self.prepared.validation_text.sentence(first), self.task.source_tokenizer
        ends = np.flatnonzero(ids == tokenizer.end)[: self.task.info.texts - 1] + 1
        text = BETWEEN.join(tokenizer.decode(part.tolist()) for part in np.split(ids, ends))
        return f"{text} …" if more else text


def score_baseline(
    texts: Sequence[str], labels: Sequence[int], held_out: Sequence[str], wanted: Sequence[int], classes: int
) -> str | None:
    """What the simple thing that a classifier must beat reaches: a linear SVM on TF-IDF of n-grams.

    Word 1-2-grams and character 2-5-grams within words, sublinear, and LinearSVC by its defaults: two lines of
    scikit-learn.

    Args:
        texts, labels: to learn from.
        held_out, wanted: to score on.
        classes: labels are below it.

    Returns:
        A line of the card; ``None``: scikit-learn finds no word of two letters.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    began = time.monotonic()
    features = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may not converge
        try:
            found = make_pipeline(features, LinearSVC(random_state=0)).fit(texts, labels).predict(held_out)
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            return None
    scores = class_scores(np.array(wanted), np.array(found), list(map(str, range(classes))))
    return (
        f"for comparison, a linear SVM on TF-IDF n-grams (scikit-learn, {time.monotonic() - began:.0f} s): "
        f"accuracy {scores.accuracy:.2f}, f1 {scores.macro_f1:.2f}"
    )


@dataclass(frozen=True)
class ClassificationJob(TrainingJob):
    """Classification from scanned corpora of labelled texts."""

    scanned: DataScan[LabelScan[Any]]
    task: ClassVar[type[TextLabelTask]] = Classification
    training = ClassificationTraining
    encoder: ClassVar[type[Any]] = ClassEncoder

    @classmethod
    def of_files(cls, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> ClassificationJob:
        """The job on files of labelled texts."""
        learned, validation = given.corpora(cls.task.open_corpus)
        first = asked(1)
        scan = partial(LabelScan[Any], kind=first.classification.kind, max_tokens=first.data.max_tokens)
        scanned = DataScan.of(learned, validation, scan=scan)
        report = report_labels(scanned.learned, held_out(scanned, "texts"))
        report.announce(tell, despite_check)
        return cls(asked(report.pairs), scanned, pretrained=given.begun)

    def prepare(self, folder: Path, progress: Progress) -> PreparedExamples:
        """The texts and labels as ids."""
        section = self.recipe.classification
        rests = {"classification.kind": section.kind, "classification.out_of_scope": section.out_of_scope}
        prepared = prepare_texts(
            self.scanned, self.recipe, folder, self._learn, {**rests, **self.more()}, progress, processes=self.processes
        )
        if section.ngrams and not is_fitted(prepared.folder, prepared.fingerprint):
            tokenizer = read_tokenizer(prepared.folder / TOKENIZER)
            texts = (tokenizer.decode(prepared.text.sentence(place).tolist()) for place in range(prepared.count))
            labels = Labels(*prepared.labels.gather(0, np.arange(prepared.count)))
            progress("fit", 0)
            fitted = fit(texts, class_matrix(labels, len(prepared.own["labels"])), prepared.fingerprint)
            disk.replace(prepared.folder / NGRAMS, fitted.content)
        return prepared

    def begin(self, model: nn.Module, assets: Any) -> None:
        """As of any task; the last layer of a number stays fresh, since it has the units of other numbers."""
        last = [one for name, one in model.named_parameters() if name.startswith("head.classes.")]
        fresh = [one.detach().clone() for one in last]
        super().begin(model, assets)
        if self.recipe.classification.kind == "regression":
            with torch.no_grad():
                for one, kept in zip(last, fresh, strict=True):
                    one.copy_(kept)

    def fit_fresh(self, task: Task, prepared: Any) -> None:
        """The last layer, where it is fresh and few texts are labelled."""
        if needs_head(self.recipe, self.pretrained, prepared.count):
            assert isinstance(task, TextLabelTask)
            fit_head(task, prepared)

    def _learn(self, examples: split.Examples[Any]) -> TextEncoder[Any]:
        names = LabelNames(self.recipe.classification)

        def texts() -> Iterator[str]:
            for example in examples.train_examples():
                names.see(example.label)
                yield from example.texts

        refuse_nothing_outside(self.recipe.classification, self.scanned)
        tokenizer = learned_tokenizer(self.recipe.text, texts(), self.pretrained)
        return self.encoder(tokenizer, self.frame(tokenizer), names.ids)

    def frame(self, tokenizer: AnyTokenizer) -> Frame:
        """The symbols around a text."""
        return Frame.of(tokenizer, self.recipe.data.max_tokens)

    def assets(self, prepared: PreparedExamples) -> ClassAssets:
        """Tokenizer and labels."""
        regression = self.recipe.classification.kind == "regression"
        labels = (NUMBER,) if regression else tuple(prepared.own["labels"])
        found = prepared_assets(prepared, self.pretrained)
        return ClassAssets(found.tokenizer, labels, seen=found.seen, ngrams=read_ngrams(prepared.folder))


class PairTraining(ClassificationTraining):
    """Classification of sentence pairs as training sees it."""

    noun = "pairs"
    sizes = (
        SizeDefaults(10_000, "classifier-tiny", 12, _PAIRS, SizeDefaults(10_000, "classifier-rnn", 17, _SMALL)),
        SizeDefaults(100_000, "classifier-tiny", 15, _PAIRS, SizeDefaults(100_000, "classifier-rnn", 15, _SMALL)),
        SizeDefaults(MORE, "classifier-tiny", 4, _MANY_PAIRS, SizeDefaults(MORE, "classifier-rnn", 4, _MANY)),
    )


@dataclass(frozen=True)
class PairJob(ClassificationJob):
    """Classification from scanned corpora of labelled pairs."""

    task = PairClassification
    training = PairTraining
    encoder = LabelledPairEncoder

    def frame(self, tokenizer: AnyTokenizer) -> Frame:
        """The symbols around two texts."""
        return pair_frame(tokenizer, self.recipe)
