"""Embedding tables: nearest pieces, a 2-D map of pieces, and mean vectors of texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.explore.folders.facts import sides
from regard.explore.folders.models import Models
from regard.explore.forward.tokens import piece
from regard.explore.forward.vector_space import Plane, nearest
from regard.explore.payload import Answer
from regard.explore.requests import Fields, check_text, model_reference
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.text.tokenizers.vocabulary import AnyTokenizer

SIDES = ("source", "target")
TEXTS = 64
"""Most texts per request."""
NEAREST, PLACES = 100, 5000
"""Most pieces returned: as neighbours, and on a map."""
CONTROL = re.compile("(<0x(0[0-8B-F]|1[0-9A-F]|7F|[89][0-9A-F])>)+")
"""A display text of control characters only."""


@dataclass(frozen=True)
class Table:
    """An embedding table as learned: before scaling and positions.

    Args:
        tokenizer: of its pieces.
        vector_VD: a row for each piece; the start symbol's is left out.
    """

    tokenizer: AnyTokenizer
    vector_VD: NDArray[np.float32]

    @classmethod
    def of(cls, task: Any, side: str) -> Table:
        """The table of the source or the target side.

        Raises:
            UsageError: the model has no such table.
        """
        there = sides(task.recipe)
        if side not in there:
            raise UsageError(f"this model has {' and '.join(there) or 'no'} embeddings of pieces", "side")
        tokenizer = getattr(task.vocabularies, side) if task.name == "translation" else task.assets.tokenizer
        stack = "decoder" if side == "target" or task.recipe.model.family == "gpt" else "encoder"
        weight = getattr(task.model, stack).input.tokens.weight
        return cls(tokenizer, weight[: tokenizer.size].detach().float().cpu().numpy())

    def pieces(self, text: str) -> list[int]:
        """A text's pieces, tokenized as within a sentence if that gives fewer, since a word's space belongs to it.

        Of a word alone also where they are as many: with its space it was met in a text, without it may only have been
        a step on the way to that.

        Raises:
            UsageError: it has none.
        """
        plain, within = (one.ids for one in self.tokenizer.encode_batch([text, f" {text.lstrip()}"]))
        spare = len(plain) - len(within)
        found = within if spare > 0 or (spare == 0 and len(text.split()) == 1) else plain
        if not text.strip() or not found:
            raise UsageError("there is nothing to look up: the text is empty", "text")
        return found

    def piece(self, id: int) -> str:
        """The display text of a piece."""
        return piece(self.tokenizer, id)

    def piece_values(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """Pieces as plain values."""
        return [{"id": id, "piece": self.piece(id)} for id in ids]

    def readable(self) -> list[int]:
        """The pieces that are text, in the order in which they were learned.

        No symbols, no fragments of characters, and no control characters but tabs and the ends of lines: a vocabulary
        of bytes has them all, and most were never met.
        """
        whole = (id for id in self.tokenizer.ordinary.tolist() if not self.tokenizer.is_byte(id))
        return [id for id in whole if not CONTROL.fullmatch(self.piece(id))]

    def words_first(self) -> list[int]:
        """The same, with whole words first."""
        return sorted(self.readable(), key=lambda id: not _is_word(self.piece(id)))


def _is_word(piece: str) -> bool:
    letters = piece.strip("▁#")
    return len(letters) > 1 and letters.isalpha()


def nearest_pieces(models: Models, given: Fields) -> Answer:
    """The nearest pieces by cosine; for a text, nearest to its longest piece."""
    table, count = _table(models, given), given.whole("count", 1, NEAREST, 12)
    id, text = given.whole("id", 0, 2**31, None), given.text("text", None)
    given.end()
    if (id is None) == (text is None):
        raise UsageError("a piece is named by a text, or by its number", "text")
    pieces = [] if text is None else table.pieces(text)
    if id is None:
        id = max(pieces, key=lambda one: len(table.piece(one)))
    if id >= table.tokenizer.size:
        raise UsageError(f"there is no piece {id}; there are {table.tokenizer.size:,}", "id")
    ids = np.union1d(table.readable(), [id])
    found = nearest(table.vector_VD[ids], int(np.searchsorted(ids, id)), count)
    named = [(int(ids[place]), cosine) for place, cosine in found]
    values = {
        **table.piece_values([id])[0],
        "pieces": table.piece_values(pieces),
        "near": [[one, table.piece(one), cosine] for one, cosine in named],
    }
    return values, {}


def embedding_map(models: Models, given: Fields) -> Answer:
    """A 2-D map of many pieces by PCA, including those of a text."""
    table, count = _table(models, given), given.whole("count", 1, PLACES, 1500)
    text = given.text("text", "")
    given.end()
    marked = list(dict.fromkeys(table.pieces(text))) if text.strip() else []
    ids = list(dict.fromkeys([*marked, *table.words_first()]))[: max(count, len(marked))]
    vector_ND = table.vector_VD[ids]
    plane = Plane.fit(vector_ND)
    values = {
        "ids": ids,
        "pieces": [table.piece(id) for id in ids],
        "share": plane.share,
        "marked": list(range(len(marked))),
    }
    return values, {"place": plane.on(vector_ND).astype(np.float32)}


def vectors(models: Models, given: Fields) -> Answer:
    """For each text the mean of its pieces' vectors."""
    table = _table(models, given)
    texts = [check_text(text, "texts") for text in given.items("texts", TEXTS) or []]
    given.end()
    if not texts:
        raise UsageError(f"expected 1 to {TEXTS} texts", "texts")
    pieces = [table.pieces(text) for text in texts]
    means = np.stack([table.vector_VD[ids].mean(axis=0) for ids in pieces])
    return {"pieces": [[table.piece(id) for id in ids] for ids in pieces]}, {"vector": means}


def _table(models: Models, given: Fields) -> Table:
    task = models.load(*model_reference(given)).task
    return Table.of(task, given.word("side", SIDES, "source"))
