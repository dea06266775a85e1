"""Recurrent layers: Elman, GRU and LSTM, stacked [Bahdanau15 §A.1, Luong15 §2], and their training on CPU.

torch's kernels run a layer over a whole packed batch. In training on CPU our own backpropagation through time (BPTT)
computes the same in less time: torch's backward pass allocates and adds a tensor of the whole batch at every time step,
so its time grows with the square of the longest sentence, and it computes each weight's gradient by one small product
per time step. Here independent products are batched. Tests hold the two equal, forward and gradient. The equations also
make the single steps of a search.

A layer's state is one tensor, ``state_NX``: for an Elman or GRU cell its hidden vector, for an LSTM the hidden vector
followed by the memory cell. Tokens are packed time-major (:class:`regard.nn.layout.ByTime`). One more shape letter: F,
all of a cell's gates side by side, as in torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from regard.nn.dropout import Dropout
from regard.nn.layout import Sequences
from regard.nn.ops import Linear, Path, matmul, product

tanh_backward, sigmoid_backward = torch.ops.aten.tanh_backward, torch.ops.aten.sigmoid_backward


class Equations(Protocol):
    """One time step of a cell and its backward pass, for the rows live at that time.

    ``entered_NF`` is what enters times its weights, ``carried_NF`` the hidden vector before times its own.
    """

    def step(self, entered_NF: Tensor, carried_NF: Tensor, before_NX: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """``after_NX``, the state after this token, and the tensors saved for backward."""
        ...

    def back(
        self, gradient_NX: Tensor, before_NX: Tensor, kept: Sequence[Tensor], entered_NF: Tensor, carried_NF: Tensor
    ) -> Tensor:
        """From the gradient of the state after: those of ``entered_NF`` and ``carried_NF`` are written there.

        Returns:
            The part of the gradient of the state before that does not pass through ``carried_NF``.
        """
        ...


class ElmanEquations:
    """``h = tanh(e + u)``."""

    def step(self, entered_NF: Tensor, carried_NF: Tensor, before_NX: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        after = (entered_NF + carried_NF).tanh_()
        return after, (after,)

    def back(
        self, gradient_NX: Tensor, before_NX: Tensor, kept: Sequence[Tensor], entered_NF: Tensor, carried_NF: Tensor
    ) -> Tensor:
        torch.mul(gradient_NX, 1 - kept[0] * kept[0], out=entered_NF)
        carried_NF.copy_(entered_NF)
        return torch.zeros_like(gradient_NX)


class GruEquations:
    """``h = z ∘ h' + (1 - z) ∘ tanh(e_n + r ∘ u_n)`` with the gates ``r, z = σ(e + u)``."""

    def step(self, entered_NF: Tensor, carried_NF: Tensor, before_NX: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        size = before_NX.shape[1]
        gates = (entered_NF[:, : 2 * size] + carried_NF[:, : 2 * size]).sigmoid_()
        reset, keep = gates.chunk(2, 1)
        inner = carried_NF[:, 2 * size :]
        new = torch.addcmul(entered_NF[:, 2 * size :], reset, inner).tanh_()
        return torch.lerp(new, before_NX, keep), (reset, keep, new, inner)

    def back(
        self, gradient_NX: Tensor, before_NX: Tensor, kept: Sequence[Tensor], entered_NF: Tensor, carried_NF: Tensor
    ) -> Tensor:
        reset, keep, new, inner = kept
        direct = gradient_NX * keep
        new_gradient = tanh_backward(gradient_NX - direct, new)
        for_reset, for_keep, for_new = entered_NF.chunk(3, 1)
        for_reset.copy_(sigmoid_backward(new_gradient * inner, reset))
        for_keep.copy_(sigmoid_backward(gradient_NX * (before_NX - new), keep))
        for_new.copy_(new_gradient)
        carried_NF.copy_(entered_NF)
        carried_NF.chunk(3, 1)[2].mul_(reset)
        return direct


class LstmEquations:
    """``c = f ∘ c' + i ∘ g``, ``h = o ∘ tanh(c)`` with ``i, f, o = σ(e + u)`` and ``g = tanh(e + u)``."""

    def step(self, entered_NF: Tensor, carried_NF: Tensor, before_NX: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        let_in, keep, new, let_out = (entered_NF + carried_NF).chunk(4, 1)
        let_in, keep, let_out, new = let_in.sigmoid(), keep.sigmoid(), let_out.sigmoid(), new.tanh()
        cell = torch.addcmul(keep * before_NX.chunk(2, 1)[1], let_in, new)
        shown = cell.tanh()
        return torch.cat([let_out * shown, cell], 1), (let_in, keep, new, let_out, shown)

    def back(
        self, gradient_NX: Tensor, before_NX: Tensor, kept: Sequence[Tensor], entered_NF: Tensor, carried_NF: Tensor
    ) -> Tensor:
        let_in, keep, new, let_out, shown = kept
        hidden_gradient, cell_gradient = gradient_NX.chunk(2, 1)
        cell_gradient = cell_gradient + tanh_backward(hidden_gradient * let_out, shown)
        for_in, for_keep, for_new, for_out = entered_NF.chunk(4, 1)
        for_in.copy_(sigmoid_backward(cell_gradient * new, let_in))
        for_keep.copy_(sigmoid_backward(cell_gradient * before_NX.chunk(2, 1)[1], keep))
        for_new.copy_(tanh_backward(cell_gradient * let_in, new))
        for_out.copy_(sigmoid_backward(hidden_gradient * shown, let_out))
        carried_NF.copy_(entered_NF)
        return torch.cat([torch.zeros_like(hidden_gradient), cell_gradient * keep], 1)


class BPTT(torch.autograd.Function):
    """``hidden_RD, last_NX``: a cell over all times of a packed batch, one direction.

    Args:
        entered_RF: what enters times its weights, every token.
        weight_FD, bias_F: of the hidden vector before.
        first_NX: the states before the first token, longest sequence first.
        times: for each time, in the direction's order, the place of its first token and how many sequences are live.
    """

    @staticmethod
    def forward(ctx, entered_RF, weight_FD, bias_F, first_NX, times, equations, path):  # type: ignore[no-untyped-def]
        size, state_NX = weight_FD.shape[1], first_NX.clone()
        before_RX = entered_RF.new_empty(len(entered_RF), first_NX.shape[1])
        hidden_RD = entered_RF.new_empty(len(entered_RF), size)
        kept = []
        for start, live in times:
            now = slice(start, start + live)
            before = before_RX[now].copy_(state_NX[:live])
            carried = product(before[:, :size], weight_FD, bias_F, path)
            state_NX[:live], needed = equations.step(entered_RF[now], carried, before)
            hidden_RD[now] = state_NX[:live, :size]
            kept.append(needed)
        ctx.save_for_backward(weight_FD, before_RX)
        ctx.times, ctx.equations, ctx.path, ctx.kept = times, equations, path, kept
        return hidden_RD, state_NX

    @staticmethod
    def backward(ctx, hidden_gradient_RD, last_gradient_NX):  # type: ignore[no-untyped-def]
        weight_FD, before_RX = ctx.saved_tensors
        size, gradient_NX = weight_FD.shape[1], last_gradient_NX.clone()
        entered_RF = before_RX.new_empty(len(before_RX), len(weight_FD))
        carried_RF = torch.empty_like(entered_RF)
        for (start, live), kept in zip(reversed(ctx.times), reversed(ctx.kept), strict=True):
            now = slice(start, start + live)
            gradient = gradient_NX[:live]
            gradient[:, :size] += hidden_gradient_RD[now]
            direct = ctx.equations.back(gradient, before_RX[now], kept, entered_RF[now], carried_RF[now])
            direct[:, :size] += matmul(carried_RF[now], weight_FD, ctx.path)
            gradient.copy_(direct)
        weight_gradient_FD = matmul(carried_RF.t(), before_RX[:, :size], ctx.path)
        return entered_RF, weight_gradient_FD, carried_RF.sum(0), gradient_NX, None, None, None


def full(path: Path) -> Path:
    """The path of products with what is carried: in full precision at least, for an error would be carried on.

    They are small besides, and torch compiles a bf16 product for every new number of rows.
    """
    return "exact" if path == "bf16" else path


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
        self.size = size
        self.directions = directions
        self.kernel = self.kind(size_in, size, bidirectional=directions == 2)
        self.initialise()

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

    @property
    def state_size(self) -> int:
        """X, entries of a state."""
        return self.states * self.directions * self.size

    def forward(self, entering: Tensor, live_L: Tensor, first_NX: Tensor) -> tuple[Tensor, Tensor]:
        """``hidden_RD, last_NX``: the hidden vector of every token, and each sequence's state at its end.

        A backward direction ends at the first token.

        Args:
            entering: tokens by time (:class:`regard.nn.layout.ByTime`) × ``size_in``.
            live_L: how many sequences have a token at each time.
            first_NX: what the sequences' states are before their first token.
        """
        if torch.is_grad_enabled() and entering.device.type == "cpu":
            return self._unroll(entering, live_L, first_NX)
        states = self._apart(first_NX).permute(1, 2, 0, 3).contiguous()
        hidden, last = self.kernel(PackedSequence(entering, live_L), self._kernel_state(states))
        return hidden.data, self._from_kernel_state(last).permute(2, 0, 1, 3).flatten(1)

    def _unroll(self, entering: Tensor, live_L: Tensor, first_NX: Tensor) -> tuple[Tensor, Tensor]:
        """The same, each direction by itself; what enters is multiplied for all tokens and directions at once."""
        times = list(zip((live_L.cumsum(0) - live_L).tolist(), live_L.tolist(), strict=True))
        every = [self._weights(suffix) for suffix in ("", "_reverse")[: self.directions]]
        weight, bias = (torch.cat([weights[i] for weights in every]) for i in (0, 2))
        entered = product(entering, weight, bias, self.product).to(entering.dtype)
        hidden, last = [], []
        for d, (weights, part) in enumerate(zip(every, entered.chunk(self.directions, 1), strict=True)):
            first, order = self._apart(first_NX)[:, :, d].flatten(1), times[::-1] if d else times
            found = BPTT.apply(part, weights[1], weights[3], first, order, self.equations, full(self.product))
            hidden.append(found[0])
            last.append(found[1].unflatten(1, (self.states, self.size)))
        return torch.cat(hidden, 1), torch.stack(last, 2).flatten(1)

    def _apart(self, state_NX: Tensor) -> Tensor:
        """(rows, states, directions, size)."""
        return state_NX.unflatten(1, (self.states, self.directions, self.size))

    def step(self, entering: Tensor, state_NX: Tensor) -> tuple[Tensor, Tensor]:
        """``hidden_ND, state_NX`` after one more token a row; forwards only."""
        entering_weight, weight_FD, entering_bias_F, bias_F = self._weights()
        entered_NF = product(entering, entering_weight, entering_bias_F, full(self.product))
        carried_NF = product(state_NX[:, : self.size], weight_FD, bias_F, full(self.product))
        after, _ = self.equations.step(entered_NF, carried_NF, state_NX)
        return after[:, : self.size], after

    def _weights(self, suffix: str = "") -> list[Tensor]:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return [getattr(self.kernel, f"{name}_l0{suffix}") for name in names]

    def _kernel_state(self, states: Tensor) -> Any:
        """The first state in the form of torch's kernel: a tensor, or one for each vector that is carried."""
        return states[0] if self.states == 1 else tuple(states)

    def _from_kernel_state(self, last: Any) -> Tensor:
        """The inverse, for the kernel's last state: (states, directions, sequences, size)."""
        return torch.stack([last] if self.states == 1 else list(last))


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
        self.dropout = Dropout(dropout)

    def forward(self, x_TD: Tensor, sequences: Sequences, first: list[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """``hidden_TD, last_BX``: the top layer's hidden vectors of all tokens, and its state at each sequence's end.

        A token of no sequence gets zeros, and so does the state of an empty sequence.

        Args:
            first: for each layer ``first_BX``, what the states are before the first token; default zeros.
        """
        by_time, count = sequences.by_time(), sequences.count
        hidden_RD = by_time.gather(x_TD)
        last_BX = x_TD.new_zeros(count, self.state_size)
        if not len(hidden_RD):
            return x_TD.new_zeros(len(x_TD), self.size), last_BX
        for i, layer in enumerate(self.layers):
            first_BX = torch.zeros_like(last_BX) if first is None else first[i]
            entering = self.dropout(hidden_RD) if i else hidden_RD
            hidden_RD, last_NX = layer(entering, by_time.live_L, first_BX.index_select(0, by_time.order_N))
        return by_time.back(hidden_RD), last_BX.index_copy(0, by_time.order_N, last_NX)

    def step(self, entering: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """``hidden_ND`` of the top layer after one more token a row, and the layers' new states."""
        after = []
        for i, (layer, state_NX) in enumerate(zip(self.layers, states, strict=True)):
            if i:
                entering = self.dropout(entering)
            entering, state_NX = layer.step(entering, state_NX)  # type: ignore[operator]
            after.append(state_NX)
        return entering, after

    @property
    def size(self) -> int:
        """Entries of the top layer's hidden vectors, all directions."""
        return self._top.directions * self._top.size

    @property
    def state_size(self) -> int:
        """X, entries of the top layer's state."""
        return self._top.state_size

    @property
    def _top(self) -> Recurrent:
        top: Recurrent = self.layers[-1]  # type: ignore[assignment]
        return top


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
