"""Recurrent layers: Elman, GRU and LSTM, stacked [Bahdanau15 §A.1, Luong15 §2]; the SSRU of a decoder [Kim19].

torch's kernels run a layer over a whole packed batch; in training on CPU our own backward pass does
(:mod:`regard.nn.autograd.recurrent`), for torch's is quadratic in the longest sentence.

A layer's state is one tensor, ``state_NX``: for an Elman or GRU cell its hidden vector, for an LSTM the hidden vector
followed by the memory cell. Tokens are packed time-major (:class:`regard.nn.layout.ByTime`). One more shape letter: F,
all of a cell's gates side by side, as in torch.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from regard.nn import hooks
from regard.nn.autograd.recurrent import (
    BPTT,
    ElmanEquations,
    Equations,
    GruEquations,
    LinearRecurrence,
    LstmEquations,
    full,
)
from regard.nn.dropout import Dropout
from regard.nn.init import draw, refuse_sizes, watch
from regard.nn.layout import ByTime, Sequences
from regard.nn.ops import Linear, Path, product


class Recurrent(nn.Module):
    """One recurrent layer; each kind of cell is a class.

    Its weights are torch's: for each direction ``weight_ih``, ``weight_hh`` and two biases, the gates side by side.

    Args:
        size_in: entries of what enters.
        size: entries of a hidden vector in each direction.
        directions: 1 reads forwards; 2 also backwards, the hidden vectors side by side [Bahdanau15 §3.2].
    """

    kind: ClassVar[type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]]
    gates: ClassVar[int]
    """Blocks of the weights, one below the other."""
    open_gates: ClassVar[tuple[int, ...]] = ()
    """Blocks whose bias starts at one: those that keep what is remembered."""
    states: ClassVar[int] = 1
    """Vectors that are carried: the hidden one, and the LSTM's memory cell."""
    equations: ClassVar[Equations]
    product: Path = "exact"

    def __init__(self, size_in: int, size: int, directions: int = 1) -> None:
        super().__init__()
        refuse_sizes(self, size_in=size_in, size=size, directions=directions)
        self.size = size
        self.directions = directions
        self.state_size = self.states * directions * size
        """X, entries of a state."""
        self.kernel = self.kind(size_in, size, bidirectional=directions == 2)
        self.path = ""
        draw(self)

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Gate by gate: Xavier-uniform for what enters, orthogonal for what recurs, zero biases.

        An orthogonal matrix neither shrinks nor swells what is carried. A gate that keeps what is remembered starts
        open: its bias is one, so that an LSTM does not forget before it has learned.
        """
        for name, parameter in self.kernel.named_parameters():
            for gate, block in enumerate(parameter.detach().chunk(self.gates)):
                if name.startswith("weight_ih"):
                    nn.init.xavier_uniform_(block, generator=generator)
                elif name.startswith("weight_hh"):
                    nn.init.orthogonal_(block, generator=generator)
                else:
                    nn.init.constant_(block, float(name.startswith("bias_ih") and gate in self.open_gates))

    def forward(self, entering: Tensor, live_L: Tensor, first_NX: Tensor) -> tuple[Tensor, Tensor]:
        """``hidden_RD, last_NX``: the hidden vector of every token, and each sequence's state at its end.

        A backward direction ends at the first token.

        Args:
            entering: tokens by time (:class:`regard.nn.layout.ByTime`) × ``size_in``.
            live_L: how many sequences have a token at each time.
            first_NX: what the sequences' states are before their first token.
        """
        unrolls = torch.is_grad_enabled() and entering.device.type == "cpu"
        hidden_RD, last_NX = (self._unroll if unrolls else self._by_kernel)(entering, live_L, first_NX)
        return hooks.hook_point(f"{self.path}.output", hidden_RD), last_NX

    def _by_kernel(self, entering: Tensor, live_L: Tensor, first_NX: Tensor) -> tuple[Tensor, Tensor]:
        """The same by torch's kernel, whose state is a tensor, or one for each vector that is carried."""
        states = self._apart(first_NX).permute(1, 2, 0, 3).contiguous()
        first = states[0] if self.states == 1 else tuple(states)
        hidden, last = self.kernel(PackedSequence(entering, live_L), first)
        last = torch.stack([last] if self.states == 1 else list(last))
        return hidden.data, last.permute(2, 0, 1, 3).flatten(1)

    def _unroll(self, entering: Tensor, live_L: Tensor, first_NX: Tensor) -> tuple[Tensor, Tensor]:
        """The same by our own backward pass, in which each direction of a token is a row of its own (:class:`BPTT`).

        What enters is multiplied for all tokens and directions at once.
        """
        ways = self.directions
        every = [self._weights(suffix) for suffix in ("", "_reverse")[:ways]]
        weight, bias = (torch.cat([weights[i] for weights in every]) for i in (0, 2))
        entered = product(entering, weight, bias, self.product).to(entering.dtype)
        times = list(zip(((live_L.cumsum(0) - live_L) * ways).tolist(), (live_L * ways).tolist(), strict=True))
        hidden, last = BPTT.apply(
            entered.view(len(entering) * ways, -1),
            self._apart(first_NX).transpose(1, 2).reshape(-1, self.states * self.size),
            times,
            mirror(live_L) if ways == 2 else None,
            self.equations,
            full(self.product),
            *(weights[i] for weights in every for i in (1, 3)),
        )
        last = last.view(len(first_NX), ways, self.states, self.size).transpose(1, 2)
        return hidden.view(len(entering), ways * self.size), last.flatten(1)

    def _apart(self, state_NX: Tensor) -> Tensor:
        """(rows, states, directions, size)."""
        return state_NX.unflatten(1, (self.states, self.directions, self.size))

    def step(self, entering: Tensor, state_NX: Tensor) -> tuple[Tensor, Tensor]:
        """``hidden_ND, state_NX`` after one more token a row; forwards only."""
        entering_weight, weight_FD, entering_bias_F, bias_F = self._weights()
        entered_NF = product(entering, entering_weight, entering_bias_F, full(self.product))
        carried_NF = product(state_NX[:, : self.size], weight_FD, bias_F, full(self.product))
        after, _ = self.equations.step(entered_NF, carried_NF, state_NX)
        return hooks.hook_point(f"{self.path}.output", after[:, : self.size]), after

    def _weights(self, suffix: str = "") -> list[Tensor]:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return [getattr(self.kernel, f"{name}_l0{suffix}") for name in names]


