"""Incremental decoder of the Transformer, with a KV cache (a ``decoding.step.Step``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.models.decoding.next_token import NextTokenScores
from regard.models.inputs import Tokens
from regard.models.transformer import EncoderDecoder, Transformer
from regard.nn import KVCache, Layout, Sequences, hooks

M = TypeVar("M", bound=EncoderDecoder)
ROOM = 32
"""Tokens a row's arena has room for at first; it doubles when they are used."""


@dataclass
class TransformerState:
    """Search state: consumed by every call, use the returned one.

    Args:
        lengths_N: tokens each row has read; on the host.
        sentence_N: which sentence a row belongs to, ascending, so that rows of one sentence are neighbours.
        pasts: for each layer keys and values of the rows' own tokens, or the states of a recurrence.
        memories: for each layer keys and values of the sentences' encoder output, shared by a sentence's rows.
        memory_lengths_B: tokens of each sentence's memory.
    """

    lengths_N: NDArray[np.int64]
    sentence_N: NDArray[np.int64]
    pasts: list[KVCache]
    memories: list[KVCache]
    memory_lengths_B: NDArray[np.int64]


class EncoderDecoderStepper(Generic[M]):
    """What is alike in the steps of encoder-decoders.

    Args:
        weights: also hand out the cross-attention weights of all layers with each answer, if the model attends.
    """

    def __init__(self, model: M, device: torch.device | str = "cpu", *, weights: bool = False) -> None:
        self.model = model
        self.device = torch.device(device)
        self.weights = weights

    def with_weights(self) -> Self:
        """The same, with weights."""
        return type(self)(self.model, self.device, weights=True)

    def tokens(self, sources: Sequence[NDArray[np.int64]]) -> Tokens:
        """Sentences (ids with ``</s>``) as the encoder reads them."""
        sequences = Sequences.end_to_end([len(source) for source in sources], self.device)
        ids_T = torch.from_numpy(np.concatenate(sources)).to(self.device)
        return Tokens(ids_T, sequences)

    def cross_layout(self, sentence_N: NDArray[np.int64], memory: Sequences) -> Layout:
        """Each sentence's rows, side by side, with its memory."""
        rows_B = np.bincount(sentence_N, minlength=memory.count)
        return Layout(Sequences.end_to_end(rows_B.tolist(), self.device), memory)


