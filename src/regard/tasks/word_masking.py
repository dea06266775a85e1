"""A model of masked words in the making: some tokens are hidden, others at every step, and guessed from the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from regard.config import Recipe
from regard.data.coding import DocumentCoding
from regard.data.framing import Frame
from regard.data.guesses import Guesses, HiddenWords
from regard.data.masking import Symbols
from regard.data.prepare_examples import PreparedExamples
from regard.data.shards import Shards
from regard.data.windows import FramedWindows, Windows
from regard.data.word_coding import WordCoding
from regard.errors import UsageError
from regard.nn import ops
from regard.tasks.guess_scores import GuessScores
from regard.tasks.guessing import GuessTeaching
from regard.tasks.masked_lm import MaskedLm
from regard.tasks.pretrained import SYMBOLS
from regard.tasks.running_text import RunningJob
from regard.tasks.saver import Stoppable
from regard.tasks.shown import marked
from regard.tasks.teaching import Paths, ShouldStop
from regard.text.tokenizer import MASK
from regard.text.vocabulary import AnyTokenizer
from regard.training.objective import Sample

SAMPLES, LENGTH = 2, 32
"""Windows shown at a validation, and tokens of each."""


class MaskingTeaching(GuessTeaching):
    """Masked words as training sees them [Devlin19 §3.1]."""

    task: MaskedLm

    def guessing(self, text: Shards, labels: Shards, seed: int | None) -> HiddenWords:
        """Windows of ``data.max_tokens`` between their symbols; what is hidden in them differs in every epoch."""
        recipe, tokenizer = self.task.recipe, self.task.assets.tokenizer
        frame = Frame.of(tokenizer, recipe.data.max_tokens)
        starts = Windows(labels, frame.room, seed) if recipe.masking.whole_words else None
        symbols = Symbols(self.task.mask, tokenizer.ordinary)
        return HiddenWords(FramedWindows(text, frame, seed), starts, recipe.training.tokens, symbols, recipe.masking)

    def hidden(self, batch: Guesses) -> Tensor:
        """Only where something is hidden: the head does not look at the rest."""
        given, model = self.given(batch), self.task.model
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
    def guessed(self, batch: Guesses) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The most probable piece at each hidden place."""
        head: Any = self.task.model.head
        hidden_ND = self.hidden(batch)
        parts = [head.scores(hidden_ND[place : place + 512]).argmax(1) for place in range(0, len(hidden_ND), 512)]
        found: np.ndarray[Any, np.dtype[np.int64]] = torch.cat([*parts, hidden_ND.new_empty(0).long()]).cpu().numpy()
        return found

    def samples(self) -> tuple[Sample, ...]:
        """The beginnings of some windows: as they are read, as they are, and with what is guessed."""
        batch, tokenizer = self.validation[0], self.task.assets.tokenizer
        truth, filled = batch.text.ids_T.copy(), batch.text.ids_T.copy()
        truth[batch.places_N], filled[batch.places_N] = batch.labels_N, self.guessed(batch)
        found = []
        for start, length in zip(batch.text.starts_B[:SAMPLES], batch.text.lengths_B[:SAMPLES], strict=True):
            here = slice(int(start), int(start) + min(LENGTH, int(length)))
            read = marked(tokenizer, batch.text.ids_T[here].tolist(), {self.task.mask})
            found.append(Sample(read, tokenizer.decode(truth[here].tolist()), tokenizer.decode(filled[here].tolist())))
        return tuple(found)

    def finish(self, task: MaskedLm, should_stop: ShouldStop) -> list[str]:
        """Loss and share of right guesses over the whole validation text."""
        found = self.scored(task, self.prepared, self.paths, should_stop)
        loss = f"{found.loss:.4f} nats a hidden token, of {found.tokens:,} tokens; perplexity {found.perplexity:.2f}"
        return [f"* loss {loss}", f"* {found.accuracy:.2f} % of them guessed right"]

    @classmethod
    def scored(cls, task: MaskedLm, prepared: PreparedExamples, paths: Paths, should_stop: ShouldStop) -> GuessScores:
        """The scores on the validation part of prepared text; what is hidden in it is always the same."""
        teaching, stop = cls(task, prepared, paths, 0), Stoppable(should_stop)
        teaching.criterion.eval()
        batches = teaching.guessing(prepared.validation_text, prepared.validation_labels, None)
        nats, right, count = 0.0, 0, 0
        with torch.no_grad(), ops.using(task.model, paths.exact):
            for batch in batches.some(task.recipe.seed, prepared.validation_text.tokens * 2 + 1):
                stop.record()
                nats += float(teaching.loss(batch).nll)
                right += int((teaching.guessed(batch) == batch.labels_N).sum())
                count += len(batch.labels_N)
        return GuessScores(nats, count, right)


@dataclass(frozen=True)
class MaskedLmJob(RunningJob):
    """A model of masked words from running text; from another one, where it is named."""

    task: ClassVar[type[MaskedLm]] = MaskedLm
    symbols: ClassVar[tuple[str, ...]] = SYMBOLS

    @staticmethod
    def coding(tokenizer: AnyTokenizer, recipe: Recipe) -> DocumentCoding:
        """Pieces; and where words begin, if they are to be hidden whole.

        Raises:
            UsageError: the vocabulary of the model that is begun from has no symbol for a hidden word.
        """
        if tokenizer.mask is None:
            raise UsageError(f"its vocabulary has no symbol {MASK} for hidden words", "--from")
        return WordCoding(tokenizer) if recipe.masking.whole_words else DocumentCoding(tokenizer, ended=False)

    def rests(self, recipe: Recipe) -> dict[str, Any]:
        """Whether words are hidden whole."""
        return {**super().rests(recipe), "masking.whole_words": recipe.masking.whole_words}

    def teach(self, task: MaskedLm, prepared: PreparedExamples, paths: Paths) -> MaskingTeaching:
        """The teaching of a fresh model."""
        return MaskingTeaching(task, prepared, paths, self.text.characters)
