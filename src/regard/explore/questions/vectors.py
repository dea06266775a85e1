"""Vectors of a model on the page: embedding tables, positional encodings, and tokens layer by layer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from regard.explore.folders.facts import positions_of, sides
from regard.explore.folders.models import Models, refuse_replaced_weights
from regard.explore.forward.inputs import piece
from regard.explore.forward.passes import inputs_of
from regard.explore.forward.vector_space import Plane, Stack, layer_paths, nearest, position_views
from regard.explore.payload import Answer
from regard.explore.questions.look import token_values
from regard.explore.requests import UNCHANGED, Changes, Count, ModelRequest, Piece, Place, Scene, Text, question
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.text.tokenizers.vocabulary import AnyTokenizer

Side = Literal["source", "target"]
TEXTS = 64
"""Most texts per request."""
NEAREST, PLACES = 100, 5000
"""Most pieces returned: as neighbours, and on a map."""
CONTROL = re.compile("(<0x(0[0-8B-F]|1[0-9A-F]|7F|[89][0-9A-F])>)+")
"""A display text of control characters only."""
POSITIONS = 512
TokenPlace = tuple[Place, Place]
"""A token, by its text and its place in it."""


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
    def of(cls, task: Any, side: Side) -> Table:
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


def _is_word(piece: str) -> bool:
    letters = piece.strip("▁#")
    return len(letters) > 1 and letters.isalpha()


@question
def nearest_pieces(
    models: Models,
    asked: ModelRequest,
    side: Side = "source",
    id: Piece | None = None,
    text: Text | None = None,
    count: Annotated[Count, Field(le=NEAREST)] = 12,
) -> Answer:
    """The nearest pieces by cosine; for a text, nearest to its longest piece."""
    table = Table.of(models.load_for(asked).task, side)
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


@question
def embedding_map(
    models: Models,
    asked: ModelRequest,
    side: Side = "source",
    text: Text = "",
    count: Annotated[Count, Field(le=PLACES)] = 1500,
) -> Answer:
    """A 2-D map of many pieces by PCA, including those of a text."""
    table = Table.of(models.load_for(asked).task, side)
    marked = list(dict.fromkeys(table.pieces(text))) if text.strip() else []
    others = sorted(table.readable(), key=lambda id: not _is_word(table.piece(id)))
    ids = list(dict.fromkeys([*marked, *others]))[: max(count, len(marked))]
    vector_ND = table.vector_VD[ids]
    plane = Plane.fit(vector_ND)
    values = {
        "ids": ids,
        "pieces": [table.piece(id) for id in ids],
        "share": plane.share,
        "marked": list(range(len(marked))),
    }
    return values, {"place": plane.on(vector_ND).astype(np.float32)}


@question
def vectors(
    models: Models,
    asked: ModelRequest,
    texts: Annotated[tuple[Text, ...], Field(min_length=1, max_length=TEXTS)],
    side: Side = "source",
) -> Answer:
    """For each text the mean of its pieces' vectors."""
    table = Table.of(models.load_for(asked).task, side)
    pieces = [table.pieces(text) for text in texts]
    means = np.stack([table.vector_VD[ids].mean(axis=0) for ids in pieces])
    return {"pieces": [[table.piece(id) for id in ids] for ids in pieces]}, {"vector": means}


@question
def places_of(
    models: Models, asked: ModelRequest, stack: Stack, count: Annotated[Count, Field(le=POSITIONS)] = 64
) -> Answer:
    """Position vectors, their similarity, and the biases that positions add to scores."""
    task = models.load_for(asked).task
    section = task.recipe.model
    found = position_views(task.model, section, stack, count)
    arrays = {"vector": found.vector_TD, "likeness": found.likeness_TT, "by_distance": found.likeness_by_distance}
    if found.bias_HX is not None:
        arrays["bias"] = found.bias_HX
    floats = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
    return {"kind": positions_of(section)}, floats


@question
def drift_of(
    models: Models,
    asked: ModelRequest,
    stack: Stack,
    scenes: Annotated[tuple[Scene, ...], Field(min_length=1, max_length=2)],
    pair: tuple[TokenPlace, TokenPlace] | None = None,
    changes: Changes = UNCHANGED,
) -> Answer:
    """The paths of the tokens of one or two texts or images from layer to layer, on a common plane.

    Args:
        models, asked: the model shared by all.
        stack: of layers.
        scenes: the texts or images.
        pair: two tokens, whose cosine is measured in each layer, as text index and token index.
        changes: what the model does without.
    """
    loaded = models.load_for(asked)
    for one in scenes:
        refuse_replaced_weights(one.weights, loaded.weights)
    wanted = [replace(one, model=asked.model, snapshot=asked.snapshot, changes=changes) for one in scenes]
    seen = [inputs_of(models, loaded, one) for one in wanted]
    with changes.ablations.apply(loaded.task.recipe.model):
        found = layer_paths(seen, stack)
    sides = [one.source if stack == "encoder" else one.target for one in seen]
    for scene, place in pair or ():
        if scene >= len(sides) or place >= len(sides[scene]):
            raise UsageError(f"there is no token {place} of text {scene}", "pair")
    values: dict[str, Any] = {
        "tokens": [token_values(side) for side in sides],
        "share": found.plane.share,
        "alike": None if pair is None else found.layer_cosines(*pair),
    }
    return values, {f"path.{one}": path.astype(np.float32) for one, path in enumerate(found.paths)}
