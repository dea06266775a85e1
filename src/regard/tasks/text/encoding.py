"""Vectors of texts, tokens, images and patches from any layer of a trained model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.config import BertSection, Recipe, RnnEncoderSection, VitSection
from regard.config.families import Model, Recurrent
from regard.data.prepare.windowing import Frame, most_central
from regard.system.errors import Option, UsageError
from regard.tasks.engine import engine_of
from regard.tasks.images.classifier import Image, ImageClassification
from regard.tasks.protocols import TextModel
from regard.tasks.text.task import (
    TextReader,
    finite_numbers,
    forward_batches,
    inference_mode,
    read_by_engine,
    refuse_others,
)

if TYPE_CHECKING:
    from torch import Tensor

    from regard.models.bert import Bert
    from regard.models.inputs import Tokens

Floats = NDArray[np.float32]
Pool = Literal["first", "mean", "max", "last"]
Answer = Callable[[Any], "Tensor"]
"""The vectors of packed texts' tokens, or of images' patches, at the requested layer."""

POOLS: dict[str, Callable[[Floats], Floats]] = {
    "first": lambda rows: rows[0],
    "mean": lambda rows: np.asarray(rows.mean(0, dtype=np.float64), np.float32),
    "max": lambda rows: np.asarray(rows.max(0)),
    "last": lambda rows: rows[-1],
}
"""Pooling of a whole text, its symbols included."""
BEHIND = "feedforward_residual.residual"
"""Point of a layer at which it has ended."""


@dataclass(frozen=True)
class TokenVectors:
    """A text and a vector for each of its pieces.

    Args:
        text: as the model sees it.
        ids: of the pieces.
        pieces: as people read them.
        offsets: for each piece the characters of ``text`` that it holds.
        vectors: a row for each piece.
    """

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    vectors: Floats


class TextVectors:
    """A model as an encoder of texts.

    A text longer than any in training is read in overlapping windows; each token takes its vector from the window
    in which it is most central. An empty text has no tokens, and the zero vector. ``pool`` and ``normalise`` say what
    is done where nobody asks: what an encoder was brought in for, else the mean as it is.

    Args:
        task: a loaded model that reads text.
        layer: counted from 1; default: the last, whose vectors are the encoder's output, with the norm that ends a
            pre-norm stack.

    Raises:
        UsageError: the model reads no text, or has no such layer.
    """

    def __init__(self, task: TextModel, layer: int | None = None) -> None:
        section = task.recipe.model
        if not section.info.reads_pieces:
            raise UsageError("this model reads no text", "model.family")
        if task.info.texts > 1:
            raise UsageError(f"{task.info.noun} reads two texts at once and has no vector of one", "task")
        self.task, self.size = task, int(task.recipe.model.d_model)
        self.tokenizer = task.source_tokenizer
        self.causal = section.info.causal
        translates = task.info.learns_from == "pairs"
        begin = (self.tokenizer.end,) if self.causal else () if translates else tuple(self.tokenizer.begin)
        self.frame = Frame(begin, self.tokenizer.end, task.recipe.data.max_tokens)
        self.answer = None if layer is None else layer_of(task.model, section, layer)
        encodes = task.info.writes == "nothing"
        pools = encodes and isinstance(section, BertSection) and not section.pooler
        self.pool: Pool = section.pool if pools and isinstance(section, BertSection) else "mean"
        self.normalise: bool = encodes and task.recipe.encoding.normalise

    def texts(self, texts: Sequence[str], pool: Pool | None = None, normalise: bool | None = None) -> Floats:
        """A row for each text: its first or last token's vector, or the mean or the largest of all, entry by entry.

        Args:
            texts: in any order and of any length.
            pool: one of :data:`POOLS`; default: the model's own, see the class.
            normalise: each row gets length one, so that products are cosines; default: the model's own.

        Raises:
            UsageError: ``texts`` is no list of texts, or there is no such pool.
        """
        pooled = pooling(self.pool if pool is None else pool)
        refuse_others(texts)
        parts = self._encode(texts, self.tokenizer.ids_batch(list(texts)))
        rows = [pooled(np.concatenate(part)) if len(part[1]) else np.zeros(self.size, np.float32) for part in parts]
        found = np.array(rows, np.float32).reshape(len(texts), self.size)
        return unit_rows(found) if (self.normalise if normalise is None else normalise) else found

    def tokens(self, texts: Sequence[str], normalise: bool = False) -> list[TokenVectors]:
        """For each text a vector of every piece.

        Args:
            texts: in any order and of any length.
            normalise: each vector gets length one.

        Raises:
            UsageError: ``texts`` is no list of texts.
        """
        refuse_others(texts)
        encoded = self.tokenizer.encode_batch(list(texts))
        read = self._encode(texts, [np.array(one.ids, np.int64) for one in encoded])
        found = []
        for one, (_, inner, _) in zip(encoded, read, strict=True):
            count = len(inner)
            pieces = tuple(self.tokenizer.piece(id) for id in one.ids[:count])
            rows = unit_rows(inner) if normalise else inner
            found.append(TokenVectors(one.text, tuple(one.ids[:count]), pieces, tuple(one.offsets[:count]), rows))
        return found

    def _read(self, framed: Sequence[NDArray[np.int64]]) -> list[Floats]:
        """A vector for each token of each window; of the last layer by the model's engine, where it has one."""
        task = self.task
        if self.answer is None and (engine := engine_of(task)) is not None:
            return read_by_engine(engine.read, task.texts_of, framed, each=True)
        answer = self.answer or layer_of(task.model, task.recipe.model, None)
        return forward_batches(answer, framed, task.inputs, each=True)

    def _encode(self, texts: Sequence[str], ids: Sequence[NDArray[np.int64]]) -> list[tuple[Floats, Floats, Floats]]:
        """For each text the vectors of its start symbols, its pieces, and its end symbols."""
        groups = [
            list(self.frame.windows(pieces)) if text.strip() and len(pieces) else []
            for text, pieces in zip(texts, ids, strict=True)
        ]
        framed = [window.ids[:-1] if self.causal else window.ids for group in groups for window in group]
        rows = iter(self._read(framed))
        found = []
        for pieces, group in zip(ids, groups, strict=True):
            mine = [finite_numbers(next(rows)) for _ in group]
            found.append(self._join_windows(len(pieces), [window.start for window in group], mine))
        return found

    def _join_windows(self, pieces: int, starts: list[int], rows: list[Floats]) -> tuple[Floats, Floats, Floats]:
        """The windows of one text as one."""
        if not rows:
            nothing = np.zeros((0, self.size), np.float32)
            return nothing, nothing, nothing
        before = len(self.frame.begin)
        places = np.arange(pieces)
        window_of = most_central(places, places, starts, self.frame.room)
        inner = np.empty((pieces, rows[0].shape[1]), np.float32)
        for number, (start, some) in enumerate(zip(starts, rows, strict=True)):
            mine = places[window_of == number]
            inner[mine] = some[mine - start + before]
        held = min(pieces - starts[-1], self.frame.room)
        return rows[0][:before], inner, rows[-1][before + held :]


