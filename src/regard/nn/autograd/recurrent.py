"""The equations of Elman, GRU and LSTM cells, and backpropagation through time (BPTT) on CPU; the SSRU's recurrence.

torch's backward pass allocates and adds a tensor of the whole batch at every time step, so its time grows with the
square of the longest sentence, and it computes each weight's gradient by one small product per time step. Here
products that do not wait for each other are made at once behind the loop, and both directions are one loop: at a time
step, to start an operation takes longer than its numbers do. The equations also make the single steps of a search.

F: all of a cell's gates side by side, as in torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.nn.ops import Path, matmul, product

tanh_backward, sigmoid_backward = torch.ops.aten.tanh_backward, torch.ops.aten.sigmoid_backward.grad_input


class Equations(Protocol):
    """One time step of a cell and its backward pass, for the rows live at that time.

    ``entered_NF`` is what enters times its weights, ``carried_NF`` the hidden vector before times its own.
    """

    def step(self, entered_NF: Tensor, carried_NF: Tensor, before_NX: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """``after_NX``, the state after this token, and the tensors saved for backward."""

    def back(
        self, gradient_NX: Tensor, before_NX: Tensor, kept: Sequence[Tensor], entered_NF: Tensor, carried_NF: Tensor
    ) -> None:
        """From the gradient of the state after: those of ``entered_NF`` and ``carried_NF`` are written there.

        ``gradient_NX`` becomes the part of the gradient of the state before that does not pass through ``carried_NF``.
        """


class ElmanEquations:
    """``h = tanh(e + u)``."""

    def step(self, entered_NF: Tensor, carried_NF: Tensor, before_NX: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        after = (entered_NF + carried_NF).tanh_()
        return after, (after,)

    def back(
        self, gradient_NX: Tensor, before_NX: Tensor, kept: Sequence[Tensor], entered_NF: Tensor, carried_NF: Tensor
    ) -> None:
        torch.mul(gradient_NX, 1 - kept[0] * kept[0], out=entered_NF)
        carried_NF.copy_(entered_NF)
        gradient_NX.zero_()


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
    ) -> None:
        reset, keep, new, inner = kept
        size = new.shape[1]
        new_gradient = tanh_backward(gradient_NX - gradient_NX * keep, new)
        sigmoid_backward(new_gradient * inner, reset, grad_input=entered_NF[:, :size])
        sigmoid_backward(gradient_NX * (before_NX - new), keep, grad_input=entered_NF[:, size : 2 * size])
        entered_NF[:, 2 * size :] = new_gradient
        carried_NF[:, : 2 * size] = entered_NF[:, : 2 * size]
        torch.mul(new_gradient, reset, out=carried_NF[:, 2 * size :])
        gradient_NX.mul_(keep)


class LstmEquations:
    """``c = f ∘ c' + i ∘ g``, ``h = o ∘ tanh(c)`` with ``i, f, o = σ(e + u)`` and ``g = tanh(e + u)``."""

    def step(self, entered_NF: Tensor, carried_NF: Tensor, before_NX: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        gates = entered_NF + carried_NF
        new = gates.chunk(4, 1)[2].tanh()
        let_in, keep, _, let_out = gates.sigmoid_().chunk(4, 1)
        cell = torch.addcmul(keep * before_NX.chunk(2, 1)[1], let_in, new)
        shown = cell.tanh()
        return torch.cat([let_out * shown, cell], 1), (let_in, keep, new, let_out, shown)

    def back(
        self, gradient_NX: Tensor, before_NX: Tensor, kept: Sequence[Tensor], entered_NF: Tensor, carried_NF: Tensor
    ) -> None:
        let_in, keep, new, let_out, shown = kept
        hidden_gradient, cell_gradient = gradient_NX.chunk(2, 1)
        cell_gradient = cell_gradient + tanh_backward(hidden_gradient * let_out, shown)
        for_in, for_keep, for_new, for_out = entered_NF.chunk(4, 1)
        sigmoid_backward(cell_gradient * new, let_in, grad_input=for_in)
        sigmoid_backward(cell_gradient * before_NX.chunk(2, 1)[1], keep, grad_input=for_keep)
        for_new.copy_(tanh_backward(cell_gradient * let_in, new))
        sigmoid_backward(hidden_gradient * shown, let_out, grad_input=for_out)
        carried_NF.copy_(entered_NF)
        hidden_gradient.zero_()
        torch.mul(cell_gradient, keep, out=gradient_NX.chunk(2, 1)[1])


class BPTT(torch.autograd.Function):
    """``hidden_RD, last_NX``: a cell over all times of a packed batch, its directions side by side.

    Rows are tokens by time (:class:`regard.nn.layout.ByTime`), each in every direction: token 0 forwards, token 0
    backwards, token 1 forwards, and so on; rows of states are sequences in every direction. What a backward direction
    reads at a time is brought there first (``mirror_R``), so that the loop treats all rows alike, and what it says is
    brought back.

    Args:
        entered_RF: what enters times its weights, every token in every direction.
        first_NX: the states before the first token, of the longest sequence first.
        times: for each time the place of its first row, and how many rows are live.
        mirror_R: for each row the one that its direction reads there, where there are two directions; its own inverse.
        weights: of each direction ``weight_FD, bias_F`` of the product with the hidden vector before.
    """

    @staticmethod
    def forward(ctx, entered_RF, first_NX, times, mirror_R, equations, path, *weights):  # type: ignore[no-untyped-def]
        size, ways, state = weights[0].shape[1], len(weights) // 2, first_NX
        entered_RF = _select(entered_RF, mirror_R)
        befores, hidden, last, kept = [], [], [], []
        for start, live in times:
            last.append(state[live:])
            before = state[:live]
            befores.append(before)
            heard = before[:, :size]
            every = [product(heard[d::ways], weights[2 * d], weights[2 * d + 1], path) for d in range(ways)]
            carried = every[0] if ways == 1 else torch.stack(every, 1).flatten(0, 1)
            state, needed = equations.step(entered_RF[start : start + live], carried, before)
            hidden.append(state[:, :size])
            kept.append(needed)
        ctx.save_for_backward(*weights[::2])
        ctx.times, ctx.mirror_R, ctx.equations, ctx.path = times, mirror_R, equations, path
        ctx.befores, ctx.kept = befores, kept
        return _select(torch.cat(hidden), mirror_R), torch.cat([state, *reversed(last)])

    @staticmethod
    def backward(ctx, hidden_gradient_RD, last_gradient_NX):  # type: ignore[no-untyped-def]
        weights, befores, path = ctx.saved_tensors, ctx.befores, ctx.path
        ways, size, gradient_NX = len(weights), weights[0].shape[1], last_gradient_NX.clone()
        hidden_gradient_RD = _select(hidden_gradient_RD, ctx.mirror_R)
        entered_RF = hidden_gradient_RD.new_empty(len(hidden_gradient_RD), len(weights[0]))
        carried_RF = torch.empty_like(entered_RF)
        for (start, live), before, kept in zip(ctx.times[::-1], befores[::-1], ctx.kept[::-1], strict=True):
            now = slice(start, start + live)
            gradient, carried = gradient_NX[:live], carried_RF[now]
            gradient[:, :size] += hidden_gradient_RD[now]
            ctx.equations.back(gradient, before, kept, entered_RF[now], carried)
            for d, weight_FD in enumerate(weights):
                gradient[d::ways, :size] += matmul(carried[d::ways], weight_FD, path)
        before_RD = torch.cat([states[:, :size] for states in befores])
        found = []
        for d in range(ways):
            carried = carried_RF[d::ways]
            found += [matmul(carried.t(), before_RD[d::ways], path), carried.sum(0)]
        return _select(entered_RF, ctx.mirror_R), gradient_NX, None, None, None, None, *found


def _select(x: Tensor, rows: Tensor | None) -> Tensor:
    return x if rows is None else x.index_select(0, rows)


def full(path: Path) -> Path:
    """The path of products with what is carried: in full precision at least, for an error would be carried on.

    They are small besides, and torch compiles a bf16 product for every new number of rows.
    """
    return "exact" if path == "bf16" else path


class LinearRecurrence(torch.autograd.Function):
    """``c_t = f_t ∘ c_{t-1} + u_t`` of rows by time, zero before the first: nothing is multiplied by a matrix."""

    @staticmethod
    def forward(ctx: Any, keep_RD: Tensor, entered_RD: Tensor, times: list[tuple[slice, slice]]) -> Tensor:
        """``c_RD``; ``times``: from the second on, the rows of each, and those of the time before that live on."""
        state_RD = entered_RD.clone()
        for now, before in times:
            state_RD[now].addcmul_(keep_RD[now], state_RD[before])
        ctx.save_for_backward(keep_RD, state_RD)
        ctx.times = times
        return state_RD

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_RD: Tensor) -> tuple[Tensor, Tensor, None]:
        """Each state's gradient is what comes from its own output, and ``f`` times that of the next one."""
        keep_RD, state_RD = ctx.saved_tensors
        gradient_RD, keep_gradient_RD = gradient_RD.clone(), torch.zeros_like(keep_RD)
        for now, before in reversed(ctx.times):
            gradient_RD[before].addcmul_(keep_RD[now], gradient_RD[now])
            torch.mul(gradient_RD[now], state_RD[before], out=keep_gradient_RD[now])
        return keep_gradient_RD, gradient_RD, None