class TransformerStepper(EncoderDecoderStepper[Transformer]):
    """One token a row at a time, for search."""

    model_class: ClassVar[type[Transformer]] = Transformer

    @torch.inference_mode()
    def start(self, sources: Sequence[NDArray[np.int64]]) -> TransformerState:
        """Encode sentences (ids with ``</s>``) and open one row for each."""
        source = self.tokens(sources)
        sequences, memory_SD = source.sequences, self.model.encoder(source)
        places_T = sequences.positions_T + sequences.rows_T * sequences.longest
        memories, pasts = [], []
        for layer in self.model.decoder.layers:
            key_SHK, value_SHU = layer.cross.keys_and_values(memory_SD, sequences)  # type: ignore[operator,union-attr]
            memory = KVCache.empty((key_SHK, value_SHU), len(sources), sequences.longest)
            memory.write(places_T, key_SHK, value_SHU)
            memories.append(memory)
            pasts.append(layer.cache(memory, len(sources), ROOM))  # type: ignore[operator]
        rows, lengths_B = np.arange(len(sources)), np.array([len(source) for source in sources], np.int64)
        return TransformerState(np.zeros(len(sources), np.int64), rows, pasts, memories, lengths_B)

    @torch.inference_mode()
    def admit(self, state: TransformerState, sources: Sequence[NDArray[np.int64]]) -> TransformerState:
        """Encode further sentences and append their rows."""
        new = self.start(sources)
        old_rows, old_sentences = len(state.lengths_N), len(state.memory_lengths_B)
        return TransformerState(
            np.concatenate([state.lengths_N, new.lengths_N]),
            np.concatenate([state.sentence_N, new.sentence_N + old_sentences]),
            [concat_caches(a, old_rows, b, len(sources)) for a, b in zip(state.pasts, new.pasts, strict=True)],
            [
                concat_caches(a, old_sentences, b, len(sources))
                for a, b in zip(state.memories, new.memories, strict=True)
            ],
            np.concatenate([state.memory_lengths_B, new.memory_lengths_B]),
        )

    @torch.inference_mode()
    def step(self, state: TransformerState, tokens_N: NDArray[np.int64]) -> tuple[TransformerState, NextTokenScores]:
        """Append one token to each row; the answer is the distribution of the next."""
        count, longest = len(tokens_N), int(state.lengths_N.max(initial=0)) + 1
        if longest > state.pasts[0].stride:
            state.pasts = [past.grow(past.rows, 2 * past.stride) for past in state.pasts]
        lengths_N = torch.from_numpy(state.lengths_N).to(self.device)
        layout, cross_layout = self._layouts(state, lengths_N, longest)
        places_N = lengths_N + torch.arange(count, device=self.device) * state.pasts[0].stride
        decoder = self.model.decoder
        with hooks.capture(["decoder.*.cross.weight"] if self.weights else []) as heard:
            x_ND = decoder.input(torch.from_numpy(tokens_N).to(self.device), lengths_N, longest)
            for layer, past, memory in zip(decoder.layers, state.pasts, state.memories, strict=True):
                x_ND = layer.step(x_ND, past, memory, places_N, layout, cross_layout)  # type: ignore[operator]
        score_NV = self.model.scores(decoder.final(x_ND))
        state.lengths_N = state.lengths_N + 1
        return state, NextTokenScores(score_NV, [torch.cat(layers) for layers in zip(*heard.values(), strict=True)])

    @torch.inference_mode()
    def select(self, state: TransformerState, rows_M: NDArray[np.int64]) -> TransformerState:
        """New row *i* continues old row ``rows_M[i]``; a sentence without rows is dropped."""
        longest = int(state.lengths_N[rows_M].max(initial=1))  # a recurrence has a state before the first token
        sentence_M = state.sentence_N[rows_M]
        if not np.array_equal(rows_M, np.arange(len(rows_M))):
            rows = torch.from_numpy(rows_M).to(self.device)
            state.pasts = [past.select(rows, longest) for past in state.pasts]
        state.lengths_N = state.lengths_N[rows_M]
        begins_M = np.diff(sentence_M, prepend=-1) != 0
        state.sentence_N = begins_M.cumsum() - 1
        kept_B = sentence_M[begins_M]  # the memories of the other sentences are forgotten
        state.memory_lengths_B = state.memory_lengths_B[kept_B]
        if not np.array_equal(kept_B, np.arange(len(kept_B))):
            longest = int(state.memory_lengths_B.max(initial=0))
            kept = torch.from_numpy(kept_B).to(self.device)
            state.memories = [memory.select(kept, longest) for memory in state.memories]
        return state

    def _layouts(self, state: TransformerState, lengths_N: Tensor, longest: int) -> tuple[Layout, Layout]:
        """Each row's query with the row's own past; each sentence's rows, side by side, with its memory."""
        past = Sequences.rows(lengths_N + 1, longest, state.pasts[0].stride)
        layout = Layout(Sequences.new_tokens(lengths_N), past)
        memory_lengths_B = torch.from_numpy(state.memory_lengths_B).to(self.device)
        memory = Sequences.rows(memory_lengths_B, int(state.memory_lengths_B.max(initial=0)), state.memories[0].stride)
        return layout, self.cross_layout(state.sentence_N, memory)


def concat_caches(first: KVCache, first_rows: int, second: KVCache, second_rows: int) -> KVCache:
    """The rows in use of two caches, concatenated."""
    arena = first.grow(max(first.rows, first_rows + second_rows), second.stride)
    last = first_rows + second_rows
    for new, old in ((arena.key_SHK, second.key_SHK), (arena.value_SHU, second.value_SHU)):
        room = new.unflatten(0, (-1, arena.stride))
        room[first_rows:last, : second.stride] = old.unflatten(0, (-1, second.stride))[:second_rows]
    return arena
