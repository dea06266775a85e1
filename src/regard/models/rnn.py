"""Recurrent models: encoder-decoders [Bahdanau15 §3, Luong15 §2, §3], and encoders with a head [Yang16, Lample16]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from regard.models.bert import Bert, EncoderModel, TagHead, TextHead, VectorHead
from regard.models.inputs import Tokens
from regard.models.transformer import EncoderDecoder
from regard.nn import Alignment, Bridge, Dropout, InputEmbedding, Layout, NoAlignment, Sequences, Stack
from regard.nn.heads import mean


@dataclass(frozen=True)
class Memory:
    """An encoder's output: its state at every token, to attend to, and its final state for each sentence."""

    memory_SD: Tensor
    last_BX: Tensor


class Recurrence(nn.Module):
    """Recurrent layers over embeddings."""

    def __init__(self, input: InputEmbedding, stack: Stack) -> None:
        super().__init__()
        self.input = input
        self.stack = stack


class RnnEncoder(Recurrence):
    """A recurrence over the source, one- or two-way [Bahdanau15 §3.2]."""

    def forward(self, source: Tokens) -> Memory:
        """The hidden vector of every token, and the last state of every sentence."""
        sequences = source.sequences
        x_TD = self.input(source.ids_T, sequences.positions_T, sequences.longest)
        return Memory(*self.stack(x_TD, sequences))


class RnnDecoder(nn.Module, ABC):
    """A recurrence over the target that begins where the encoder ended, and attends to it [Luong15 §3].

    Args:
        bridge: the first states from the encoder's last.
        cross: attention to the encoder, or none.
        dropout: before the output.
    """

    def __init__(
        self, input: InputEmbedding, bridge: Bridge, stack: Stack, cross: Alignment | NoAlignment, dropout: float
    ) -> None:
        super().__init__()
        self.input = input
        self.bridge = bridge
        self.stack = stack
        self.cross = cross
        self.dropout = Dropout(dropout)

    @abstractmethod
    def forward(self, target: Tokens, memory: Memory, source: Tokens) -> Tensor:
        """``hidden_TD`` for all target positions (teacher forcing)."""

    def first(self, last_NX: Tensor) -> list[Tensor]:
        """What rows carry before their first token, from the encoder's last states: the states of the layers."""
        return self.bridge(last_NX)

    @abstractmethod
    def advance(
        self, x_ND: Tensor, carried: list[Tensor], key_SD: Tensor, memory_SD: Tensor, layout: Layout
    ) -> tuple[Tensor, list[Tensor]]:
        """``hidden_ND`` after one more embedded token per row, before dropout, and what the rows carry on."""

    @final
    def step(
        self, ids_N: Tensor, carried: list[Tensor], key_SD: Tensor, memory_SD: Tensor, layout: Layout
    ) -> tuple[Tensor, list[Tensor]]:
        """``hidden_ND`` after one more token per row, and the rows' new state."""
        x_ND = self.input(ids_N, torch.zeros_like(ids_N), 1)
        hidden_ND, carried = self.advance(x_ND, carried, key_SD, memory_SD, layout)
        return self.dropout(hidden_ND), carried


class PlainDecoder(RnnDecoder):
    """One recurrence over the whole target, then all its tokens attend at once."""

    def forward(self, target: Tokens, memory: Memory, source: Tokens) -> Tensor:
        """``hidden_TD`` for all target positions (teacher forcing)."""
        sequences = target.sequences
        x_TD = self.input(target.ids_T, sequences.positions_T, sequences.longest)
        hidden_TD, _ = self.stack(x_TD, sequences, self.bridge(memory.last_BX))
        layout = Layout(sequences, source.sequences)
        return self.dropout(self.cross(hidden_TD, self.cross.remember(memory.memory_SD), memory.memory_SD, layout))

    def advance(
        self, x_ND: Tensor, carried: list[Tensor], key_SD: Tensor, memory_SD: Tensor, layout: Layout
    ) -> tuple[Tensor, list[Tensor]]:
        """The recurrence's step, then attention."""
        hidden_ND, carried = self.stack.step(x_ND, carried)
        return self.cross(hidden_ND, key_SD, memory_SD, layout), carried


