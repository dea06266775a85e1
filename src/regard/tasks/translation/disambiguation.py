"""A second task of a translator's encoder: tell which of its translations an ambiguous word has [Caruana97].

The decoder sees every word of the source, and can look up in any of them what decides between *er*, *sie* and *es*.
This task makes the encoder itself do so, and in one place: its output at *it*, times the pre-softmax table, must tell
which of the three stands in the target. Attention is not supervised, the task has no parameters of its own, and a
finished model translates without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from regard.config import Disambiguation
from regard.data.batches.batch import Ids, Packed, PairBatch
from regard.system.errors import UsageError
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies


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


@dataclass(frozen=True)
class AmbiguousWord:
    """A source word and the translations to tell apart.

    Args:
        form: of the word, behind a space.
        choices_C: ids of its translations, behind a space.
        forms: for each translation all its forms: capitalised too, and without the space before it.
    """

    form: Form
    choices_C: Ids
    forms: tuple[tuple[Form, ...], ...]

    def examples(self, batch: PairBatch) -> tuple[Ids, Ids]:
        """Where it stands in the packed source, and the number of its translation.

        Counted are the sentences whose target has one of the translations and no other, not even capitalised or behind
        a quotation mark.
        """
        found_T = _words(batch.source, batch.source.ids_T, (self.form,))
        counts_BC = np.zeros((batch.source.count, len(self.choices_C)), np.bool_)
        for number, forms in enumerate(self.forms):
            places_T = np.flatnonzero(_words(batch.target, batch.labels_T, forms))
            counts_BC[_sentences(batch.target, places_T), number] = True
        places_E = np.flatnonzero(found_T)
        sentences_E = _sentences(batch.source, places_E)
        single_E = counts_BC[sentences_E].sum(1) == 1
        return places_E[single_E], counts_BC[sentences_E[single_E]].argmax(1)


class DisambiguationLoss:
    """The second task: examples in a batch, their loss, and how many of them are right.

    Args:
        section: of the recipe.
        vocabularies: of the translator.

    Raises:
        UsageError: a word is more than one piece of its vocabulary, or two of them are the same there.
    """

    def __init__(self, section: Disambiguation, vocabularies: Vocabularies) -> None:
        self.weight = section.weight
        self.words = {word: _ambiguous(word, choices, vocabularies) for word, choices in section.choices.items()}
        for side in ([[one.form.piece for one in self.words.values()]], [one.choices_C for one in self.words.values()]):
            if any(len(set(map(int, ids))) < len(ids) for ids in side):
                raise UsageError("two of the words are the same piece of the vocabulary", "disambiguation.words")

    def loss(self, memory_SD: Tensor, table_VD: Tensor, batch: PairBatch) -> Tensor:
        """Weighted cross-entropy between the translations, summed over the examples of a batch, in nats."""
        total = memory_SD.new_zeros((), dtype=torch.float32)
        for score_EC, gold_E in self._scores(memory_SD, table_VD, batch).values():
            total = total + functional.cross_entropy(score_EC, gold_E, reduction="sum")
        return self.weight * total

    def right(self, memory_SD: Tensor, table_VD: Tensor, batch: PairBatch) -> Mapping[str, tuple[int, int]]:
        """For each word how many of its examples the encoder tells right, and how many there are."""
        scores = self._scores(memory_SD, table_VD, batch)
        return {word: (int((score.argmax(1) == gold).sum()), len(gold)) for word, (score, gold) in scores.items()}

    def _scores(self, memory_SD: Tensor, table_VD: Tensor, batch: PairBatch) -> dict[str, tuple[Tensor, Tensor]]:
        """``score_EC, gold_E`` for each word that the batch has examples of."""
        device, found = memory_SD.device, {}
        for word, one in self.words.items():
            places_E, gold_E = one.examples(batch)
            if len(places_E):
                choices_CD = table_VD[torch.from_numpy(one.choices_C).to(device)].float()
                memory_ED = memory_SD[torch.from_numpy(places_E).to(device)].float()
                found[word] = memory_ED @ choices_CD.T, torch.from_numpy(gold_E).to(device)
        return found


def _words(side: Packed, ids_T: Ids, forms: tuple[Form, ...]) -> NDArray[np.bool_]:
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
    result: NDArray[np.bool_] = found_T & (inside_T[:-1].cumsum() > 0)
    return result


def _sentences(side: Packed, places_E: Ids) -> Ids:
    """The number of the sentence in which each place lies."""
    return np.searchsorted(side.starts_B[: side.count], places_E, side="right") - 1


def _ambiguous(word: str, choices: tuple[str, ...], vocabularies: Vocabularies) -> AmbiguousWord:
    source, target = vocabularies.source, vocabularies.target
    ids = np.array([_piece(target, choice, "target") for choice in choices])
    forms = tuple(tuple(_form(target, piece) for piece in _forms(target, choice)) for choice in choices)
    return AmbiguousWord(_form(source, _piece(source, word, "source")), ids, forms)


def _piece(tokenizer: AnyTokenizer, word: str, side: str) -> int:
    """The piece of a word inside a sentence."""
    first, both = tokenizer.ids_batch(["a", f"a {word}"])
    added = both[len(first) :]
    if len(added) != 1 or list(both[: len(first)]) != list(first):
        raise UsageError(
            f"{word!r:.60} is {len(added)} pieces of the {side} vocabulary; only words of one piece can be told apart",
            "disambiguation.words",
        )
    return int(added[0])


def _forms(tokenizer: AnyTokenizer, word: str) -> list[int]:
    """The single pieces that are the word, in small letters or capitalised, with and without a space before it."""
    first = len(tokenizer.ids_batch(["a"])[0])
    told = {word, word[:1].lower() + word[1:], word[:1].upper() + word[1:]}
    found = [
        ids for form in told for ids in (tokenizer.ids_batch([form])[0], tokenizer.ids_batch([f"a {form}"])[0][first:])
    ]
    return sorted({int(ids[0]) for ids in found if len(ids) == 1})


def _form(tokenizer: AnyTokenizer, piece: int) -> Form:
    """What can stand beside a piece that is a whole word."""
    pairs = [id for other in range(tokenizer.size) for id in (piece, other)]
    starts = tokenizer.word_starts([*pairs, piece])
    return Form(piece, before_V=starts[1::2], behind_V=starts[2::2])
