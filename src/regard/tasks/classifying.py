"""A classifier of texts in the making: its data, and what of it is not as for any other labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from torch import nn

from regard.config import Recipe
from regard.data.coding import ClassCoding, Coding
from regard.data.corpora import Corpus, Pair
from regard.data.examples import Examples, TextBatch
from regard.data.framing import Frame
from regard.data.prepare_examples import PreparedExamples, prepare_examples
from regard.data.survey import Progress
from regard.models.inputs import Tokens, tokens
from regard.tasks.classification import Classification
from regard.tasks.criteria import NUMBER
from regard.tasks.labelling import LabelNames, LabelTeaching, refuse_nothing_outside
from regard.tasks.pretrained import Pretrained, learned_tokenizer
from regard.tasks.segmenting import read_anew
from regard.tasks.teaching import Paths, device_of
from regard.tasks.text_assets import TextAssets


class ClassificationTeaching(LabelTeaching):
    """Classification of texts as training sees it."""

    noun: ClassVar[str] = "texts"

    def __init__(self, task: Classification, prepared: PreparedExamples, paths: Paths) -> None:
        super().__init__(task, prepared, paths)
        text = read_anew(prepared, task.recipe)
        self.examples = Examples.of(text, prepared.labels, task.recipe.training.tokens)
        make = self.examples.dimmed(task.recipe.data.word_dropout, task.assets.hidden, task.recipe.seed)
        self.batches = self.examples.feed(task.recipe, prepared.fingerprint, make)

    def read(self, batch: TextBatch) -> Tokens:
        """The tokens of a batch."""
        return tokens(batch.text, device_of(self.model))

    def validating(self) -> list[TextBatch]:
        """The windows of the validation texts, packed."""
        prepared = self.prepared
        return replace(self.examples, text=prepared.validation_text, labels=prepared.validation_labels).all()

    def shown(self, place: int) -> str:
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

    def _coding(self, recipe: Recipe, pairs: Iterator[Pair]) -> Coding:
        names = LabelNames(recipe.classification)

        def texts() -> Iterator[str]:
            for text, label in pairs:
                names.see(label)
                yield text

        refuse_nothing_outside(recipe.classification, self.corpora, self.validation)
        tokenizer = learned_tokenizer(recipe.text, texts(), self.pretrained)
        frame = Frame.of(tokenizer, recipe.data.max_tokens)
        return ClassCoding(tokenizer, frame, names.ids)

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
