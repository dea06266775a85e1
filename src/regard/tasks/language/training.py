"""Training on running text, of language models and of masked ones: data with a held-out part, loss, final scores."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import Recipe
from regard.data.batches.language_modelling import (
    FramedWindows,
    MaskedExamples,
    MaskingSymbols,
    NextTokenExamples,
    PredictionBatch,
    PredictionExamples,
    Windows,
)
from regard.data.corpora.corpus import Corpus, Progress, no_progress
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
from regard.data.prepare.folder import PreparedExamples
from regard.data.prepare.shards import Shards
from regard.data.prepare.split import Examples, SplitCorpora, SplitDocuments
from regard.data.prepare.windowing import DocumentEncoder, Frame
from regard.nn import ops
from regard.nn.loss import SmoothedCrossEntropy
from regard.system.errors import Option, RegardError, UsageError
from regard.system.keys import generator
from regard.tasks.assets import TextAssets
from regard.tasks.language.generator import LanguageModel, Perplexity, surprisals
from regard.tasks.language.masked import MaskedLm
from regard.tasks.protocols import AnyTask, Divide, InputFiles, ShouldStop, Task, find_at_once
from regard.tasks.text.preparation import SYMBOLS, learned_tokenizer, prepare_split, prepared_assets
from regard.tasks.text.task import decode_with_symbols
from regard.tasks.training.base import (
    BaseTraining,
    ProductPaths,
    RecipeFor,
    StoppableTrace,
    Tell,
    TrainingJob,
    TrainingTask,
)
from regard.tasks.training.defaults import MORE, SizeDefaults, Values
from regard.text.counts import counted
from regard.text.tokenizers.tokenizer import MASK
from regard.text.tokenizers.vocabulary import AnyTokenizer
from regard.training.checkpoints.output_folder import scratch
from regard.training.objective import Done, Loss, Sample, Validation, ignore_progress, sum_losses
from regard.training.world import ALONE, World

Ids = NDArray[np.int64]
SAMPLES = 2
"""Places of the validation text that a validation writes on from, or windows that it fills."""
PROMPT, LENGTH = 32, 48
"""Tokens read and written there."""
FILLED = 32
"""Tokens shown of a window that is filled."""
TEMPERATURE = 0.8
TOGETHER = 1 << 16
"""Tokens of documents that are judged together."""
PART = 10_000
"""Characters per part, when a sample is drawn to learn the vocabulary."""
LEARNED_FROM = 50_000_000
"""Most characters to learn the vocabulary from: more would hardly change it, and must fit in memory."""
GUESSING: Mapping[str, object] = {
    "rate": 2e-3,
    "warmup": 100,
    "label_smoothing": 0.0,
    "optimiser": "adamw",
    "weight_decay": 0.1,
}
"""Of a training section, to guess words of running text."""
_WORDS: Values = {"training": {**GUESSING, "tokens": 2048}}
"""Such tasks are judged by their likelihood; small batches learn most from it."""
_CHARACTERS: Values = {
    "text": {"units": "characters"},
    "data": {"max_tokens": 128},
    "training": {**GUESSING, "tokens": 768},
}


VALIDATED = 1 << 17
"""Tokens that are read at a validation at most, evenly chosen; the scores on the card are those of all."""


@dataclass(frozen=True)
class RunningTextJob(TrainingJob):
    """A task on running text, before there is a model.

    Args:
        text: of which a part is held out; or that to learn from, and that to validate on.
        characters: of the training files.
    """

    text: HeldOut | tuple[DocumentSeries, Corpus[DocumentPart]]
    characters: int
    unread = (None, 1)
    symbols: ClassVar[tuple[str, ...]] = ()
    """Those of the task, in a vocabulary that is learned."""
    rests: ClassVar[tuple[str, ...]] = ("data.documents",)
    """Fields of the recipe that the prepared data depends on."""

    @classmethod
    def of_files(cls, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> RunningTextJob:
        """The job on files of running text, of which some is held out if no validation file is given.

        Columns are the key of a text in JSONL; there is nothing to check.
        """
        early = asked(1)
        key = given.columns or "text"
        learned, validation = given.corpora(lambda path, _: open_documents(path, early.data.documents, key))
        refuse_columns(given.columns, [*learned, *([validation] if validation else [])])
        found = measure_corpora(learned)
        tell(f"{counted(found.documents, 'document')}, {counted(found.characters, 'character')}")
        recipe = asked(found.characters)
        text = (DocumentSeries(learned), validation) if validation else split_documents(learned, found, recipe.seed)
        return cls(recipe, text, found.characters, pretrained=given.begun)

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
        return self.training(task, prepared, paths, self.characters)


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


class PredictionTraining(BaseTraining[AnyTask]):
    """Training task of (masked) language models.

    Args:
        task: the model to train.
        prepared: documents as ids.
        paths: how products are computed.
        characters: of the text, for the size table.
    """

    def __init__(self, task: AnyTask, prepared: PreparedExamples, paths: ProductPaths, characters: int) -> None:
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


class LanguageModelTraining(PredictionTraining[LanguageModel]):
    """Next words as training sees them [Radford18 §3.1, eq. 1]."""

    sizes = (SizeDefaults(5_000_000, "gpt-tiny", 25, _CHARACTERS), SizeDefaults(MORE, "gpt-tiny", 10, _WORDS))

    def guessing(self, text: Shards, labels: Shards, seed: int | None) -> NextTokenExamples:
        """Windows of ``data.max_tokens``, cut elsewhere in every epoch."""
        recipe = self.task.recipe
        windows = Windows(text, recipe.data.max_tokens, seed)
        return NextTokenExamples(windows, recipe.training.shard_tokens, self.task.assets.tokenizer.end)

    def hidden_states(self, batch: PredictionBatch) -> Tensor:
        """All positions: every token predicts the next."""
        hidden_TD: Tensor = self.model(self.task.inputs(batch.text))
        return hidden_TD[: len(batch.labels_N)]

    def table(self, hidden_ND: Tensor) -> tuple[Tensor, Tensor]:
        """The model's own."""
        return hidden_ND, self.task.model.output.weight

    def samples(self) -> tuple[Sample, ...]:
        """Samples: continuations of validation text, beside the real ones."""
        tokenizer, stream = self.task.assets.tokenizer, self.prepared.validation_text
        texts: list[Ids] = []  # from where documents begin, or inside of one that is alone
        for number in range(SAMPLES):
            ids = stream.sentence(number * (stream.count - 1) // max(1, SAMPLES - 1))
            begin = number * len(ids) // SAMPLES if stream.count < SAMPLES else 0
            texts.append(ids[begin : begin + PROMPT + LENGTH])
        texts = [ids for ids in texts if len(ids) > 1]
        sizes = [min(PROMPT, len(ids) // 2) for ids in texts]
        asked = self.task.generation_options(max_tokens=LENGTH, temperature=TEMPERATURE)
        found = self.task.continue_ids([ids[:size] for ids, size in zip(texts, sizes, strict=True)], 1, asked)
        return tuple(
            Sample(
                tokenizer.decode(ids[:size]),
                tokenizer.decode(ids[size : size + LENGTH]),
                tokenizer.decode(written[0].tokens),
            )
            for ids, size, written in zip(texts, sizes, found, strict=True)
        )

    def finish(self, task: LanguageModel, should_stop: ShouldStop) -> list[str]:
        """Loss and perplexities over the whole validation text, its windows side by side."""
        tokenizer, length = task.assets.tokenizer, task.recipe.data.max_tokens
        stop, found = StoppableTrace(should_stop), [Perplexity(0.0, 0, 0, 0)]
        for some in _together(documents(self.prepared.validation_text, tokenizer.end)):
            nats = surprisals(task.model, some, length, length, tokenizer.end, stop.record)
            found.append(Perplexity.of(nats, [tokenizer.decode(ids) for ids in some]))
        total = Perplexity(*map(sum, zip(*map(astuple, found), strict=True)))
        return [
            f"* loss {total.nats / max(1, total.tokens):.4f} nats a token, of {counted(total.tokens, 'token')}",
            f"* perplexity {total.per_token:.4f} per token, {total.per_word:,.1f} per word",
            f"* {total.bits_per_byte:.4f} bits per byte",
        ]


def documents(stream: Shards, end: int) -> Iterator[Ids]:
    """The documents of prepared text, the parts of one joined; each with its end, but one that was cut off."""
    parts: list[Ids] = []
    for number in range(stream.count):
        parts.append(stream.sentence(number))
        if parts[-1][-1:] == end:
            yield np.concatenate(parts)
            parts = []
    if parts:
        yield np.concatenate(parts)


def _together(found: Iterator[Ids]) -> Iterator[list[Ids]]:
    some: list[Ids] = []
    count = 0
    for ids in found:
        some.append(ids)
        count += len(ids)
        if count >= TOGETHER:
            yield some
            some, count = [], 0
    if some:
        yield some


@dataclass(frozen=True)
class LanguageModelJob(RunningTextJob):
    """A language model from running text; from another one, where it is named."""

    task = LanguageModel
    training = LanguageModelTraining

    @staticmethod
    def encoder(tokenizer: AnyTokenizer, recipe: Recipe) -> DocumentEncoder:
        """Pieces, with ``</s>`` after each document."""
        return DocumentEncoder(tokenizer, ended=True)


class MaskedLmTraining(PredictionTraining[MaskedLm]):
    """Masked words as training sees them [Devlin19 §3.1]."""

    sizes = (
        SizeDefaults(5_000_000, "bert-small", 20, {**_WORDS, "data": {"max_tokens": 128}}),
        SizeDefaults(MORE, "bert-small", 5, {**_WORDS, "data": {"max_tokens": 128}}),
    )

    def guessing(self, text: Shards, labels: Shards, seed: int | None) -> MaskedExamples:
        """Windows of ``data.max_tokens`` between their symbols; masked tokens differ in every epoch."""
        recipe, tokenizer = self.task.recipe, self.task.assets.tokenizer
        frame = Frame.of(tokenizer, recipe.data.max_tokens)
        starts = Windows(labels, frame.room, seed) if recipe.masking.whole_words else None
        symbols = MaskingSymbols(self.task.mask, tokenizer.ordinary)
        tokens = recipe.training.shard_tokens
        return MaskedExamples(FramedWindows(text, frame, seed), starts, tokens, symbols, recipe.masking)

    def hidden_states(self, batch: PredictionBatch) -> Tensor:
        """Only where something is hidden: the head does not look at the rest."""
        given = self.task.inputs(batch.text)
        places_N = torch.from_numpy(batch.places_N).to(given.ids_T.device)
        return self.task.head(self.task.model.encoder(given)[places_N], given.sequences)

    def table(self, hidden_ND: Tensor) -> tuple[Tensor, Tensor]:
        """The table of embeddings, each piece's bias one entry more, which meets a one."""
        head = self.task.head
        hidden_ND = hidden_ND.to(head.output.weight.dtype)  # the head's norm hands on what a product in bf16 gave
        ones_N1 = hidden_ND.new_ones(len(hidden_ND), 1)
        return torch.cat([hidden_ND, ones_N1], 1), torch.cat([head.output.weight, head.bias[:, None]], 1)

    @torch.no_grad()
    def predict_tokens(self, batch: PredictionBatch) -> Ids:
        """The most probable piece at each hidden place."""
        head, hidden_ND = self.task.head, self.hidden_states(batch)
        parts = [head.scores(hidden_ND[place : place + 512]).argmax(1) for place in range(0, len(hidden_ND), 512)]
        return torch.cat([*parts, hidden_ND.new_empty(0).long()]).cpu().numpy()

    def samples(self) -> tuple[Sample, ...]:
        """The beginnings of some windows: masked, original, and filled by the model."""
        batch, tokenizer = self.validation[0], self.task.assets.tokenizer
        truth, filled = batch.text.ids_T.copy(), batch.text.ids_T.copy()
        truth[batch.places_N], filled[batch.places_N] = batch.labels_N, self.predict_tokens(batch)
        found = []
        for start, length in zip(batch.text.starts_B[:SAMPLES], batch.text.lengths_B[:SAMPLES], strict=True):
            here = slice(int(start), int(start) + min(FILLED, int(length)))
            read = decode_with_symbols(tokenizer, batch.text.ids_T[here].tolist(), {self.task.mask})
            found.append(Sample(read, tokenizer.decode(truth[here].tolist()), tokenizer.decode(filled[here].tolist())))
        return tuple(found)

    def finish(self, task: MaskedLm, should_stop: ShouldStop) -> list[str]:
        """Loss and share of right guesses over the whole validation text."""
        found = self.validation_scores(task, self.prepared, self.paths, should_stop)
        tokens = counted(found.tokens, "token")
        loss = f"{found.loss:.4f} nats a hidden token, of {tokens}; perplexity {found.perplexity:.2f}"
        return [f"* loss {loss}", f"* {found.accuracy:.2f} % of them guessed right"]

    @classmethod
    def validation_scores(
        cls,
        task: MaskedLm,
        prepared: PreparedExamples,
        paths: ProductPaths,
        should_stop: ShouldStop,
        divide: Divide = find_at_once,
    ) -> PredictionScores:
        """Scores on the validation part of prepared text; its masks are fixed."""
        teaching, stop = cls(task, prepared, paths, 0), StoppableTrace(should_stop)
        teaching.criterion.eval()
        batches = teaching.guessing(prepared.validation_text, prepared.validation_labels, None)

        def sums(some: Sequence[PredictionBatch], first: int) -> list[tuple[float, int, int]]:
            found = []
            for batch in some:
                stop.record()
                right = int((teaching.predict_tokens(batch) == batch.labels_N).sum())
                found.append((float(teaching.loss(batch).nll), len(batch.labels_N), right))
            return found

        with torch.no_grad(), ops.using(task.model, paths.exact):
            found = divide(sums, batches.some(task.recipe.seed, prepared.validation_text.tokens * 2 + 1))
        return PredictionScores.of(*map(sum, zip(*(found or [(0.0, 0, 0)]), strict=True)))


@dataclass(frozen=True)
class MaskedLmJob(RunningTextJob):
    """A model of masked words from running text; from another one, where it is named."""

    task = MaskedLm
    training = MaskedLmTraining
    symbols = SYMBOLS
    rests = ("data.documents", "masking.whole_words")

    @staticmethod
    def encoder(tokenizer: AnyTokenizer, recipe: Recipe) -> DocumentEncoder:
        """Pieces; and where words begin, for whole-word masking.

        Raises:
            UsageError: the pretrained model's vocabulary has no mask token.
        """
        if tokenizer.mask is None:
            raise UsageError(f"its vocabulary has no symbol {MASK} for hidden words", Option("start_from"))
        return DocumentEncoder(tokenizer, words=recipe.masking.whole_words)


@dataclass(frozen=True)
class PredictionScores:
    """Scores of masked tokens.

    Args:
        loss: nats a token.
        perplexity: of a token.
        nats: sum of their negative log-likelihoods.
        tokens: their number.
        right: how many were predicted correctly.
        accuracy: per cent of the tokens that were guessed right.
    """

    loss: float
    perplexity: float
    nats: float
    tokens: int
    right: int
    accuracy: float

    @classmethod
    def of(cls, nats: float, tokens: int, right: int) -> PredictionScores:
        """Those of so many nats, tokens and right guesses."""
        loss = nats / max(1, tokens)
        return cls(loss, math.exp(min(loss, 700)), nats, tokens, right, 100 * right / max(1, tokens))

    def to_dict(self) -> dict[str, float]:
        """Plain values, for JSON."""
        return vars(self)

    def lines(self) -> list[str]:
        """The scores as people read them."""
        return [
            f"loss {self.loss:.4f} nats a hidden token  ({counted(self.tokens, 'token')})",
            f"perplexity of a hidden token {self.perplexity:.2f}",
            f"guessed right {self.accuracy:.2f} %  ({self.right:,})",
        ]


def evaluate_corpus(task: MaskedLm, corpus: Corpus[DocumentPart], divide: Divide = find_at_once) -> PredictionScores:
    """The validation scores of training, computed on this text, masked with the recipe's seed.

    Args:
        task: a loaded model.
        corpus: running text.
        divide: computes its batches, perhaps in several processes.
    """
    known, exact = MaskedLmJob.encoder(task.assets.tokenizer, task.recipe), ops.full(str(task.device))
    paths = ProductPaths(exact, exact)
    with scratch() as folder:
        scanned: DataScan[Scan[DocumentPart]] = DataScan.of([corpus], corpus)
        scanned.refuse_unreadable("documents")
        place = folder / "data"
        prepared = prepare_split(SplitCorpora(scanned), task.recipe, place, lambda parts: known, {}, no_progress)
        return MaskedLmTraining.validation_scores(task, prepared, paths, lambda: False, divide)