class FeedingDecoder(RnnDecoder):
    """Input feeding: the attentional vector also enters the next step, beside the embedding [Luong15 §3.3].

    Now a step needs what the one before attended to, so the target is read one time after the other, all sentences
    that are long enough at once.
    """

    def forward(self, target: Tokens, memory: Memory, source: Tokens) -> Tensor:
        """``hidden_TD`` for all target positions (teacher forcing), time by time."""
        sequences, by_time = target.sequences, target.sequences.by_time
        x_TD = self.input(target.ids_T, sequences.positions_T, sequences.longest)
        key_SD = self.cross.remember(memory.memory_SD)
        carried = self.first(memory.last_BX.index_select(0, by_time.order_N))
        layouts: dict[int, Layout] = {}
        said = [x_TD[:0]]
        for x_ND in by_time.gather(x_TD).split(by_time.live_L.tolist()):
            live = len(x_ND)
            if live not in layouts:
                layouts[live] = _one_each(source.sequences, by_time.order_N[:live])
            carried = [state_NX[:live] for state_NX in carried]
            hidden_ND, carried = self.advance(x_ND, carried, key_SD, memory.memory_SD, layouts[live])
            said.append(hidden_ND)
        return self.dropout(by_time.back(torch.cat(said)))

    def first(self, last_NX: Tensor) -> list[Tensor]:
        """The states of the layers, and zeros for the attentional vector."""
        return [*super().first(last_NX), last_NX.new_zeros(len(last_NX), self.stack.size)]

    def advance(
        self, x_ND: Tensor, carried: list[Tensor], key_SD: Tensor, memory_SD: Tensor, layout: Layout
    ) -> tuple[Tensor, list[Tensor]]:
        """The attentional vector is the output, and is also carried to the next step."""
        *states, fed_ND = carried
        hidden_ND, states = self.stack.step(torch.cat([x_ND, fed_ND], 1), states)
        attentional_ND = self.cross(hidden_ND, key_SD, memory_SD, layout)
        return attentional_ND, [*states, attentional_ND]


def _one_each(source: Sequences, chosen_N: Tensor) -> Layout:
    """One query for each of these sentences, in this order."""
    keys = Sequences(source.starts_B[chosen_N], source.lengths_B[chosen_N], len(chosen_N), source.longest, source.size)
    return Layout(Sequences.rows(torch.ones_like(chosen_N), 1, 1), keys)


class Rnn(EncoderDecoder):
    """A recurrent encoder and decoder, with or without attention between them."""

    encoder: RnnEncoder
    decoder: RnnDecoder


class TextEncoder(Recurrence):
    """A recurrence over texts, one- or two-way."""

    def forward(self, source: Tokens) -> Tensor:
        """``hidden_TD``, the input of a head."""
        sequences = source.sequences
        entering = self.input(source.ids_T, sequences.positions_T, sequences.longest, words=source.words)
        hidden_TD, _ = self.stack(entering, sequences)
        return hidden_TD


class WordEncoder(TextEncoder):
    """A recurrence over the words of texts: each is the mean of its tokens, and these share its hidden vector.

    Dropout is on that mean. On the tokens it would be weak where a word has many, which are the rare ones.
    """

    def __init__(self, input: InputEmbedding, stack: Stack, dropout: float) -> None:
        super().__init__(input, stack)
        self.dropout = Dropout(dropout)

    def forward(self, source: Tokens) -> Tensor:
        """``hidden_TD``, the input of a head.

        Raises:
            ValueError: the words are not given.
        """
        if source.words is None:
            raise ValueError("a recurrence over words needs the words of its tokens")
        sequences = source.sequences
        entering = self.input(source.ids_T, sequences.positions_T, sequences.longest, words=source.words)
        tokens, words = sequences.runs(source.words.word_T)
        hidden_WD, _ = self.stack(self.dropout(mean(entering, tokens)), words)
        hidden_TD = hidden_WD.new_zeros(len(entering), hidden_WD.shape[1])
        return hidden_TD.index_copy(0, tokens.inside_T.nonzero()[:, 0], hidden_WD[tokens.rows_T])


class RecurrentEncoder(EncoderModel):
    """A recurrence over a text, and a head; by attention its words are weighed [Yang16 §2.2].

    The output: ``score_TC`` of tags, ``score_BC`` or ``vector_BD`` of texts.
    """

    encoder: TextEncoder
    head: TextHead | TagHead | VectorHead


Reader = Bert | RecurrentEncoder
"""A model of texts without a second side, which labels them."""