def layer_of(model: Any, section: Model, layer: int | None) -> Answer:
    """The vectors of a layer, counted from 1; default: the last, with the norm that ends the stack.

    Raises:
        UsageError: there is no such layer.
    """
    from regard.nn.hooks import capture
    from regard.nn.recurrent import Stack

    name, options = section.info.stacks["source"], {"causal": True} if section.info.causal else {}
    part, recurrent = getattr(model, name), isinstance(section, Recurrent)
    layers = list(part.stack.layers if recurrent else part.layers)
    if layer is not None and not 1 <= layer <= len(layers):
        raise UsageError(f"there is no layer {layer}; this encoder has layers 1 to {len(layers)}", Option("layer"))
    if recurrent:  # the same encoder with its lower layers only
        lower = copy(part)
        lower._modules = part._modules | {"stack": Stack(layers[:layer], 0.0)}

        def read_lower(given: Tokens) -> Tensor:
            found = lower(given)
            return found if isinstance(section, RnnEncoderSection) else found.memory_SD

        return read_lower
    if layer is None or layer == len(layers):
        return partial(part, **options)
    point = f"{name}.{layer - 1}.{BEHIND}"

    def read_inside(given: Any) -> Tensor:
        with capture([point]) as heard:
            part(given, **options)
        return heard[point][-1]

    return read_inside


