"""The Transformer as a step of search (``decoding.step.Step``), without torch and without copying a beam's past.

Rows of different ages share a step. A row's own keys and values are found through its ancestors, so that reordering a
beam reorders rows of whole numbers; those of its sentence lie in one place for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.decoding.step import MultiStepOutput, MultiStepRequest
from regard.engine.answer import FastAnswer, Output
from regard.engine.layers import Floats, Ids, Ints, Linear
from regard.engine.past import ROOM, Memory, Past, project
from regard.engine.shortlist import Answers
from regard.engine.stack import Stack, Texts
from regard.system.kernels.packing import Precision

ONE = np.int32(1)
ALL = slice(None)
LARGE = 16 << 20
"""Bytes of matrices from which on a step takes longer than a look at what it may write."""
Number = TypeVar("Number", np.int32, np.int64, np.float64)


@dataclass(frozen=True)
class Decoder:
    """What writes: its layers, and what makes a sentence's keys and values for each of them.

    Args:
        memory, own: entries of a token in a layer and their precision, of the memory's keys and values and of what is
            kept of a row's own tokens.
        heads: of a layer.
    """

    stack: Stack
    memories: Sequence[Linear]
    memory: tuple[int, Precision]
    own: tuple[int, Precision]
    heads: int


@dataclass
class FastState:
    """Search state: consumed by every call, use the returned one.

    Args:
        lengths_N: tokens each row has read; ``longest`` is the most of them.
        sentence_N: which sentence a row belongs to, ascending.
        ancestors_NS: where the keys and values of each row's tokens are, or its states after each of them.
        memory_first_B, memory_length_B: where those of each sentence are.
        parts: the part of the output that each sentence has, under a shortlist.
    """

    lengths_N: Ints
    longest: int
    sentence_N: Ids
    ancestors_NS: Ints
    past: Past
    memory: Memory
    memory_first_B: Ints
    memory_length_B: Ints
    parts: list[Output]


class FastTransformer:
    """One token a row at a time, for search.

    Args:
        encoder, decoder, output: what it is made of.
        part: some rows of the output, by their ids in order.
    """

    pieces: Callable[[Ids], Ids] | None = None
    weights = False

    def __init__(self, encoder: Stack, decoder: Decoder, output: Output, part: Callable[[Ids], Output]) -> None:
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.part_of_output = part

    @property
    def verifies(self) -> bool:
        """Whether to verify several tokens in one pass takes less time than as many steps."""
        return self.decoder.stack.bytes + self.output.project.packed.nbytes >= LARGE

    def with_weights(self) -> FastTransformer:
        """The same; the answer of :meth:`step` also has the cross-attention weights of all layers."""
        other = copy(self)
        other.weights = True
        return other

    def with_shortlist(self, pieces: Callable[[Ids], Ids]) -> FastTransformer:
        """The same, which keeps to ``pieces``: those that a translation of a source may have, in order."""
        other = copy(self)
        other.pieces = pieces
        return other

    def read(self, texts: Texts) -> Floats:
        """``memory_TD``: the encoder's vectors of texts."""
        return self.encoder.read(texts)

    def start(self, sources: Sequence[Ids]) -> FastState:
        """Encode sentences (ids with ``</s>``) and open one row for each."""
        decoder, layers = self.decoder, len(self.decoder.memories)
        none, rows, places = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros((0, ROOM), np.int32)
        past, memory = Past(layers, *decoder.own), Memory(layers, *decoder.memory)
        return self.admit(FastState(none, 0, rows, places, past, memory, none, none, []), sources)

    def admit(self, state: FastState, sources: Sequence[Ids]) -> FastState:
        """Encode further sentences and append their rows."""
        length_B = np.array([len(source) for source in sources], np.int64)
        memory_SD = self.read(Texts(np.concatenate(sources), length_B))
        rooms, first_B = state.memory.extend(state.memory_first_B, state.memory_length_B, length_B)
        for memory, room_SE in zip(self.decoder.memories, rooms, strict=True):
            project(memory, memory_SD, room_SE)
        old, count, width = len(state.memory_first_B), len(sources), state.ancestors_NS.shape[1]
        parts = [] if self.pieces is None else [self.part_of_output(self.pieces(source)) for source in sources]
        return replace(
            state,
            lengths_N=np.append(state.lengths_N, np.zeros(count, np.int32)),
            sentence_N=np.append(state.sentence_N, old + np.arange(count)),
            ancestors_NS=np.append(state.ancestors_NS, np.zeros((count, width), np.int32), axis=0),
            memory_first_B=first_B,
            memory_length_B=np.append(state.memory_length_B, length_B.astype(np.int32)),
            parts=[*state.parts, *parts],
        )

    def step(self, state: FastState, tokens_N: Ids) -> tuple[FastState, FastAnswer | Answers]:
        """Append one token to each row; the answer is the distribution of the next."""
        place_N = state.lengths_N
        state.ancestors_NS, slots_N = state.past.extend(state.ancestors_NS, place_N, state.longest)
        state.lengths_N = place_N + ONE
        state.longest += 1
        weight_NHS = None
        if self.weights:  # heads of all layers side by side, as many columns as the longest sentence has tokens
            heads, longest = len(self.decoder.memories) * self.decoder.heads, state.memory_length_B.max(initial=0)
            weight_NHS = np.empty((len(place_N), heads, longest), np.float32)
        hidden_ND = self._decode(state, np.ascontiguousarray(tokens_N), place_N, slots_N, weights=weight_NHS)
        return state, self._answer(state, state.sentence_N, FastAnswer(hidden_ND, self.output, weight_NHS))

    def _answer(self, state: FastState, sentence_T: Ids, whole: FastAnswer) -> FastAnswer | Answers:
        """The distributions of rows, under a shortlist each over the pieces of its sentence."""
        if not state.parts:
            return whole
        ends = np.searchsorted(sentence_T, np.arange(len(state.parts) + 1))
        rows = zip(state.parts, pairwise(ends), strict=True)
        return Answers([FastAnswer(whole.hidden_ND[slice(*some)], part) for part, some in rows], whole)

    def _decode(
        self, state: FastState, tokens_T: Ids, place_T: Ints, slots_T: Ints, row_T: Ids | slice = ALL, **more: Any
    ) -> Floats:
        """``hidden_TD`` of new tokens, of the rows ``row_T``, at places of these; slots are where they are kept."""
        sentence_T = state.sentence_N[row_T]
        return self.decoder.stack(
            tokens_T,
            place_T,
            place_T + ONE,
            state.longest,
            slot=slots_T,
            ancestors=state.ancestors_NS[row_T],
            past=state.past.of_layer,
            memory=state.memory.of_layer,
            memory_first=state.memory_first_B.take(sentence_T),
            memory_length=state.memory_length_B.take(sentence_T),
            **more,
        )

    def multi_step(
        self, state: FastState, asked: MultiStepRequest
    ) -> tuple[FastState, MultiStepOutput, FastAnswer | Answers]:
        """Steps in which no row ends, at once, and the one after them, whose choice is not made.

        Of several sentences with shortlists only this one.
        """
        if len(state.parts) > 1:
            state, answers = self.step(state, asked.token_N)
            all_N, none = np.arange(len(asked.token_N)), np.zeros((len(asked.token_N), 0))
            return state, MultiStepOutput(all_N, none.astype(np.int64), none, asked.log_probability_N), answers
        output = state.parts[0] if state.parts else self.output
        count, room = len(state.lengths_N), len(state.memory_first_B) * asked.width
        steps = self.decoder.stack.positions.room(asked.steps, behind=state.longest + 1)
        longest = state.longest + steps + 1

        def wide(entry_N: NDArray[Number]) -> NDArray[Number]:
            """An array with room for all rows that there may be, which steps change."""
            entry_R = np.zeros((room, *entry_N.shape[1:]), entry_N.dtype)
            entry_R[:count] = entry_N
            return entry_R

        ancestors_NS = np.zeros((count, longest), np.int32)
        ancestors_NS[:, : state.longest] = state.ancestors_NS[:, : state.longest]
        length_R, sentence_R, ancestors_RS = wide(state.lengths_N), wide(state.sentence_N), wide(ancestors_NS)
        origin_R, log_probability_R = np.arange(room), wide(asked.log_probability_N)
        tokens_RT, log_probabilities_RT = np.zeros((room, steps), np.int64), np.zeros((room, steps))
        hidden_RD = np.empty((room, self.decoder.stack.size), np.float32)
        rows, taken, slots = self.decoder.stack.search(
            longest,
            hidden=hidden_RD,
            **output.search_arguments(asked.without),
            end=asked.end,
            width=asked.width,
            steps=steps,
            scored=asked.scores,
            count=count,
            slots=state.past.peek((steps + 1) * room, state.ancestors_NS, state.lengths_N),
            token=wide(asked.token_N),
            sentence=sentence_R,
            origin=origin_R,
            length=length_R,
            ancestors=ancestors_RS,
            memory_first=wide(state.memory_first_B.take(state.sentence_N)),
            memory_length=wide(state.memory_length_B.take(state.sentence_N)),
            log_probability=log_probability_R,
            bar=wide(asked.bar_N),
            penalty=wide(asked.penalty_N),
            tokens=tokens_RT,
            log_probabilities=log_probabilities_RT,
            past=state.past.of_layer,
            memory=state.memory.of_layer,
        )
        state.past.take(slots, state.ancestors_NS, state.lengths_N)
        state.longest += taken + 1
        state.lengths_N, state.sentence_N, state.ancestors_NS = length_R[:rows], sentence_R[:rows], ancestors_RS[:rows]
        by_step = tokens_RT[:rows, :taken], log_probabilities_RT[:rows, :taken]
        found = MultiStepOutput(origin_R[:rows], *by_step, log_probability_R[:rows])
        return state, found, FastAnswer(hidden_RD[:rows], output)

    def verify(
        self, state: FastState, tokens: Sequence[Sequence[int]]
    ) -> tuple[FastState, list[int], FastAnswer | Answers]:
        """Append tokens to each row in one pass; of each how many were read, and the answer behind every one of them.

        In each layer keys and values of all tokens are written, or states one after another, before a token looks for
        those before it; and a product's rows do not depend on those beside them. So the bits are those of :meth:`step`.
        """
        wide = max(map(len, tokens))
        most = 1 + self.decoder.stack.positions.room(wide - 1, behind=state.longest + 1)
        counts = [min(len(some), most) for some in tokens]
        row_T = np.arange(len(tokens)).repeat(counts)
        place_T = np.concatenate([np.arange(count, dtype=np.int32) for count in counts]) + state.lengths_N[row_T]
        if (more := state.longest + wide - state.ancestors_NS.shape[1]) > 0:
            state.ancestors_NS = np.pad(state.ancestors_NS, ((0, 0), (0, more + ROOM)))
        slots_T = state.past.take(len(row_T), state.ancestors_NS, state.lengths_N)
        state.ancestors_NS[row_T, place_T] = slots_T
        state.lengths_N = state.lengths_N + np.array(counts, np.int32)
        state.longest = int(state.lengths_N.max())
        token_T = np.concatenate([some[:most] for some in tokens])
        hidden_TD = self._decode(state, token_T, place_T, slots_T, row_T)
        return state, counts, self._answer(state, state.sentence_N[row_T], FastAnswer(hidden_TD, self.output))

    def crop(self, state: FastState, count_N: Ids) -> FastState:
        """The rows without their last ``count_N`` tokens."""
        state.lengths_N = state.lengths_N - count_N.astype(np.int32)
        state.longest = int(state.lengths_N.max())
        return state

    def select(self, state: FastState, rows_M: Ids) -> FastState:
        """New row *i* continues old row ``rows_M[i]``; a sentence without rows is dropped."""
        sentence_M = state.sentence_N.take(rows_M)
        begins_M = np.empty(len(rows_M), np.bool_)
        begins_M[:1] = True
        np.not_equal(sentence_M[1:], sentence_M[:-1], out=begins_M[1:])
        kept_B = sentence_M[begins_M]
        lengths_M = state.lengths_N.take(rows_M)
        return FastState(
            lengths_M,
            int(lengths_M.max(initial=0)),
            begins_M.cumsum() - 1,
            state.ancestors_NS.take(rows_M, axis=0),
            state.past,
            state.memory,
            state.memory_first_B.take(kept_B),
            state.memory_length_B.take(kept_B),
            [state.parts[place] for place in kept_B] if state.parts else [],
        )