def mirror(live_L: Tensor) -> Tensor:
    """``mirror_R``, two rows a token, the first forwards, the second backwards: whose row each direction reads.

    Forwards it is the token's own; backwards that of the token as far from its sequence's end as this one is from its
    beginning. So a sequence's last tokens are read backwards at the time at which its first are read forwards.

    Args:
        live_L: how many sequences have a token at each time.
    """
    starts_L, times_L = live_L.cumsum(0) - live_L, torch.arange(len(live_L))
    time_T = times_L.repeat_interleave(live_L)
    rank_T = torch.arange(len(time_T)) - starts_L[time_T]
    length_N = (live_L[:, None] > torch.arange(int(live_L[0]))).sum(0)
    mirrored_T = starts_L[length_N[rank_T] - 1 - time_T] + rank_T
    return torch.stack([2 * torch.arange(len(time_T)), 2 * mirrored_T + 1], 1).flatten()


class Elman(Recurrent):
    """``h_t = tanh(W x_t + U h_{t-1} + b)``: the plain recurrent network."""

    kind = nn.RNN
    equations = ElmanEquations()
    gates = 1


class Gru(Recurrent):
    """The gated unit of [Bahdanau15 §A.1.1]: ``h_t = z ∘ h_{t-1} + (1 - z) ∘ tanh(W x_t + r ∘ (U h_{t-1} + b) + b')``.

    As in torch, the reset gate ``r`` acts after the product with ``U``, and ``z`` weighs what is kept.
    """

    kind = nn.GRU
    equations = GruEquations()
    gates = 3


class Lstm(Recurrent):
    """Long short-term memory: ``c_t = f ∘ c_{t-1} + i ∘ tanh(…)``, ``h_t = o ∘ tanh(c_t)``, as in [Luong15 §2]."""

    kind = nn.LSTM
    equations = LstmEquations()
    gates = 4
    open_gates = (1,)
    states = 2


