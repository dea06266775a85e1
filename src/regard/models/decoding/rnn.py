"""Incremental decoder of recurrent models: each row carries its hidden state (a ``decoding.step.Step``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.models.decoding.next_token import NextTokenScores
from regard.models.decoding.transformer import EncoderDecoderStepper
from regard.models.rnn import Rnn
from regard.nn import Layout, Sequences, hooks

WEIGHT = "decoder.cross.weight"
"""Where the weights of attention pass."""


@dataclass(frozen=True)
class RnnState:
    """Search state.

    Args:
        carried: what each row carries, of N rows each: the states of the layers, and what is fed.
        sentence_N: which sentence a row belongs to, ascending; on the host.
        key_SD, memory_SD: keys and states of the sentences' encoder, end to end, shared by a sentence's rows.
        layout: each sentence's rows, side by side, with its memory.
    """

    carried: list[Tensor]
    sentence_N: NDArray[np.int64]
    key_SD: Tensor
    memory_SD: Tensor
    layout: Layout


class RnnStepper(EncoderDecoderStepper[Rnn]):
    """One token a row at a time, for search."""

    model_class: ClassVar[type[Rnn]] = Rnn

    @torch.inference_mode()
    def start(self, sources: Sequence[NDArray[np.int64]]) -> RnnState:
        """Encode sentences (ids with ``</s>``) and open one row for each."""
        source = self.tokens(sources)
        memory = self.model.encoder(source)
        sentence_N, decoder = np.arange(len(sources)), self.model.decoder
        key_SD = decoder.cross.remember(memory.memory_SD)
        layout = self.cross_layout(sentence_N, source.sequences)
        return RnnState(decoder.first(memory.last_BX), sentence_N, key_SD, memory.memory_SD, layout)

    @torch.inference_mode()
    def admit(self, state: RnnState, sources: Sequence[NDArray[np.int64]]) -> RnnState:
        """Encode further sentences and append their rows."""
        new, old_keys = self.start(sources), state.layout.keys
        sentence_N = np.concatenate([state.sentence_N, new.sentence_N + old_keys.count])
        lengths = [*old_keys.lengths_B.tolist(), *new.layout.keys.lengths_B.tolist()]
        return RnnState(
            [torch.cat(both) for both in zip(state.carried, new.carried, strict=True)],
            sentence_N,
            torch.cat([state.key_SD, new.key_SD]),
            torch.cat([state.memory_SD, new.memory_SD]),
            self.cross_layout(sentence_N, Sequences.end_to_end(lengths, self.device)),
        )

    @torch.inference_mode()
    def step(self, state: RnnState, tokens_N: NDArray[np.int64]) -> tuple[RnnState, NextTokenScores]:
        """Append one token to each row; the answer is the distribution of the next."""
        ids_N = torch.from_numpy(tokens_N).to(self.device)
        with hooks.capture([WEIGHT] if self.weights else []) as heard:
            hidden_ND, carried = self.model.decoder.step(
                ids_N, state.carried, state.key_SD, state.memory_SD, state.layout
            )
        answer = NextTokenScores(self.model.scores(hidden_ND), heard.get(WEIGHT, []))
        return replace(state, carried=carried), answer

    @torch.inference_mode()
    def select(self, state: RnnState, rows_M: NDArray[np.int64]) -> RnnState:
        """New row *i* continues old row ``rows_M[i]``; a sentence without rows is dropped."""
        rows = torch.from_numpy(rows_M).to(self.device)
        carried = [x.index_select(0, rows) for x in state.carried]
        sentence_M = state.sentence_N[rows_M]
        if np.array_equal(sentence_M, state.sentence_N):
            return replace(state, carried=carried)
        begins_M = np.diff(sentence_M, prepend=-1) != 0
        sentence_N = begins_M.cumsum() - 1
        old, kept = state.layout.keys, torch.from_numpy(sentence_M[begins_M]).to(self.device)
        new = Sequences.end_to_end(old.lengths_B[kept].tolist(), self.device)
        kept_S = old.grid_BL[kept][old.real_BL[kept]]
        return RnnState(
            carried, sentence_N, state.key_SD[kept_S], state.memory_SD[kept_S], self.cross_layout(sentence_N, new)
        )
