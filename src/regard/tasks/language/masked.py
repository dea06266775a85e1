"""Fill-mask: predictions for ``[MASK]`` in a text, with a trained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from regard.config import BertSection, Recipe
from regard.data.batches.batch import Ids, Packed, batches_in_order, pack_sources
from regard.system.errors import RegardError, UsageError
from regard.tasks.assets import TextAssets
from regard.tasks.engine import engine_of
from regard.tasks.protocols import Unloaded
from regard.tasks.text.task import (
    ROOM,
    GappedText,
    Gaps,
    Read,
    TextReader,
    finite_numbers,
    inference_mode,
    refuse_others,
)
from regard.text.tokenizers.tokenizer import MASK

if TYPE_CHECKING:
    from regard.models.bert import Bert, WordHead


@dataclass(frozen=True)
class Candidate:
    """One candidate piece for a gap.

    Args:
        piece: for display: ``▁`` is a space.
        probability: by the model, given all the rest.
        text: the whole text with it, the other gaps filled with their most probable pieces.
    """

    piece: str
    probability: float
    text: str


class MaskedLm(TextReader):
    """A masked language model, ready to use.

    A gap is one piece: a word of several pieces needs as many consecutive ``[MASK]``. The space before a gap
    belongs to it, as it belongs to a word's first piece; characters as units have their spaces apart.

    Raises:
        RegardError: the vocabulary has no mask token.
    """

    evaluate_options = ("test", "columns")

    def __init__(self, recipe: Recipe, assets: TextAssets, model: Bert | Unloaded[Bert]) -> None:
        super().__init__(recipe, assets, model)
        tokenizer = assets.tokenizer
        if (mask := tokenizer.mask) is None:
            raise RegardError(f"the vocabulary has no symbol {MASK} for hidden words", "tokenizer.json")
        self.mask: int = mask
        self.gaps = Gaps(tokenizer, {MASK: mask, tokenizer.piece(mask): mask})
        self.marks = self.gaps.pattern

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Bert:
        """The encoder of a recipe with a head that guesses pieces."""
        from regard.models.build import bert, words

        assert isinstance(recipe.model, BertSection)
        return bert(recipe.model, sizes[0], words(recipe.model), key)

    @property
    def head(self) -> WordHead:
        """What gives every piece its score."""
        from regard.models.bert import WordHead

        assert isinstance(self.model.head, WordHead)
        return self.model.head

    @overload
    def fill(self, text: str, k: int = 5) -> list[list[Candidate]]: ...
    @overload
    def fill(self, text: list[str], k: int = 5) -> list[list[list[Candidate]]]: ...
    def fill(self, text: str | list[str], k: int = 5) -> list[list[Candidate]] | list[list[list[Candidate]]]:
        """For each ``[MASK]`` of a text, or of each text of a list, the ``k`` most probable pieces, best first.

        Each gap is guessed with all the others still open. A text longer than the model ever saw is read in windows
        that overlap, each gap in that which has most around it.

        Raises:
            UsageError: ``k`` is less than 1, or ``text`` is no text.
        """
        if k < 1:
            raise UsageError(f"{k} candidates cannot be given; ask for 1 or more", "k")
        texts = [text] if isinstance(text, str) else text
        refuse_others(texts)
        asked = [self.gaps.parse(one) for one in texts]
        found = [self._candidates(one, rows, k) for one, rows in zip(asked, self._scores(asked), strict=True)]
        return found[0] if isinstance(text, str) else found

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The model's input for a text and its characters, for inspection; a gap is one token."""
        found = self.gaps.parse(text)
        last = len(found.text)
        return found.text, [*((id, 0, 0) for id in self.frame.begin), *found.read, (self.frame.end, last, last)]

    def _scores(self, asked: Sequence[GappedText]) -> list[list[NDArray[np.float64]]]:
        """For each gap of each text the logarithm of every piece's probability, by the window with most around it."""
        gaps_of: dict[tuple[int, int], list[int]] = {}
        for number, one in enumerate(asked):
            starts, middle = self.frame.starts(len(one.read)), self.frame.room / 2
            for gap in one.gaps:
                start = min(starts, key=lambda start: abs(start + middle - gap))
                gaps_of.setdefault((number, start), []).append(gap)
        windows = list(gaps_of)
        ids = [np.array(one.ids, np.int64) for one in asked]
        framed = [self.frame.add_symbols(ids[number][start : start + self.frame.room]) for number, start in windows]
        rows: dict[tuple[int, int], NDArray[np.float64]] = {}
        lengths = np.array([len(ids) for ids in framed], np.int64)
        for part in batches_in_order([lengths], [ROOM], len(framed)):
            begins = (lengths[part].cumsum() - lengths[part] + len(self.frame.begin)).tolist()
            gaps = [
                (number, gap, begin + gap - start)
                for (number, start), begin in zip((windows[place] for place in part), begins, strict=True)
                for gap in gaps_of[number, start]
            ]
            packed = pack_sources([framed[place] for place in part])
            probable_NV = self._log_probabilities(packed, np.array([place for _, _, place in gaps], np.int64))
            rows |= {(number, gap): row_V for (number, gap, _), row_V in zip(gaps, probable_NV, strict=True)}
        return [[rows[number, gap] for gap in one.gaps] for number, one in enumerate(asked)]

    def _log_probabilities(self, packed: Packed, places_N: Ids) -> NDArray[np.float64]:
        """Of every piece at some tokens of packed texts: ``log_probability_NV``."""
        if (engine := engine_of(self)) is not None:
            score_NV = finite_numbers(engine.pieces(self.texts_of(packed), places_N).astype(np.float64))
            return np.asarray(score_NV - np.logaddexp.reduce(score_NV, axis=1, keepdims=True))
        return finite_numbers(self._of_model(packed, places_N))

    @inference_mode
    def _of_model(self, packed: Packed, places_N: Ids) -> NDArray[np.float64]:
        import torch

        read, head = self.inputs(packed), self.head
        hidden_ND = head(self.model.encoder(read)[torch.from_numpy(places_N).to(self.device)], read.sequences)
        return head.scores(hidden_ND).double().log_softmax(1).cpu().numpy()

    def _candidates(self, asked: GappedText, scores: Sequence[NDArray[np.float64]], k: int) -> list[list[Candidate]]:
        """Pieces only: texts contain no symbols."""
        tokenizer, ordinary = self.assets.tokenizer, self.assets.tokenizer.ordinary
        ranked = [ordinary[np.argsort(-row_V[ordinary], kind="stable")[:k]] for row_V in scores]
        best = np.array(asked.ids, np.int64)
        best[list(asked.gaps)] = [ids[0] for ids in ranked]
        found = []
        for gap, row_V, ids in zip(asked.gaps, scores, ranked, strict=True):
            candidates = []
            for id in ids.tolist():
                whole = best.copy()
                whole[gap] = id
                probability = float(np.exp(row_V[id]))
                candidates.append(Candidate(tokenizer.piece(id), probability, tokenizer.decode(whole.tolist())))
            found.append(candidates)
        return found