class Stack(nn.Module):
    """Recurrent layers, each reading the hidden vectors of the one below, dropout between them."""

    def __init__(self, layers: list[Recurrent], dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.size = layers[-1].directions * layers[-1].size
        """Entries of the top layer's hidden vectors, all directions."""
        self.state_size = layers[-1].state_size
        """X, entries of the top layer's state."""
        self.dropout = Dropout(dropout)

    def forward(
        self, entering: Tensor, sequences: Sequences, first: list[Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """``hidden_TD, last_BX``: the top layer's hidden vectors of all tokens, and its state at each sequence's end.

        A token of no sequence gets zeros, and so does the state of an empty sequence.

        Args:
            entering: all tokens × the first layer's ``size_in``.
            sequences: which tokens follow each other.
            first: for each layer ``first_BX``, what the states are before the first token; default zeros.
        """
        by_time, count = sequences.by_time, sequences.count
        read = by_time.gather(entering)
        last_BX = entering.new_zeros(count, self.state_size)
        if not len(read):
            return entering.new_zeros(len(entering), self.size), last_BX
        for i, layer in enumerate(self.layers):
            first_BX = torch.zeros_like(last_BX) if first is None else first[i]
            read = self.dropout(read) if i else read
            read, last_NX = layer(read, by_time.live_L, first_BX.index_select(0, by_time.order_N))
        return by_time.back(read), last_BX.index_copy(0, by_time.order_N, last_NX)

    def step(self, entering: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """``hidden_ND`` of the top layer after one more token a row, and the layers' new states."""
        after = []
        for i, (layer, state_NX) in enumerate(zip(self.layers, states, strict=True)):
            if i:
                entering = self.dropout(entering)
            entering, state_NX = layer.step(entering, state_NX)  # type: ignore[operator]
            after.append(state_NX)
        return entering, after


class Bridge(nn.Module):
    """A decoder's initial states from the encoder's final state: ``s_0 = tanh(W h + b)`` [Bahdanau15 §A.2.2].

    Each layer has a W of its own. Being learned, it fits any number of layers to any, and a two-way encoder to a
    one-way decoder.
    """

    def __init__(self, state_size: int, layers: int) -> None:
        super().__init__()
        self.project = Linear(state_size, layers * state_size)
        self.layers = layers

    def forward(self, last_BX: Tensor) -> list[Tensor]:
        """For each layer of the decoder its ``first_BX``."""
        first = self.project(last_BX).to(last_BX.dtype).tanh()
        return list(first.chunk(self.layers, 1))


class SSRU(nn.Module):
    """Simpler simple recurrent unit: ``relu(c_t)`` of ``c_t = f ∘ c_{t-1} + (1 - f) ∘ x W`` [Kim19].

    The forget gate is ``f = σ(x W_f + b_f)``, and c_0 is zero. Both products are of one token alone, so that those of a
    batch are made at once.
    """

    def __init__(self, d_model: int, biases: bool = True) -> None:
        super().__init__()
        refuse_sizes(self, d_model=d_model)
        self.size = d_model
        self.value = Linear(d_model, d_model, bias=False)
        self.forget_gate = Linear(d_model, d_model, bias=biases)
        self.path = ""
        watch(self)

    def forward(self, x_TD: Tensor, sequences: Sequences) -> Tensor:
        """The output for every token of all sequences at once."""
        by_time = sequences.by_time
        keep_TD, entered_TD = self._gate(x_TD)
        state_RD = LinearRecurrence.apply(by_time.gather(keep_TD), by_time.gather(entered_TD), _times(by_time))
        return self._show(by_time.back(state_RD))

    def step(self, x_ND: Tensor, state_ND: Tensor) -> tuple[Tensor, Tensor]:
        """``output_ND, state_ND`` after one more token a row."""
        keep_ND, entered_ND = self._gate(x_ND)
        state_ND = entered_ND.addcmul(keep_ND, state_ND)
        return self._show(state_ND), state_ND

    def _gate(self, x_TD: Tensor) -> tuple[Tensor, Tensor]:
        """What each token keeps of the state, and what it adds to it."""
        keep_TD = self.forget_gate(x_TD).to(x_TD.dtype).sigmoid()
        return keep_TD, (1 - keep_TD) * self.value(x_TD).to(x_TD.dtype)

    def _show(self, state_TD: Tensor) -> Tensor:
        return hooks.hook_point(f"{self.path}.output", state_TD.relu())


def _times(by_time: ByTime) -> list[tuple[slice, slice]]:
    """For each time but the first: its rows, and those of the same sequences at the time before."""
    lives = by_time.live_L.tolist()
    starts = [0, *by_time.live_L.cumsum(0).tolist()]
    return [
        (slice(now, now + live), slice(before, before + live))
        for (before, now), live in zip(pairwise(starts[:-1]), lives[1:], strict=True)
    ]
