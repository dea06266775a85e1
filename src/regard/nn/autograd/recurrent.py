"""The equations of Elman, GRU and LSTM cells, and backpropagation through time (BPTT) on CPU.

torch's backward pass allocates and adds a tensor of the whole batch at every time step, so its time grows with the
square of the longest sentence, and it computes each weight's gradient by one small product per time step. Here
independent products are batched. The equations also make the single steps of a search.

F: all of a cell's gates side by side, as in torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from regard.nn.ops import Path, matmul, product

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
