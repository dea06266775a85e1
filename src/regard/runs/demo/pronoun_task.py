"""The demonstration's second task: the encoder alone must tell which German pronoun *it* becomes [Caruana97].

The decoder sees every word of the source, and can look up in any of them what decides between *er*, *sie* and *es*.
This task makes the encoder itself do so, and in one place: its output at *it*, times the pre-softmax table, must tell
which of the three stands in the target. Attention is not supervised, the task has no parameters of its own, and a
finished model translates without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from regard.data.batches.batch import Ids, Packed, PairBatch
from regard.data.prepare.folder import PreparedPairs
from regard.models.inputs import pairs
from regard.system.errors import RegardError
from regard.tasks.protocols import ShouldStop
from regard.tasks.training.base import ProductPaths
from regard.tasks.translation.training import TranslationJob, TranslationTraining
from regard.tasks.translation.translator import Translation
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies
from regard.training.objective import Loss

WORD, CHOICES = "it", ("er", "sie", "es")
WEIGHT = 3.0
"""The loss of the second task counts this many times in the sum of both."""


@dataclass(frozen=True)
class Form:
    """A word that is one piece.

    Args:
        piece: its id.
        before_V, behind_V: the pieces before and behind which it is a whole word.
    """

    piece: int
    before_V: NDArray[np.bool_]
    behind_V: NDArray[np.bool_]

    @classmethod
    def of(cls, tokenizer: AnyTokenizer, piece: int) -> Form:
        """What can stand beside a piece that is a whole word."""
        together = [id for other in range(tokenizer.size) for id in (piece, other)]
        starts = tokenizer.word_starts([*together, piece])
        return cls(piece, before_V=starts[1::2], behind_V=starts[2::2])


class PronounLoss:
    """The second task: examples in a batch, their loss, and how many of them are right.

    Args:
        vocabularies: of the translator; *it* and its translations are single pieces of them.
    """

    def __init__(self, vocabularies: Vocabularies) -> None:
        source, target = vocabularies.source, vocabularies.target
        self.word = Form.of(source, piece_of(source, WORD))
        self.choices_C = np.array([piece_of(target, choice) for choice in CHOICES])
        self.forms = [[Form.of(target, piece) for piece in _pieces(target, choice)] for choice in CHOICES]

    def examples(self, batch: PairBatch) -> tuple[Ids, Ids]:
        """Where *it* stands in the packed source, and the number of its translation.

        Counted are the sentences whose target has one of the translations and no other, not even capitalised or behind
        a quotation mark.
        """
        found_T = _words(batch.source, batch.source.ids_T, [self.word])
        counts_BC = np.zeros((batch.source.count, len(CHOICES)), np.bool_)
        for number, forms in enumerate(self.forms):
            places_T = np.flatnonzero(_words(batch.target, batch.labels_T, forms))
            counts_BC[_sentences(batch.target, places_T), number] = True
        places_E = np.flatnonzero(found_T)
        sentences_E = _sentences(batch.source, places_E)
        single_E = counts_BC[sentences_E].sum(1) == 1
        return places_E[single_E], counts_BC[sentences_E[single_E]].argmax(1)

    def loss(self, memory_SD: Tensor, table_VD: Tensor, batch: PairBatch) -> Tensor:
        """Weighted cross-entropy between the translations, summed over the examples of a batch, in nats."""
        score_EC, gold_E = self._scores(memory_SD, table_VD, batch)
        return WEIGHT * functional.cross_entropy(score_EC, gold_E, reduction="sum")

    def right(self, memory_SD: Tensor, table_VD: Tensor, batch: PairBatch) -> tuple[int, int]:
        """How many of the examples the encoder tells right, and how many there are."""
        score_EC, gold_E = self._scores(memory_SD, table_VD, batch)
        return int((score_EC.argmax(1) == gold_E).sum()), len(gold_E)

    def _scores(self, memory_SD: Tensor, table_VD: Tensor, batch: PairBatch) -> tuple[Tensor, Tensor]:
        places_E, gold_E = (torch.from_numpy(one).to(memory_SD.device) for one in self.examples(batch))
        choices_CD = table_VD[torch.from_numpy(self.choices_C).to(memory_SD.device)].float()
        return memory_SD[places_E].float() @ choices_CD.T, gold_E


class DemonstrationTraining(TranslationTraining):
    """Training of the demonstration's translator: its loss has that of the second task in it."""

    def __init__(self, task: Translation, prepared: PreparedPairs, paths: ProductPaths) -> None:
        super().__init__(task, prepared, paths)
        self.second = PronounLoss(task.vocabularies)

    def loss(self, batch: PairBatch) -> Loss:
        """The smoothed loss of a batch, every target position a sample; in training with that of the second task."""
        if not self.model.training:
            return super().loss(batch)
        model, inputs = self.model, pairs(batch, self.task.device)
        memory_SD = model.encoder(inputs.source)
        hidden_TD = model.decoder(inputs.target, memory_SD, inputs.source)
        found = self.target_loss(batch, inputs, hidden_TD)
        return replace(found, total=found.total + self.second.loss(memory_SD, model.output.weight, batch))

    @torch.no_grad()
    def finish(self, task: Translation, should_stop: ShouldStop) -> list[str]:
        """As of any translator; and how often the encoder alone tells what *it* becomes."""
        lines = super().finish(task, should_stop)
        found = [
            self.second.right(task.model.encoder(task.inputs(batch.source)), task.model.output.weight, batch)
            for batch in self.batches.validation
        ]
        right, total = (sum(one) for one in zip(*found, strict=True))
        return [*lines, f"* the encoder tells which translation “{WORD}” has in {right:,} of {total:,} places"]


