"""Decoder-only models [Radford19] as a step of search: one pass over the prompt, then one token a row at a time.

The window slides as in ``models/decoding/gpt``: a row that has filled it reads its later half again, as a new text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.config import GptSection
from regard.engine.answer import FastAnswer, Output
from regard.engine.build import StackParts, Take
from regard.engine.layers import Floats, Ids, Ints
from regard.engine.past import CHUNK, ROOM, Past
from regard.engine.stack import Stack, Texts
from regard.system.kernels.packing import Packer, Precision


@dataclass(frozen=True)
class DecoderStack:
    """The same layers twice: for whole texts, and for new tokens of rows, which find their past by its places.

    Args:
        layers: how many there are.
        size: entries of a token's keys and values in one of them.
        precision: of the weights.
    """

    whole: Stack
    new: Stack
    layers: int
    size: int
    precision: Precision


@dataclass
class GptState:
    """Search state: consumed by every call, use the returned one.

    Args:
        lengths_N: tokens of each row that have keys and values.
        read_NS: these tokens; undefined after a row's length.
        ancestors_NS: where the keys and values of each row's tokens are.
    """

    lengths_N: Ints
    read_NS: Ids
    ancestors_NS: Ints
    past: Past


class FastGpt:
    """One token a row at a time, for search and sampling; a source is a prompt without its last token, maybe empty.

    Args:
        stack: the layers.
        output: scores of the next token.
        window: tokens that a row can see, its newest one counted. A longer prompt is read from its last ``window - 1``
            tokens on.
    """

    def __init__(self, stack: DecoderStack, output: Output, window: int) -> None:
        self.stack, self.output, self.window = stack, output, window

    def read(self, texts: Texts) -> Floats:
        """``hidden_TD`` of whole texts."""
        return self.stack.whole.read(texts, causal=True)

    def start(self, sources: Sequence[Ids]) -> GptState:
        """Read every token of the prompts, and open one row for each."""
        no_ids, no_places = np.zeros((0, ROOM), np.int64), np.zeros((0, ROOM), np.int32)
        past = Past(self.stack.layers, self.stack.size, self.stack.precision)
        return self.admit(GptState(np.zeros(0, np.int32), no_ids, no_places, past), sources)

    def admit(self, state: GptState, sources: Sequence[Ids]) -> GptState:
        """Read further prompts and append their rows."""
        sources = [source[max(0, len(source) - self.window + 1) :] for source in sources]
        lengths = np.array([len(source) for source in sources], np.int32)
        old, count = len(state.lengths_N), len(sources)
        width = max(state.read_NS.shape[1], int(lengths.max(initial=0)) + ROOM)
        room = ((0, count), (0, width - state.read_NS.shape[1]))
        read_NS, ancestors_NS = np.pad(state.read_NS, room), np.pad(state.ancestors_NS, room)
        for row, source in enumerate(sources, old):
            read_NS[row, : len(source)] = source
        lengths_N = np.append(state.lengths_N, np.zeros(count, np.int32))
        state = GptState(lengths_N, read_NS, ancestors_NS, state.past)
        self._prefill(state, np.arange(old, old + count), lengths)
        return state

    def step(self, state: GptState, tokens_N: Ids) -> tuple[GptState, FastAnswer]:
        """Append one token to each row; the answer is the distribution of the next."""
        self._slide(state)
        place_N, tokens_N = state.lengths_N, np.ascontiguousarray(tokens_N)
        ancestors_NS, slot_N = state.past.extend(state.ancestors_NS, place_N, int(place_N.max(initial=0)))
        if (more := ancestors_NS.shape[1] - state.read_NS.shape[1]) > 0:
            state.read_NS = np.pad(state.read_NS, ((0, 0), (0, more)))
        state.read_NS[np.arange(len(tokens_N)), place_N] = tokens_N
        state.lengths_N, state.ancestors_NS = place_N + np.int32(1), ancestors_NS
        return state, FastAnswer(self._new(state, tokens_N, place_N, slot_N, ancestors_NS), self.output)

    def select(self, state: GptState, rows_M: Ids) -> GptState:
        """New row *i* continues old row ``rows_M[i]``."""
        tables = state.lengths_N[rows_M], state.read_NS[rows_M], state.ancestors_NS[rows_M]
        return GptState(*tables, state.past)

    def _slide(self, state: GptState) -> None:
        """Rows that fill the window re-read its later half."""
        full, kept = np.flatnonzero(state.lengths_N == self.window), self.window // 2
        if not len(full):
            return
        state.read_NS[full, :kept] = state.read_NS[full, self.window - kept : self.window]
        state.lengths_N = state.lengths_N.copy()
        state.lengths_N[full] = 0
        self._prefill(state, full, np.full(len(full), kept, np.int32))

    def _prefill(self, state: GptState, rows_R: Ids, lengths_R: Ints) -> None:
        """Keys and values of the first tokens of some rows that have none yet; a chunk of them in one pass."""
        row_T = np.repeat(rows_R, lengths_R)
        place_T = np.arange(len(row_T), dtype=np.int32) - np.repeat(lengths_R.cumsum() - lengths_R, lengths_R)
        place_T = place_T.astype(np.int32)
        slot_T = state.past.take(len(row_T), state.ancestors_NS, state.lengths_N)
        state.ancestors_NS[row_T, place_T] = slot_T
        ids_T = state.read_NS[row_T, place_T]
        for begin in range(0, len(row_T), CHUNK):
            part = slice(begin, begin + CHUNK)
            longest = int(place_T[part].max()) + 1
            ancestors_TS = state.ancestors_NS[row_T[part], :longest]
            self._new(state, ids_T[part], place_T[part], slot_T[part], ancestors_TS)
        state.lengths_N[rows_R] = lengths_R

    def _new(self, state: GptState, ids_T: Ids, place_T: Ints, slot_T: Ints, ancestors_TS: Ints) -> Floats:
        """``hidden_TD`` of new tokens of rows."""
        past, length_T = state.past.of_layer, place_T + np.int32(1)
        longest = int(length_T.max(initial=0))
        return self.stack.new(ids_T, place_T, length_T, longest, slot=slot_T, ancestors=ancestors_TS, past=past)


def gpt(section: GptSection, pieces: int, window: int, take: Take, pack: Packer) -> FastGpt:
    """The engine of a decoder-only model; ``window``: tokens that a token sees at most."""
    table = take("decoder.input.tokens.weight", pieces, section.d_model)
    stack = StackParts(section, take, "decoder", two_way=False, pack=pack)
    whole, new = (Stack(table, 1.0, stack.positions, layers) for layers in stack.causal_layers(section.layers))
    window = min(window, section.max_positions) if section.positions == "learned" else window
    causal = DecoderStack(whole, new, section.layers, stack.heads.keys + stack.heads.values, pack.precision)
    return FastGpt(causal, Output(table, pack), window)
