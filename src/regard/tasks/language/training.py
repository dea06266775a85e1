"""Training shared by the tasks on running text: data with a held-out part, batches, loss and validation."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.config import Recipe
from regard.data.batches.language_modelling import PredictionBatch, PredictionExamples
from regard.data.corpora.corpus import Corpus, Progress
from regard.data.corpora.documents import (
    DocumentPart,
    DocumentSeries,
    HeldOut,
    measure_corpora,
    open_documents,
    refuse_columns,
    split_documents,
)
from regard.data.corpora.scan import DataScan, Scan
from regard.data.prepare.encoders import DocumentEncoder
from regard.data.prepare.folder import PreparedExamples
from regard.data.prepare.shards import Shards
from regard.data.prepare.split import Examples, SplitCorpora, SplitDocuments
from regard.nn import ops
from regard.nn.loss import SmoothedCrossEntropy
from regard.system.errors import RegardError
from regard.system.keys import generator
from regard.tasks.assets import TextAssets
from regard.tasks.protocols import InputFiles, Task
from regard.tasks.text.preparation import learned_tokenizer, prepare_split, prepared_assets
from regard.tasks.text.task import TextTask
from regard.tasks.training.base import BaseTraining, ProductPaths, TrainingJob, TrainingTask
from regard.text.counts import counted
from regard.text.tokenizers.vocabulary import AnyTokenizer
from regard.training.objective import Done, Loss, Sample, Validation, ignore_progress, sum_losses
from regard.training.world import ALONE, World

PART = 10_000
"""Characters per part, when a sample is drawn to learn the vocabulary."""
LEARNED_FROM = 50_000_000
"""Most characters to learn the vocabulary from: more would hardly change it, and must fit in memory."""


Text = tuple[Recipe, HeldOut | tuple[DocumentSeries, Corpus[DocumentPart]], int]
"""The recipe for running text; the text of which a part is held out, or that to learn from and that to validate on;
and how many characters there are."""
VALIDATED = 1 << 17
"""Tokens that are read at a validation at most, evenly chosen; the scores on the card are those of all."""


def open_text(given: InputFiles, asked: Callable[[int], Recipe], told: Callable[[str], None]) -> Text:
    """Open the files and count their characters; hold some text out if no validation file is given.

    Args:
        given: the files; columns are the key of a text in JSONL.
        asked: the recipe for n characters.
        told: receives messages.

    Raises:
        UsageError: columns are given, but no file is JSONL.
        RegardError: a file cannot be read, or there is too little text.
    """
    early = asked(1)
    key = given.columns or "text"
    learned, validation = given.corpora(lambda path, _: open_documents(path, early.data.documents, key))
    refuse_columns(given.columns, [*learned, *([validation] if validation else [])])
    found = measure_corpora(learned)
    told(f"{counted(found.documents, 'document')}, {counted(found.characters, 'character')}")
    recipe = asked(found.characters)
    if validation is not None:
        return recipe, (DocumentSeries(learned), validation), found.characters
    return recipe, split_documents(learned, found, recipe.seed), found.characters


@dataclass(frozen=True)
class RunningTextJob(TrainingJob):
    """A task on running text, before there is a model.

    Args:
        text: of which a part is held out; or that to learn from, and that to validate on.
        characters: of the training files.
    """

    text: HeldOut | tuple[DocumentSeries, Corpus[DocumentPart]]
    characters: int
    opened: ClassVar[type[Any]] = PreparedExamples
    unread: ClassVar[tuple[Any, ...]] = (None, 1)
    symbols: ClassVar[tuple[str, ...]] = ()
    """Those of the task, in a vocabulary that is learned."""
    rests: ClassVar[tuple[str, ...]] = ("data.documents",)
    """Fields of the recipe that the prepared data depends on."""

    @staticmethod
    @abstractmethod
    def encoder(tokenizer: AnyTokenizer, recipe: Recipe) -> DocumentEncoder:
        """How documents become ids."""

    def prepare(self, folder: Path, progress: Progress) -> PreparedExamples:
        """The documents as ids."""
        sample = VocabularySample(self.characters, self.recipe.seed)
        examples: Examples[DocumentPart]
        if isinstance(self.text, HeldOut):
            fresh = not folder.exists()  # then the vocabulary's sample is drawn on the way
            examples = SplitDocuments(self.text, sample.add if fresh else lambda text: None, progress)
        else:
            scanned: DataScan[Scan[DocumentPart]] = DataScan.of([self.text[0]], self.text[1], progress)
            scanned.refuse_unreadable("documents")
            examples = SplitCorpora(scanned)

        def learn(examples: Examples[DocumentPart]) -> DocumentEncoder:
            for part in examples.train_examples() if not sample.texts else ():
                sample.add(part.text)
            return self.encoder(
                learned_tokenizer(self.recipe.text, sample.texts, self.pretrained, self.symbols), self.recipe
            )

        rests = {name: attrgetter(name)(self.recipe) for name in self.rests}
        return prepare_split(examples, self.recipe, folder, learn, {**rests, **self.more()}, progress, self.processes)

    def assets(self, prepared: PreparedExamples) -> TextAssets:
        """The tokenizer."""
        return prepared_assets(prepared, self.pretrained)

    def teach(self, task: Task, prepared: PreparedExamples, paths: ProductPaths) -> TrainingTask:
        """The training task for a fresh model."""
        found: TrainingTask = self.training(task, prepared, paths, self.characters)
        return found


class VocabularySample:
    """Texts to learn a vocabulary from; or, if they are too many, parts of them drawn by seed.

    Args:
        characters: of all texts together.
        seed: of the draw.
        most: characters to keep, about.
    """

    def __init__(self, characters: int, seed: int, most: int = LEARNED_FROM) -> None:
        self.texts: list[str] = []
        self._share, self._random = most / max(1, characters), generator(seed, "vocabulary")

    def add(self, text: str) -> None:
        """Take the next text, or parts of it."""
        if self._share >= 1:
            self.texts.append(text)
            return
        begins = range(0, len(text), PART)
        self.texts += [text[begin : begin + PART] for begin in begins if self._random.random() < self._share]


class PredictionTraining(BaseTraining[TextTask[Any, Any]]):
    """Training task of (masked) language models; implements :class:`~regard.tasks.training.base.TrainingTask`.

    Args:
        task: the model to train.
        prepared: documents as ids.
        paths: how products are computed.
        characters: of the text, for the size table.
    """

    def __init__(
        self, task: TextTask[Any, Any], prepared: PreparedExamples, paths: ProductPaths, characters: int
    ) -> None:
        recipe = task.recipe
        self.criterion = SmoothedCrossEntropy(recipe.training.label_smoothing)
        super().__init__(task, prepared, paths, characters, self.criterion)
        self.batches = self.guessing(prepared.text, prepared.labels, recipe.seed).feed(recipe, prepared.fingerprint)

    @abstractmethod
    def guessing(self, text: Shards, labels: Shards, seed: int | None) -> PredictionExamples:
        """Documents as batches; without a seed their windows are always the same."""

    @abstractmethod
    def hidden_states(self, batch: PredictionBatch) -> Tensor:
        """``hidden_ND``: hidden states at the positions to predict."""

    @abstractmethod
    def table(self, hidden_ND: Tensor) -> tuple[Tensor, Tensor]:
        """``(hidden_NX, table_VX)``, whose products are the scores of all pieces."""

    @abstractmethod
    def samples(self) -> tuple[Sample, ...]:
        """A few guesses on the validation text, as people read them."""

    def loss(self, batch: PredictionBatch) -> Loss:
        """The smoothed loss of a batch, every guess a sample."""
        self.criterion.train(self.model.training)
        hidden_NX, table_VX = self.table(self.hidden_states(batch))
        labels_N = torch.from_numpy(batch.labels_N).to(hidden_NX.device)
        ones_N = torch.ones(len(labels_N), dtype=hidden_NX.dtype, device=hidden_NX.device)
        total, nll = self.criterion(hidden_NX, table_VX, labels_N, ones_N, len(table_VX))
        return Loss(total, nll, len(labels_N))

    def model_inputs(self, batch: PredictionBatch) -> Any:
        """The model's input for a batch."""
        return self.task.inputs(batch.text)

    @cached_property
    def validation(self) -> list[PredictionBatch]:
        """The validation text, or evenly chosen windows of it, packed once."""
        prepared, recipe = self.prepared, self.task.recipe
        found = self.guessing(prepared.validation_text, prepared.validation_labels, None)
        return [*found.some(recipe.seed, VALIDATED)]

    def validate(self, generate: bool, world: World = ALONE) -> Validation:
        """Loss on the validation text, in full precision."""
        return self.predict_validation(world=world)

    @torch.no_grad()
    def predict_validation(self, done: Done = ignore_progress, world: World = ALONE) -> Validation:
        """Nats a token of the validation text.

        Raises:
            RegardError: it is so short that nothing of it is to be predicted.
        """
        with ops.using(self.model, self.paths.exact):
            nats, count = sum_losses(self.validation, self.loss, world, done)
            if not count:
                raise RegardError("is too short to validate on: nothing of it is predicted", "the validation text")
            loss = nats / count
            shown = world.leads and math.isfinite(loss)
            return Validation(loss, samples=self.samples() if shown else ())

    def final_seconds(self, loss: float, text: float) -> float:
        """The loss of all the validation text."""
        return loss * max(1.0, self.prepared.validation_text.tokens / VALIDATED)

    def data_lines(self) -> list[str]:
        """How much text there is."""
        learned, held = self.prepared.text, self.prepared.validation_text
        return [f"{counted(learned.tokens, 'token')} to learn from, {held.tokens:,} to validate on"]
