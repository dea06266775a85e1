"""Vectors of a model on the page: embedding tables, positional encodings, and tokens layer by layer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from regard.config.families import Model
from regard.inspection.folders.facts import positions_of, sides
from regard.inspection.folders.models import Models, refuse_replaced_weights
from regard.inspection.forward.passes import inputs_of
from regard.inspection.forward.record import ModelInputs, piece
from regard.inspection.questions.look import token_values
from regard.inspection.requests import (
    UNCHANGED,
    Answer,
    Changes,
    Count,
    ModelRequest,
    Piece,
    Place,
    Scene,
    Text,
    question,
)
from regard.system.errors import RegardError, UsageError
from regard.tasks.kinds import reads_text
from regard.text.confidence import Side

if TYPE_CHECKING:
    from torch import nn

    from regard.tasks.protocols import Task
    from regard.text.tokenizers.vocabulary import AnyTokenizer


Floats = NDArray[np.float64]
Stack = Literal["encoder", "decoder"]
TEXTS = 64
"""Most texts per request."""
NEAREST, PLACES = 100, 5000
"""Most pieces returned: as neighbours, and on a map."""
CONTROL = re.compile("(<0x(0[0-8B-F]|1[0-9A-F]|7F|[89][0-9A-F])>)+")
"""A display text of control characters only."""
POSITIONS = 512
TokenPlace = tuple[Place, Place]
"""A token, by its text and its place in it."""


def cosines(table_VD: NDArray[np.floating], vector_D: NDArray[np.floating]) -> Floats:
    """``cosine_V`` of each row with a vector; 0 for zero vectors."""
    table_VD, vector_D = np.asarray(table_VD, np.float64), np.asarray(vector_D, np.float64)
    lengths_V = np.linalg.norm(table_VD, axis=1) * np.linalg.norm(vector_D)
    return np.divide(table_VD @ vector_D, lengths_V, out=np.zeros(len(table_VD)), where=lengths_V > 0)


def nearest(table_VD: NDArray[np.floating], place: int, count: int) -> list[tuple[int, float]]:
    """The rows nearest to the row at ``place`` by cosine, without itself: indices and cosines, nearest first."""
    cosine_V = cosines(table_VD, table_VD[place])
    order = np.argsort(-cosine_V, kind="stable")
    return [(int(one), float(cosine_V[one])) for one in order if one != place][:count]


@dataclass(frozen=True)
class Plane:
    """The plane of the first two principal components of some points.

    Args:
        middle_D: where it lies.
        axes_AD: its two directions, each of length one, across each other; the largest entry of each is above zero.
        share: of the squared distances from the middle, how much lies in the plane.
    """

    middle_D: Floats
    axes_AD: Floats
    share: float

    @classmethod
    def fit(cls, points_ND: NDArray[np.floating]) -> Plane:
        """Fit the plane to these points."""
        points_ND = np.asarray(points_ND, np.float64)
        middle_D = points_ND.mean(axis=0)
        _, sizes, axes = np.linalg.svd(points_ND - middle_D, full_matrices=False)
        axes_AD = np.zeros((2, points_ND.shape[1]))
        axes_AD[: len(axes[:2])] = axes[:2]
        largest = np.take_along_axis(axes_AD, np.abs(axes_AD).argmax(axis=1)[:, None], axis=1)
        total = float((sizes**2).sum())
        share = float((sizes[:2] ** 2).sum()) / total if total else 1.0
        return cls(middle_D, axes_AD * np.where(largest < 0, -1, 1), share)

    def on(self, points_ND: NDArray[np.floating]) -> Floats:
        """Project points onto the plane: ``place_NA``."""
        return np.asarray((np.asarray(points_ND, np.float64) - self.middle_D) @ self.axes_AD.T)


def layer_vectors(seen: ModelInputs, stack: Stack) -> NDArray[np.floating]:
    """``vector_LTD``: the token vectors of an input, at a stack's input and after each of its layers.

    Raises:
        RegardError: the model has no such stack of layers.
    """
    from regard.models.captured_attention import streams

    layers = streams(seen.task.model, seen.run, stack)
    if not layers:
        raise RegardError(f"this model has no {stack} of layers to follow vectors through", "stack")
    return np.stack([x_TD.float().cpu().numpy() for x_TD in layers])


def layer_cosines(one_LD: NDArray[np.floating], other_LD: NDArray[np.floating]) -> list[float]:
    """The cosine of two tokens in each layer."""
    return [float(cosines(one_D[None], other_D)[0]) for one_D, other_D in zip(one_LD, other_LD, strict=True)]


def position_views(
    model: nn.Module, section: Model, stack: str, count: int
) -> tuple[NDArray[np.floating], NDArray[np.floating] | None]:
    """The first ``count`` positions of a stack, or fewer if the model has fewer.

    Args:
        model: of any family.
        section: its sizes.
        stack: ``encoder`` or ``decoder``.

    Returns:
        ``vector_TD``: what is added to the embedding at each position; zeros where nothing is. Of rotary positions the
        cosines, then the sines of a head's angles: to these the vector (1, …, 1, 0, …, 0) is turned. ``bias_HX``: what
        is added to the scores of each head by distance, from the key ``T - 1`` before the query to that ``T - 1`` after
        it; ``None`` if nothing is added.

    Raises:
        RegardError: the model has no such stack.
    """
    import torch

    from regard.nn.layout import Sequences
    from regard.nn.positions import Rotary

    if not hasattr(model, stack):
        raise RegardError(f"this model has no {stack} with positions", "stack")
    positions, weight = getattr(model, stack).input.positions, next(model.parameters())
    count = int(min(count, section.known_positions))
    with torch.inference_mode():
        place_T = torch.arange(count, device=weight.device)
        vector_TD = positions.embed(weight.new_zeros(count, section.d_model), place_T, count)
        if isinstance(positions, Rotary):
            start_THK = weight.new_ones(count, 1, positions.size)
            start_THK[..., positions.size // 2 :] = 0
            vector_TD = positions.rotate(start_THK, Sequences.end_to_end([count], weight.device))[:, 0]
        bias = positions.bias()
        bias_HX = None
        if bias is not None:
            every_X = torch.arange(2 * count - 1, device=weight.device)
            bias_HX = bias(every_X[count - 1 : count], every_X)[:, 0].float().cpu().numpy()
    return vector_TD.float().cpu().numpy(), bias_HX


def likeness(vector_TD: NDArray[np.floating]) -> Floats:
    """``likeness_TT``: the cosine of all pairs of vectors; zeros where there are none."""
    return np.stack([cosines(vector_TD, vector_D) for vector_D in vector_TD])


@dataclass(frozen=True)
class Table:
    """An embedding table as learned: before scaling and positions.

    Args:
        tokenizer: of its pieces.
        vector_VD: a row for each piece; the start symbol's is left out.
        unseen: pieces that no training text has; ``None`` where that is not known.
    """

    tokenizer: AnyTokenizer
    vector_VD: NDArray[np.float32]
    unseen: frozenset[int] | None = None

    @classmethod
    def of(cls, task: Task, side: Side) -> Table:
        """The table of the source or the target side.

        Raises:
            UsageError: the model has no such table.
        """
        there = sides(task.recipe)
        if side not in there:
            raise UsageError(f"this model has {' and '.join(there) or 'no'} embeddings of pieces", "side")
        tokenizer = getattr(task, f"{side}_tokenizer")
        weight = getattr(task.model, task.recipe.model.info.stacks[side]).input.tokens.weight
        unseen = task.unseen_pieces(side) if reads_text(task) else None
        return cls(tokenizer, weight[: tokenizer.size].detach().float().cpu().numpy(), unseen)

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

    def piece_values(self, ids: Sequence[int]) -> list[dict[str, object]]:
        """Pieces as plain values."""
        return [{"id": id, "piece": piece(self.tokenizer, id)} for id in ids]

    def readable(self) -> list[int]:
        """The pieces that are text, in the order in which they were learned.

        No symbols, no fragments of characters, and no control characters but tabs and the ends of lines: a vocabulary
        of bytes has them all, and most were never met.
        """
        whole = (id for id in self.tokenizer.ordinary.tolist() if not self.tokenizer.is_byte(id))
        return [id for id in whole if not CONTROL.fullmatch(piece(self.tokenizer, id))]


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
        id = max(pieces, key=lambda one: len(piece(table.tokenizer, one)))
    if id >= table.tokenizer.size:
        raise UsageError(f"there is no piece {id}; there are {table.tokenizer.size:,}", "id")
    ids = np.union1d(table.readable(), [id])
    found = nearest(table.vector_VD[ids], int(np.searchsorted(ids, id)), count)
    values = {
        **table.piece_values([id])[0],
        "pieces": table.piece_values(pieces),
        "near": [[int(ids[place]), piece(table.tokenizer, int(ids[place])), cosine] for place, cosine in found],
    }
    return values, {}


@question
def embedding_map(
    models: Models,
    asked: ModelRequest,
    side: Side = "source",
    text: Text = "",
    count: Annotated[Count, Field(le=PLACES)] = 1500,
    unseen: bool = False,
) -> Answer:
    """A 2-D map of many pieces by PCA, including those of a text; on request also those that no training text has."""
    table = Table.of(models.load_for(asked).task, side)
    marked = list(dict.fromkeys(table.pieces(text))) if text.strip() else []
    readable = table.readable()
    seen = readable if table.unseen is None else [id for id in readable if id not in table.unseen]
    letters = {id: piece(table.tokenizer, id).strip("▁#") for id in readable}
    words = {id for id, some in letters.items() if len(some) > 1 and some.isalpha()}
    others = sorted(readable if unseen else seen, key=lambda id: id not in words)
    ids = list(dict.fromkeys([*marked, *others]))[: max(count, len(marked))]
    vector_ND = table.vector_VD[ids]
    plane = Plane.fit(vector_ND)
    values = {
        "ids": ids,
        "pieces": [piece(table.tokenizer, id) for id in ids],
        "share": plane.share,
        "marked": list(range(len(marked))),
        "unseen": None if table.unseen is None else len(readable) - len(seen),
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
    return {"pieces": [[piece(table.tokenizer, id) for id in ids] for ids in pieces]}, {"vector": means}


@question
def places_of(
    models: Models, asked: ModelRequest, stack: Stack, count: Annotated[Count, Field(le=POSITIONS)] = 64
) -> Answer:
    """Position vectors, their similarity, and the biases that positions add to scores."""
    task = models.load_for(asked).task
    section = task.recipe.model
    vector_TD, bias_HX = position_views(task.model, section, stack, count)
    likeness_TT = likeness(vector_TD)
    by_distance = [np.diagonal(likeness_TT, far).mean() for far in range(len(likeness_TT))]
    arrays = {"vector": vector_TD, "likeness": likeness_TT, "by_distance": np.array(by_distance)}
    if bias_HX is not None:
        arrays["bias"] = bias_HX
    floats = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
    return {"kind": positions_of(section, stack)}, floats


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
    wanted = [
        replace(one, model=asked.model, snapshot=asked.snapshot, weights=loaded.weights, between=asked.between)
        for one in scenes
    ]
    seen = [inputs_of(models, replace(one, changes=changes)) for one in wanted]
    with changes.ablations.apply(loaded.task.recipe.model):
        vectors = [layer_vectors(one, stack) for one in seen]
    plane = Plane.fit(np.concatenate([vector_LTD.reshape(-1, vector_LTD.shape[-1]) for vector_LTD in vectors]))
    sides = [one.tokens(stack) for one in seen]
    for scene, place in pair or ():
        if scene >= len(sides) or place >= len(sides[scene]):
            raise UsageError(f"there is no token {place} of text {scene}", "pair")
    values: dict[str, object] = {
        "tokens": [token_values(side) for side in sides],
        "share": plane.share,
        "alike": None if pair is None else layer_cosines(*(vectors[scene][:, place] for scene, place in pair)),
    }
    return values, {f"path.{one}": plane.on(vector_LTD).astype(np.float32) for one, vector_LTD in enumerate(vectors)}