def pooling(pool: str) -> Callable[[Floats], Floats]:
    """The function of a word for pooling.

    Raises:
        UsageError: there is none.
    """
    if pool not in POOLS:
        raise UsageError(f"{pool!r} is no way to pool; known are {', '.join(POOLS)}", "pool")
    return POOLS[pool]


def unit_rows(rows: Floats) -> Floats:
    """Each row with length one; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), np.float32)


class Encoding(TextReader):
    """A text encoder, ready to use, or to initialise another task from."""

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> Bert:
        """The encoder of a recipe."""
        from regard.models.build import bert, vectors

        assert isinstance(recipe.model, BertSection)
        return bert(recipe.model, sizes[0], vectors(recipe.model), key)

    def encode(self, text: str | list[str], pool: Pool | None = None, normalise: bool | None = None) -> Floats:
        """The vector of a text, or a row for each text of a list; see :class:`TextVectors`.

        Args:
            text: one text or several, of any length.
            pool: first, mean, max or last; default: the model's own, else the mean.
            normalise: scale vectors to length one; default: the model's own.
        """
        if isinstance(text, str):
            return self.encode([text], pool, normalise)[0]
        return TextVectors(self).texts(text, pool, normalise)


class ImageVectors:
    """A classifier of images as an encoder of them.

    Args:
        task: a loaded classifier of images.
        layer: counted from 1; default: the last, the input of the classifier.

    Raises:
        UsageError: the model has no such layer.
    """

    def __init__(self, task: ImageClassification, layer: int | None = None) -> None:
        model = task.recipe.model
        assert isinstance(model, VitSection)
        self.task, self.pool = task, model.pool
        self.answer = layer_of(task.model, model, layer)
        self.rows, self.columns = model.height // model.patch, model.width // model.patch
        self.size = model.d_model

    def images(self, images: Sequence[Image], pool: Pool | None = None, normalise: bool = False) -> Floats:
        """A row for each image: its class token's vector, its last patch's, or the mean or the largest of all.

        Args:
            images: as :meth:`ImageClassification.classify` takes them.
            pool: one of :data:`~regard.tasks.text.encoding.POOLS`; default: the model's own.
            normalise: each row gets length one.

        Raises:
            UsageError: there is no such pool.
            RegardError: an image is not of the size the model reads.
        """
        pooled = pooling(pool or self.pool)
        rows = [pooled(tokens) for tokens in self._encode(images)]
        found = np.array(rows, np.float32).reshape(len(images), self.size)
        return unit_rows(found) if normalise else found

    def patches(self, images: Sequence[Image], normalise: bool = False) -> Floats:
        """For each image a row for each patch, in row-major order: images × patches × size."""
        found = self._encode(images)[:, 1:]
        return unit_rows(found) if normalise else found

    @inference_mode
    def _encode(self, images: Sequence[Image]) -> Floats:
        """For each image the vectors of its class token and its patches."""
        batches = self.task.batches(self.task.images(images))
        shape = (-1, 1 + self.rows * self.columns, self.size)
        parts = [finite_numbers(self.answer(batch).float().cpu().numpy()).reshape(shape) for batch in batches]
        return np.concatenate([np.zeros((0, *shape[1:]), np.float32), *parts])
