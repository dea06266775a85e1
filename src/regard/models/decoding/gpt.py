"""Incremental decoder of decoder-only models: one pass over the prompt, then one token a step.

The context window slides, so a text may grow without limit. A row that has filled the window re-reads its later half
as a new text and continues: every token sees at least half a window, and re-reading costs about as much as two steps
of each row in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

from regard.models.decoding.next_token import NextTokenScores
from regard.models.decoding.transformer import ROOM, concat_caches
from regard.models.transformer import Gpt
from regard.nn import EncoderLayer, KVCache, Layout, Learned, Sequences

Ids = NDArray[np.int64]


@dataclass
class GptState:
    """Search state: consumed by every call, use the returned one.

    Args:
        lengths_N: number of cached tokens of each row; on the host.
        read_NS: these tokens, if there is a sliding window; undefined after a row's length.
        pasts: for each layer keys and values of the rows' tokens.
    """

    lengths_N: Ids
    read_NS: Ids
    pasts: list[KVCache]


class GptStepper:
    """One token a row at a time, for search and sampling; a source is a prompt without its last token, maybe empty.

    Args:
        window: tokens a row can see, its newest one counted; default: as many as there are learned positions, and
            without such no end. A longer prompt is read from its last ``window - 1`` tokens on.
    """

    model_class: ClassVar[type[Gpt]] = Gpt

    def __init__(self, model: Gpt, device: torch.device | str = "cpu", *, window: int | None = None) -> None:
        positions = model.decoder.input.positions
        most = len(positions.weight) if isinstance(positions, Learned) else None
        self.model = model
        self.device = torch.device(device)
        self.window = min((size for size in (most, window) if size is not None), default=None)

    @torch.inference_mode()
    def start(self, sources: Sequence[Ids]) -> GptState:
        """Read every token of the prompts, and open one row for each."""
        if self.window is not None:
            sources = [source[max(0, len(source) - self.window + 1) :] for source in sources]
        lengths_N = np.array([len(source) for source in sources], np.int64)
        longest = int(lengths_N.max(initial=0))
        read_NS = np.zeros((len(sources), longest + 1), np.int64)
        for row, source in enumerate(sources):
            read_NS[row, : len(source)] = source
        state = GptState(lengths_N, read_NS, self._empty(len(sources), longest + ROOM))
        self._prefill(state, np.arange(len(sources)))
        return state

    @torch.inference_mode()
    def admit(self, state: GptState, sources: Sequence[Ids]) -> GptState:
        """Read further prompts and append their rows."""
        new, old_rows = self.start(sources), len(state.lengths_N)
        width = max(state.read_NS.shape[1], new.read_NS.shape[1])
        return GptState(
            np.concatenate([state.lengths_N, new.lengths_N]),
            np.concatenate([_wider(state.read_NS, width), _wider(new.read_NS, width)]),
            [concat_caches(a, old_rows, b, len(sources)) for a, b in zip(state.pasts, new.pasts, strict=True)],
        )

    @torch.inference_mode()
    def step(self, state: GptState, tokens_N: Ids) -> tuple[GptState, NextTokenScores]:
        """Append one token to each row; the answer is the distribution of the next."""
        self._slide(state)
        count, longest = len(tokens_N), int(state.lengths_N.max(initial=0)) + 1
        if longest > state.pasts[0].stride:
            state.pasts = [past.grow(past.rows, 2 * past.stride) for past in state.pasts]
        if longest > state.read_NS.shape[1]:
            state.read_NS = _wider(state.read_NS, 2 * longest)
        state.read_NS[np.arange(count), state.lengths_N] = tokens_N
        lengths_N = torch.from_numpy(state.lengths_N).to(self.device)
        stride = state.pasts[0].stride
        places_N = lengths_N + torch.arange(count, device=self.device) * stride
        layout = Layout(Sequences.new_tokens(lengths_N), Sequences.rows(lengths_N + 1, longest, stride))
        decoder = self.model.decoder
        x_ND = decoder.input(torch.from_numpy(tokens_N).to(self.device), lengths_N, longest)
        for layer, past in zip(decoder.layers, state.pasts, strict=True):
            x_ND = layer.step(x_ND, past, places_N, layout)  # type: ignore[operator]
        state.lengths_N = state.lengths_N + 1
        return state, NextTokenScores(self.model.scores(decoder.final(x_ND)))

    @torch.inference_mode()
    def select(self, state: GptState, rows_M: Ids) -> GptState:
        """New row *i* continues old row ``rows_M[i]``."""
        longest = int(state.lengths_N[rows_M].max(initial=0))
        if not np.array_equal(rows_M, np.arange(len(rows_M))):
            rows = torch.from_numpy(rows_M).to(self.device)
            state.pasts = [past.select(rows, longest) for past in state.pasts]
        return GptState(state.lengths_N[rows_M], state.read_NS[rows_M], state.pasts)

    def _empty(self, rows: int, stride: int) -> list[KVCache]:
        """For each layer an arena of its sizes."""
        decoder = self.model.decoder
        nothing_0D = decoder.input.tokens(torch.zeros(0, dtype=torch.int64, device=self.device))  # type: ignore[operator]
        none, layers = Sequences.end_to_end([], self.device), cast("list[EncoderLayer]", decoder.layers)
        return [KVCache.empty(layer.attention.keys_and_values(nothing_0D, none), rows, stride) for layer in layers]

    def _slide(self, state: GptState) -> None:
        """Rows that fill the window re-read its later half."""
        window = self.window
        if window is None or not (state.lengths_N == window).any():
            return
        full, kept = np.flatnonzero(state.lengths_N == window), window // 2
        state.lengths_N = state.lengths_N.copy()
        state.read_NS[full, :kept] = state.read_NS[full, window - kept : window]
        state.lengths_N[full] = kept
        self._prefill(state, full)

    def _prefill(self, state: GptState, rows_R: Ids) -> None:
        """Keys and values of all tokens of some rows, in one pass."""
        lengths = state.lengths_N[rows_R].tolist()
        if not sum(lengths):
            return
        ids = np.concatenate([state.read_NS[row, :length] for row, length in zip(rows_R, lengths, strict=True)])
        sequences = Sequences.end_to_end(lengths, self.device)
        layout = Layout(sequences, sequences)
        rows_T = torch.from_numpy(np.repeat(rows_R, lengths)).to(self.device)
        places_T = sequences.positions_T + rows_T * state.pasts[0].stride
        decoder = self.model.decoder
        x_TD = decoder.input(torch.from_numpy(ids).to(self.device), sequences.positions_T, sequences.longest)
        for layer, past in zip(decoder.layers, state.pasts, strict=True):
            x_TD = layer.prefill(x_TD, past, places_T, layout)  # type: ignore[operator]


def _wider(read_NS: Ids, width: int) -> Ids:
    return np.pad(read_NS, ((0, 0), (0, width - read_NS.shape[1])))
