"""Training of text classifiers: their data, and what differs from image classifiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from torch import nn

from regard.config import Recipe
from regard.data.batches.texts import Examples, TextBatch
from regard.data.corpora.pairs import Corpus, Pair
from regard.data.corpora.passes import Progress
from regard.data.prepare.encoders import ClassEncoder, ExampleEncoder
from regard.data.prepare.examples import PreparedExamples, prepare_examples
from regard.data.prepare.windowing import Frame
from regard.models.inputs import Tokens, tokens
from regard.tasks.classification.classifier import Classification
from regard.tasks.classification.label_training import LabelNames, LabelTrainingTask, refuse_nothing_outside
from regard.tasks.classification.losses import NUMBER
from regard.tasks.protocols import DataPaths, device_of
from regard.tasks.text.assets import TextAssets
from regard.tasks.text.bpe_dropout import resegment
from regard.tasks.text.pretrained import Pretrained, learned_tokenizer


class ClassificationTraining(LabelTrainingTask):
    """Classification of texts as training sees it."""

    noun: ClassVar[str] = "texts"

    def __init__(self, task: Classification, prepared: PreparedExamples, paths: DataPaths) -> None:
        super().__init__(task, prepared, paths)
        text = resegment(prepared, task.recipe)
        self.examples = Examples.of(text, prepared.labels, task.recipe.training.tokens)
        make = self.examples.with_word_dropout(task.recipe.data.word_dropout, task.assets.masking_id, task.recipe.seed)
        self.batches = self.examples.feed(task.recipe, prepared.fingerprint, make)

    def model_inputs(self, batch: TextBatch) -> Tokens:
        """The tokens of a batch."""
        return tokens(batch.text, device_of(self.model))

    def validating(self) -> list[TextBatch]:
        """The windows of the validation texts, packed."""
        prepared = self.prepared
        return replace(self.examples, text=prepared.validation_text, labels=prepared.validation_labels).all()

    def example_text(self, place: int) -> str:
        """A validation text; of a long one its first window."""
        first, *more = self.prepared.validation_wholes.windows(place).tolist()
        text: str = self.task.assets.tokenizer.decode(self.prepared.validation_text.sentence(first))
        return f"{text} …" if more else text


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

    def _coding(self, recipe: Recipe, pairs: Iterator[Pair]) -> ExampleEncoder:
        names = LabelNames(recipe.classification)

        def texts() -> Iterator[str]:
            for text, label in pairs:
                names.see(label)
                yield text

        refuse_nothing_outside(recipe.classification, self.corpora, self.validation)
        tokenizer = learned_tokenizer(recipe.text, texts(), self.pretrained)
        frame = Frame.of(tokenizer, recipe.data.max_tokens)
        return ClassEncoder(tokenizer, frame, names.ids)

    def assets(self, prepared: PreparedExamples) -> TextAssets:
        """Tokenizer and labels."""
        found = TextAssets.load(prepared.folder)
        regression = self.recipe.classification.kind == "regression"
        return replace(found, labels=(NUMBER,) if regression else tuple(prepared.own["labels"]))

    def begin(self, model: nn.Module) -> None:
        """Copy the encoder of the pretrained model."""
        if self.pretrained:
            self.pretrained.give(model)

    def teach(self, task: Classification, prepared: PreparedExamples, paths: DataPaths) -> ClassificationTraining:
        """The teaching of a fresh model."""
        return ClassificationTraining(task, prepared, paths)

    def more(self) -> dict[str, str]:
        """The fingerprint of the pretrained model."""
        return self.pretrained.fingerprint if self.pretrained else {}
