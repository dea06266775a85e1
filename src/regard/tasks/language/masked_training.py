"""Training of masked language models, with masks redrawn at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from regard.config import Recipe
from regard.data.batches.language_modelling import (
    FramedWindows,
    MaskedExamples,
    MaskingSymbols,
    PredictionBatch,
    Windows,
)
from regard.data.corpora.corpus import Corpus, no_progress
from regard.data.corpora.documents import DocumentPart
from regard.data.corpora.scan import DataScan, Scan
from regard.data.prepare.encoders import DocumentEncoder
from regard.data.prepare.folder import PreparedExamples
from regard.data.prepare.shards import Shards
from regard.data.prepare.split import SplitCorpora
from regard.data.prepare.windowing import Frame
from regard.nn import ops
from regard.system.errors import UsageError
from regard.tasks.language.masked import MaskedLm
from regard.tasks.language.scores import PredictionScores
from regard.tasks.language.training import PredictionTraining, RunningTextJob
from regard.tasks.protocols import Divide, ShouldStop, find_at_once
from regard.tasks.text.gaps import decode_with_symbols
from regard.tasks.text.preparation import SYMBOLS, prepare_split
from regard.tasks.training.base import ProductPaths
from regard.tasks.training.model_writer import StoppableTrace
from regard.text.counts import counted
from regard.text.tokenizers.tokenizer import MASK
from regard.text.tokenizers.vocabulary import AnyTokenizer
from regard.training.checkpoints.output_folder import scratch
from regard.training.objective import Sample

SAMPLES, LENGTH = 2, 32
"""Windows shown at a validation, and tokens of each."""


class MaskedLmTraining(PredictionTraining):
    """Masked words as training sees them [Devlin19 §3.1]."""

    task: MaskedLm

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
        given, model = self.model_inputs(batch), self.task.model
        places_N = torch.from_numpy(batch.places_N).to(given.ids_T.device)
        hidden_ND: Tensor = model.head(model.encoder(given)[places_N], given.sequences)
        return hidden_ND

    def table(self, hidden_ND: Tensor) -> tuple[Tensor, Tensor]:
        """The table of embeddings, each piece's bias one entry more, which meets a one."""
        head: Any = self.task.model.head
        hidden_ND = hidden_ND.to(head.output.weight.dtype)  # the head's norm hands on what a product in bf16 gave
        ones_N1 = hidden_ND.new_ones(len(hidden_ND), 1)
        return torch.cat([hidden_ND, ones_N1], 1), torch.cat([head.output.weight, head.bias[:, None]], 1)

    @torch.no_grad()
    def predict_tokens(self, batch: PredictionBatch) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The most probable piece at each hidden place."""
        head: Any = self.task.model.head
        hidden_ND = self.hidden_states(batch)
        parts = [head.scores(hidden_ND[place : place + 512]).argmax(1) for place in range(0, len(hidden_ND), 512)]
        found: np.ndarray[Any, np.dtype[np.int64]] = torch.cat([*parts, hidden_ND.new_empty(0).long()]).cpu().numpy()
        return found

    def samples(self) -> tuple[Sample, ...]:
        """The beginnings of some windows: masked, original, and filled by the model."""
        batch, tokenizer = self.validation[0], self.task.assets.tokenizer
        truth, filled = batch.text.ids_T.copy(), batch.text.ids_T.copy()
        truth[batch.places_N], filled[batch.places_N] = batch.labels_N, self.predict_tokens(batch)
        found = []
        for start, length in zip(batch.text.starts_B[:SAMPLES], batch.text.lengths_B[:SAMPLES], strict=True):
            here = slice(int(start), int(start) + min(LENGTH, int(length)))
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
        return PredictionScores(*map(sum, zip(*(found or [(0.0, 0, 0)]), strict=True)))


@dataclass(frozen=True)
class MaskedLmJob(RunningTextJob):
    """A model of masked words from running text; from another one, where it is named."""

    task: ClassVar[type[MaskedLm]] = MaskedLm
    training: ClassVar[type[MaskedLmTraining]] = MaskedLmTraining
    symbols: ClassVar[tuple[str, ...]] = SYMBOLS
    rests: ClassVar[tuple[str, ...]] = ("data.documents", "masking.whole_words")

    @staticmethod
    def encoder(tokenizer: AnyTokenizer, recipe: Recipe) -> DocumentEncoder:
        """Pieces; and where words begin, for whole-word masking.

        Raises:
            UsageError: the pretrained model's vocabulary has no mask token.
        """
        if tokenizer.mask is None:
            raise UsageError(f"its vocabulary has no symbol {MASK} for hidden words", "--from")
        return DocumentEncoder(tokenizer, words=recipe.masking.whole_words)


def evaluate_corpus(task: MaskedLm, corpus: Corpus[DocumentPart], divide: Divide = find_at_once) -> PredictionScores:
    """The validation scores of training, computed on this text, masked with the recipe's seed.

    Args:
        task: a loaded model.
        corpus: running text.
        divide: computes its batches, perhaps in several processes.
    """
    known, paths = (
        MaskedLmJob.encoder(task.assets.tokenizer, task.recipe),
        ProductPaths(*[ops.full(str(task.device))] * 2),
    )
    with scratch() as folder:
        scanned: DataScan[Scan[DocumentPart]] = DataScan.of([corpus], corpus)
        scanned.refuse_unreadable("documents")
        place = folder / "data"
        prepared = prepare_split(SplitCorpora(scanned), task.recipe, place, lambda parts: known, {}, no_progress)
        return MaskedLmTraining.validation_scores(task, prepared, paths, lambda: False, divide)
