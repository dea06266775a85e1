"""The tables of embeddings: which pieces are near a piece, a map of many, and the vectors of texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import UsageError
from regard.explore.asked import Fields, a_text, which
from regard.explore.facts import sides
from regard.explore.models import Models
from regard.explore.payload import Answer
from regard.explore.space import Plane, nearest
from regard.explore.tokens import piece

if TYPE_CHECKING:
    from regard.text.vocabulary import AnyTokenizer

SIDES = ("source", "target")
TEXTS = 64
"""Texts whose vectors are asked for at once."""
NEAREST, PLACES = 100, 5000
"""Pieces that are given at most: near one, and on a map."""
CONTROL = re.compile("(<0x(0[0-8B-F]|1[0-9A-F]|7F|[89][0-9A-F])>)+")
"""A piece of control characters alone, as it is shown."""


@dataclass(frozen=True)
class Table:
    """A table of embeddings, as it is learned: before it is scaled, and before positions are added.

    Args:
        tokenizer: of its pieces.
        vector_VD: a row for each piece; the start symbol's is left out.
    """

    tokenizer: AnyTokenizer
    vector_VD: NDArray[np.float32]

    @classmethod
    def of(cls, task: Any, side: str) -> Table:
        """That of what a model reads, or of what it writes.

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
        """A text's pieces; as in the midst of a sentence where they are fewer, for a word's space belongs to it.

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
        """A piece by its number, as a page shows it."""
        return piece(self.tokenizer, id)

    def named(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """Pieces as plain values."""
        return [{"id": id, "piece": self.piece(id)} for id in ids]

    def readable(self) -> list[int]:
        """The pieces that are text, in the order in which they were learned.

        No symbols, no fragments of characters, and no control characters but tabs and the ends of lines: a vocabulary
        of bytes has them all, and most were never met.
        """
        whole = (id for id in self.tokenizer.ordinary.tolist() if not self.tokenizer.is_byte(id))
        return [id for id in whole if not CONTROL.fullmatch(self.piece(id))]

    def ranked(self) -> list[int]:
        """The same, whole words first."""
        return sorted(self.readable(), key=lambda id: not _word(self.piece(id)))


def _word(piece: str) -> bool:
    letters = piece.strip("▁#")
    return len(letters) > 1 and letters.isalpha()


def near(models: Models, given: Fields) -> Answer:
    """The pieces whose vectors point most as that of one piece does: of a text that which holds most of it."""
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
        **table.named([id])[0],
        "pieces": table.named(pieces),
        "near": [[one, table.piece(one), cosine] for one, cosine in named],
    }
    return values, {}


def map_of(models: Models, given: Fields) -> Answer:
    """Many pieces on the plane in which they differ most, those of a text among them."""
    table, count = _table(models, given), given.whole("count", 1, PLACES, 1500)
    text = given.text("text", "")
    given.end()
    marked = list(dict.fromkeys(table.pieces(text))) if text.strip() else []
    ids = list(dict.fromkeys([*marked, *table.ranked()]))[: max(count, len(marked))]
    vector_ND = table.vector_VD[ids]
    plane = Plane.through(vector_ND)
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
    texts = [a_text(text, "texts") for text in given.items("texts", TEXTS) or []]
    given.end()
    if not texts:
        raise UsageError(f"1 to {TEXTS} texts are wanted", "texts")
    pieces = [table.pieces(text) for text in texts]
    means = np.stack([table.vector_VD[ids].mean(axis=0) for ids in pieces])
    return {"pieces": [[table.piece(id) for id in ids] for ids in pieces]}, {"vector": means}


def _table(models: Models, given: Fields) -> Table:
    task = models.loaded(*which(given)).task
    return Table.of(task, given.word("side", SIDES, "source"))
