"""Training of language models: next-token loss, and perplexity at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regard.config import Recipe
from regard.data.batches.language_modelling import NextTokenExamples, PredictionBatch, Windows
from regard.data.prepare.encoders import DocumentEncoder
from regard.data.prepare.shards import Shards
from regard.tasks.language.generator import LanguageModel
from regard.tasks.language.scores import Perplexity, surprisals
from regard.tasks.language.training import PredictionTraining, RunningTextJob
from regard.tasks.protocols import ShouldStop
from regard.tasks.training.model_writer import StoppableTrace
from regard.text.counts import counted
from regard.text.tokenizers.vocabulary import AnyTokenizer
from regard.training.objective import Sample

Ids = NDArray[np.int64]
SAMPLES = 2
"""Places of the validation text that a validation writes on from."""
PROMPT, LENGTH = 32, 48
"""Tokens read and written there."""
TEMPERATURE = 0.8
TOGETHER = 1 << 16
"""Tokens of documents that are judged together."""


class LanguageModelTraining(PredictionTraining):
    """Next words as training sees them [Radford18 §3.1, eq. 1]."""

    task: LanguageModel

    def guessing(self, text: Shards, labels: Shards, seed: int | None) -> NextTokenExamples:
        """Windows of ``data.max_tokens``, cut elsewhere in every epoch."""
        recipe = self.task.recipe
        windows = Windows(text, recipe.data.max_tokens, seed)
        return NextTokenExamples(windows, recipe.training.shard_tokens, self.task.assets.tokenizer.end)

    def hidden_states(self, batch: PredictionBatch) -> Tensor:
        """All positions: every token predicts the next."""
        hidden_TD: Tensor = self.model(self.model_inputs(batch))
        return hidden_TD[: len(batch.labels_N)]

    def table(self, hidden_ND: Tensor) -> tuple[Tensor, Tensor]:
        """The model's own."""
        return hidden_ND, self.task.model.output.weight

    def samples(self) -> tuple[Sample, ...]:
        """Samples: continuations of validation text, beside the real ones."""
        tokenizer, stream = self.task.assets.tokenizer, self.prepared.validation_text
        texts = [ids for ids in _somewhere(stream) if len(ids) > 1]
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
        stop, total = StoppableTrace(should_stop), Perplexity(0.0, 0, 0, 0)
        for some in _together(documents(self.prepared.validation_text, tokenizer.end)):
            nats = surprisals(task.model, some, length, length, tokenizer.end, stop.record)
            total += Perplexity.of(nats, [tokenizer.decode(ids) for ids in some])
        return [
            f"* loss {total.nats / max(1, total.tokens):.4f} nats a token, of {counted(total.tokens, 'token')}",
            f"* perplexity {total.per_token:.4f} per token, {total.per_word:,.1f} per word",
            f"* {total.bits_per_byte:.4f} bits per byte",
        ]


def _somewhere(stream: Shards) -> Iterator[Ids]:
    """Tokens at some places of the text: where documents begin, or inside of one that is alone."""
    for number in range(SAMPLES):
        ids = stream.sentence(number * (stream.count - 1) // max(1, SAMPLES - 1))
        begin = number * len(ids) // SAMPLES if stream.count < SAMPLES else 0
        yield ids[begin : begin + PROMPT + LENGTH]


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

    task: ClassVar[type[LanguageModel]] = LanguageModel
    training: ClassVar[type[LanguageModelTraining]] = LanguageModelTraining

    @staticmethod
    def encoder(tokenizer: AnyTokenizer, recipe: Recipe) -> DocumentEncoder:
        """Pieces, with ``</s>`` after each document."""
        return DocumentEncoder(tokenizer, ended=True)
