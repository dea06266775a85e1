"""Token and text vectors from any layer of a trained model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.prepare.windowing import Frame
from regard.data.prepare.word_tags import most_central
from regard.models.inputs import Tokens
from regard.nn.hooks import capture
from regard.nn.recurrent import Stack
from regard.system.errors import UsageError
from regard.tasks.protocols import device_of
from regard.tasks.text.batched_forward import forward_batches
from regard.tasks.text.task import refuse_others
from regard.text.tokenizers.vocabulary import AnyTokenizer

Floats = NDArray[np.float32]
Pool = Literal["first", "mean", "max", "last"]
Answer = Callable[[Any], Tensor]
"""The vectors of packed texts' tokens, or of images' patches, at the requested layer."""

POOLS: dict[str, Callable[[Floats], Floats]] = {
    "first": lambda rows: rows[0],
    "mean": lambda rows: np.asarray(rows.mean(0, dtype=np.float64), np.float32),
    "max": lambda rows: np.asarray(rows.max(0)),
    "last": lambda rows: rows[-1],
}
"""Pooling of a whole text, its symbols included."""


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

    def __init__(self, task: Any, layer: int | None = None) -> None:
        family = task.recipe.model.family
        if family not in STACKS:
            raise UsageError("this model reads no text", "model.family")
        self.task = task
        translates = task.name == "translation"
        self.tokenizer: AnyTokenizer = task.vocabularies.source if translates else task.assets.tokenizer
        self.causal = family == "gpt"
        begin = (self.tokenizer.end,) if self.causal else () if translates else tuple(self.tokenizer.begin)
        self.frame = Frame(begin, self.tokenizer.end, task.recipe.data.max_tokens)
        self.answer = answer_of(*STACKS[family](task.model), layer)
        model, encodes = task.recipe.model, task.name == "encoding"
        self.pool: Pool = model.pool if encodes and not model.pooler else "mean"
        self.normalise: bool = encodes and task.recipe.encoding.normalise

    @property
    def size(self) -> int:
        """Entries of a vector."""
        size: int = self.task.recipe.model.d_model
        return size

    def texts(self, texts: Sequence[str], pool: Pool | None = None, normalise: bool | None = None) -> Floats:
        """A row for each text: its first or last token's vector, or the mean or the largest of all, entry by entry.

        Args:
            texts: in any order and of any length.
            pool: one of :data:`POOLS`; default: the model's own, see the class.
            normalise: each row gets length one, so that products are cosines; default: the model's own.

        Raises:
            UsageError: ``texts`` is no list of texts, or there is no such pool.
        """
        pool = self.pool if pool is None else pool
        normalise = self.normalise if normalise is None else normalise
        if pool not in POOLS:
            raise UsageError(f"{pool!r} is no way to pool; known are {', '.join(POOLS)}", "pool")
        refuse_others(texts)
        ids = self.tokenizer.ids_batch(list(texts))
        rows = [POOLS[pool](np.concatenate(parts)) if len(parts[1]) else None for parts in self._encode(texts, ids)]
        found = np.array([np.zeros(self.size, np.float32) if row is None else row for row in rows], np.float32)
        return unit_rows(found.reshape(len(texts), self.size)) if normalise else found.reshape(len(texts), self.size)

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

    @torch.inference_mode()
    def _encode(self, texts: Sequence[str], ids: Sequence[NDArray[np.int64]]) -> list[tuple[Floats, Floats, Floats]]:
        """For each text the vectors of its start symbols, its pieces, and its end symbols."""
        groups = [
            list(self.frame.windows(pieces)) if text.strip() and len(pieces) else []
            for text, pieces in zip(texts, ids, strict=True)
        ]
        framed = [window.ids[:-1] if self.causal else window.ids for group in groups for window in group]
        rows = iter(forward_batches(self.answer, framed, device_of(self.task.model), each=True))
        found = []
        for pieces, group in zip(ids, groups, strict=True):
            mine = [next(rows) for _ in group]
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


def answer_of(count: int, answers: Callable[[int | None], Answer], layer: int | None) -> Answer:
    """The vectors of a layer of ``count``, counted from 1; default: the last, with the norm that ends the stack.

    Raises:
        UsageError: there is no such layer.
    """
    if layer is not None and not 1 <= layer <= count:
        raise UsageError(f"there is no layer {layer}; this model's encoder has layers 1 to {count}", "--layer")
    return answers(None if layer == count else layer)


def unit_rows(rows: Floats) -> Floats:
    """Each row with length one; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), np.float32)


def transformer_layers(name: str, **options: bool) -> Callable[[Any], tuple[int, Callable[[int | None], Answer]]]:
    """A stack of attention layers, which is the model's part ``name``."""

    def of(model: Any) -> tuple[int, Callable[[int | None], Answer]]:
        stack = getattr(model, name)

        def last(tokens: Tokens) -> Tensor:
            found: Tensor = stack(tokens, **options)
            return found

        def upto(layer: int | None) -> Answer:
            if layer is None:
                return last
            point = f"{name}.{layer - 1}.feedforward_residual.residual"

            def inside(tokens: Tokens) -> Tensor:
                with capture([point]) as heard:
                    stack(tokens, **options)
                return heard[point][-1]

            return inside

        return len(stack.layers), upto

    return of


def _recurrent(model: Any) -> tuple[int, Callable[[int | None], Answer]]:
    """The encoder of a recurrent model; its lower layers are a stack of their own."""
    layers = list(model.encoder.stack.layers)

    def upto(layer: int | None) -> Answer:
        stack = Stack(layers[:layer], 0.0)

        def answer(tokens: Tokens) -> Tensor:
            sequences = tokens.sequences
            x_TD = model.encoder.input(tokens.ids_T, sequences.positions_T, sequences.longest)
            hidden_TD: Tensor = stack(x_TD, sequences)[0]
            return hidden_TD

        return answer

    return len(layers), upto


STACKS: dict[str, Callable[[Any], tuple[int, Callable[[int | None], Answer]]]] = {
    "transformer": transformer_layers("encoder"),
    "bert": transformer_layers("encoder"),
    "gpt": transformer_layers("decoder", causal=True),
    "rnn": _recurrent,
    "rnn-encoder": _recurrent,
}
"""By family how many layers read a text, and the vectors of each of them."""
