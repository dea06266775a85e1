"""Recurrent encoder-decoders as a step of search (``decoding.step.Step``): each row carries its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regard.fast.answer import FastAnswer, Output
from regard.fast.parts import Floats, Linear
from regard.fast.past import Memory
from regard.fast.recurrent.alignment import Alignment, Seen
from regard.fast.recurrent.layers import Layer, read
from regard.fast.texts import Texts

Ids = NDArray[np.int64]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class RecurrentStack:
    """One side: its embeddings, which are multiplied by the root of their size, and its layers."""

    table_VD: Floats
    layers: Sequence[Layer]

    @property
    def size(self) -> int:
        """d_model."""
        return self.table_VD.shape[1]

    @property
    def state_size(self) -> int:
        """X, entries of the top layer's state."""
        return self.layers[-1].cell.states * self.size

    def embed(self, ids_T: Ids) -> Floats:
        """``x_TD``."""
        return np.asarray(self.table_VD[ids_T] * np.float32(self.size**0.5))


@dataclass(frozen=True)
class RnnState:
    """Search state: consumed by every call, use the returned one.

    Args:
        carried: what each row carries, of N rows each: the states of the layers, and what is fed.
        sentence_N: which sentence a row belongs to, ascending.
        memory: keys and states of the sentences.
        first_B, length_B: where those of each sentence are.
    """

    carried: list[Floats]
    sentence_N: Ids
    memory: Memory
    first_B: Ints
    length_B: Ints


@dataclass(frozen=True)
class FastRnn:
    """One token a row at a time, for search [Bahdanau15, Luong15].

    Args:
        encoder: what reads.
        bridge: the decoder's first states from the encoder's last, ``s_0 = tanh(W h + b)`` [Bahdanau15 §A.2.2].
        decoder: what writes.
        cross: its attention to the encoder's states, if it has any.
        feeding: the attentional vector also enters the next step, beside the embedding [Luong15 §3.3].
        output: onto the pieces.
    """

    encoder: RecurrentStack
    bridge: Linear
    decoder: RecurrentStack
    cross: Alignment | None
    feeding: bool
    output: Output

    def read(self, texts: Texts) -> Floats:
        """``memory_TD``: the encoder's states of texts."""
        return self._read(texts)[0]

    def start(self, sources: Sequence[Ids]) -> RnnState:
        """Encode sentences (ids with ``</s>``) and open one row for each."""
        kept = 0 if self.cross is None else 1 + self.cross.score.keyed
        none, rows, memory = np.zeros(0, np.int32), np.zeros(0, np.int64), Memory(kept, self.decoder.size)
        carried = self._first(np.zeros((0, self.decoder.state_size), np.float32))
        return self.admit(RnnState(carried, rows, memory, none, none), sources)

    def admit(self, state: RnnState, sources: Sequence[Ids]) -> RnnState:
        """Encode further sentences and append their rows."""
        length_B = np.array([len(source) for source in sources], np.int64)
        memory_SD, last_BX = self._read(Texts(np.concatenate(sources), length_B))
        rooms, first_B = state.memory.extend(state.first_B, state.length_B, length_B)
        if self.cross is not None:
            self.cross.remember(memory_SD, rooms)
        return RnnState(
            [np.concatenate(both) for both in zip(state.carried, self._first(last_BX), strict=True)],
            np.append(state.sentence_N, len(state.first_B) + np.arange(len(sources))),
            state.memory,
            first_B,
            np.append(state.length_B, length_B.astype(np.int32)),
        )

    def step(self, state: RnnState, tokens_N: Ids) -> tuple[RnnState, FastAnswer]:
        """Append one token to each row; the answer is the distribution of the next."""
        states = state.carried[: len(self.decoder.layers)]
        hidden_ND = self.decoder.embed(tokens_N)
        if self.feeding:
            hidden_ND = np.concatenate([hidden_ND, state.carried[-1]], 1)
        for layer, state_NX in zip(self.decoder.layers, states, strict=True):
            hidden_ND = layer.step(hidden_ND, state_NX)
        if self.cross is not None:
            key_SD, memory_SD = state.memory.of_layer[0], state.memory.of_layer[-1]
            places = state.first_B[state.sentence_N], state.length_B[state.sentence_N]
            hidden_ND = self.cross(hidden_ND, Seen(key_SD, memory_SD, *places))
        carried = [*states, hidden_ND] if self.feeding else states
        return replace(state, carried=carried), FastAnswer(hidden_ND, self.output)

    def select(self, state: RnnState, rows_M: Ids) -> RnnState:
        """New row *i* continues old row ``rows_M[i]``; a sentence without rows is dropped."""
        sentence_M = state.sentence_N[rows_M]
        begins_M = np.diff(sentence_M, prepend=-1) != 0
        kept_B = sentence_M[begins_M]
        carried = [each[rows_M] for each in state.carried]
        sentence_N = begins_M.cumsum() - 1
        return RnnState(carried, sentence_N, state.memory, state.first_B[kept_B], state.length_B[kept_B])

    def _read(self, texts: Texts) -> tuple[Floats, Floats]:
        return read(self.encoder.layers, self.encoder.embed(texts.ids_T), texts.lengths_B)

    def _first(self, last_BX: Floats) -> list[Floats]:
        """What rows carry before their first token: the states of the layers, and zeros for the attentional vector."""
        states = np.split(np.tanh(self.bridge.rows(last_BX)), len(self.decoder.layers), axis=1)
        return [*states, *[np.zeros((len(last_BX), self.decoder.size), np.float32)] * self.feeding]