@dataclass(frozen=True)
class DemonstrationJob(TranslationJob):
    """Training of the demonstration's translator from its corpus."""

    training = DemonstrationTraining

    def more(self) -> dict[str, Any]:
        """The second task, by the names that it had when it was a section of the recipe: earlier runs resume."""
        return {
            "disambiguation.words": (f"{WORD} = {' '.join(CHOICES)}",),
            "disambiguation.weight": WEIGHT,
            **super().more(),
        }


def _words(side: Packed, ids_T: Ids, forms: list[Form]) -> NDArray[np.bool_]:
    """Where one of the forms is a whole word of a sentence; the last token of a sentence is none."""
    inside_T, first_T = np.zeros(len(ids_T) + 1, np.int64), np.zeros(len(ids_T), np.bool_)
    np.add.at(inside_T, side.starts_B[: side.count], 1)
    np.add.at(inside_T, (side.starts_B + side.lengths_B)[: side.count] - 1, -1)
    first_T[side.starts_B[: side.count]] = True
    found_T = np.zeros(len(ids_T), np.bool_)
    for form in forms:
        whole_T = ids_T == form.piece
        whole_T[:-1] &= form.before_V[ids_T[1:]]
        whole_T[1:] &= first_T[1:] | form.behind_V[ids_T[:-1]]
        found_T |= whole_T
    return found_T & (inside_T[:-1].cumsum() > 0)


def _sentences(side: Packed, places_E: Ids) -> Ids:
    """The number of the sentence in which each place lies."""
    return np.searchsorted(side.starts_B[: side.count], places_E, side="right") - 1


def piece_of(tokenizer: AnyTokenizer, word: str) -> int:
    """The piece of a word inside a sentence.

    Raises:
        RegardError: it is not one piece.
    """
    first, both = tokenizer.ids_batch(["a", f"a {word}"])
    added = both[len(first) :]
    if len(added) != 1 or list(both[: len(first)]) != list(first):
        raise RegardError(f"{word!r} is not one piece of the demonstration's vocabulary", "text.vocabulary")
    return int(added[0])


def _pieces(tokenizer: AnyTokenizer, word: str) -> list[int]:
    """The single pieces that are the word, in small letters or capitalised, with and without a space before it."""
    first = len(tokenizer.ids_batch(["a"])[0])
    found = [
        ids
        for form in {word, word.capitalize()}
        for ids in (tokenizer.ids_batch([form])[0], tokenizer.ids_batch([f"a {form}"])[0][first:])
    ]
    return sorted({int(ids[0]) for ids in found if len(ids) == 1})
