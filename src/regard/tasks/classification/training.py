"""Training of text classifiers: their data, and what differs from image classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from regard.data.batches.texts import Examples, TextBatch
from regard.data.checks.labels import LabelScan
from regard.data.corpora.corpus import LabelledText, Progress
from regard.data.corpora.scan import DataScan
from regard.data.prepare.encoders import ClassEncoder
from regard.data.prepare.prepared import PreparedExamples
from regard.data.prepare.windowing import Frame
from regard.models.inputs import Tokens, tokens
from regard.tasks.classification.classifier import Classification
from regard.tasks.classification.label_training import LabelNames, LabelTrainingTask, refuse_nothing_outside
from regard.tasks.classification.losses import NUMBER
from regard.tasks.protocols import DataPaths, TrainingJob, device_of
from regard.tasks.text.assets import TextAssets
from regard.tasks.text.preparation import learned_tokenizer, prepare_texts, text_side


class ClassificationTraining(LabelTrainingTask):
    """Classification of texts as training sees it."""

    noun: ClassVar[str] = "texts"

    def __init__(self, task: Classification, prepared: PreparedExamples, paths: DataPaths) -> None:
        super().__init__(task, prepared, paths)
        text = text_side(prepared, task.recipe)
        self.examples = Examples.of(text, prepared.labels, task.recipe.training.tokens)
        make = self.examples.with_word_dropout(task.recipe.data.word_dropout, task.assets.masking_id, task.recipe.seed)
        self.batches = self.examples.feed(task.recipe, prepared.fingerprint, make)

    def model_inputs(self, batch: TextBatch) -> Tokens:
        """The tokens of a batch."""
        return tokens(batch.text, device_of(self.model))

    @cached_property
    def validation(self) -> list[TextBatch]:
        """The windows of the validation texts, packed."""
        prepared = self.prepared
        return replace(self.examples, text=prepared.validation_text, labels=prepared.validation_labels).all()

    def example_text(self, place: int) -> str:
        """A validation text; of a long one its first window."""
        first, *more = self.prepared.validation_wholes.windows(place).tolist()
        text: str = self.task.assets.tokenizer.decode(self.prepared.validation_text.sentence(first))
        return f"{text} …" if more else text


@dataclass(frozen=True)
class ClassificationJob(TrainingJob):
    """Classification from scanned corpora of labelled texts."""

    scanned: DataScan[LabelScan[LabelledText]]
    task: ClassVar[type[Any]] = Classification
    training: ClassVar[type[Any]] = ClassificationTraining

    def prepare(self, folder: Path, progress: Progress) -> PreparedExamples:
        """The texts and labels as ids."""
        section = self.recipe.classification
        rests = {"classification.kind": section.kind, "classification.out_of_scope": section.out_of_scope}
        return prepare_texts(self.scanned, self.recipe, folder, self._learn, {**rests, **self.more()}, progress)

    def _learn(self, examples: Iterator[LabelledText]) -> ClassEncoder:
        names = LabelNames(self.recipe.classification)

        def texts() -> Iterator[str]:
            for text, label in examples:
                names.see(label)
                yield text

        refuse_nothing_outside(self.recipe.classification, self.scanned)
        tokenizer = learned_tokenizer(self.recipe.text, texts(), self.pretrained)
        return ClassEncoder(tokenizer, Frame.of(tokenizer, self.recipe.data.max_tokens), names.ids)

    def assets(self, prepared: PreparedExamples) -> TextAssets:
        """Tokenizer and labels."""
        regression = self.recipe.classification.kind == "regression"
        labels = (NUMBER,) if regression else tuple(prepared.own["labels"])
        return replace(TextAssets.load(prepared.folder), labels=labels)
