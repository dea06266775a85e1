"""Normalisation layers: layer norm and RMS norm over each token's vector, batch norm over the tokens of a batch."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.init import watch
from regard.nn.layout import Sequences

EPSILON = 1e-5
"""Default ε: that of the 2017 Transformer's descendants, so that models can be exported."""
_REAL: ContextVar[Tensor | None] = ContextVar("real", default=None)


class LayerNorm(nn.LayerNorm):
    """``(x - mean) / √(variance + ε) · gain + bias`` over a token's entries [Ba16]."""

    def __init__(self, d_model: int, epsilon: float = EPSILON) -> None:
        super().__init__(d_model, eps=epsilon)
        watch(self)

    def moments(self, x_TD: Tensor) -> tuple[Tensor, Tensor]:
        """What is taken from a token's entries, and what they are divided by: one number each."""
        return x_TD.mean(1, keepdim=True), (x_TD.var(1, keepdim=True, correction=0) + self.eps).sqrt()


class RMSNorm(nn.Module):
    """``x / √(mean(x²) + ε) · gain`` over a token's entries [Zhang19]."""

    def __init__(self, d_model: int, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.epsilon = epsilon
        watch(self)

    def forward(self, x_TD: Tensor) -> Tensor:
        """Each token normalised."""
        return F.rms_norm(x_TD, self.weight.shape, self.weight, self.epsilon)

    def moments(self, x_TD: Tensor) -> tuple[Tensor, Tensor]:
        """As of layer norm; nothing is taken away."""
        return torch.zeros_like(x_TD[:, :1]), (x_TD.square().mean(1, keepdim=True) + self.epsilon).sqrt()


class GroupNorm(nn.GroupNorm):
    """Layer norm over each of several equal parts of a token's entries on its own [Wu18]."""

    def __init__(self, d_model: int, groups: int, epsilon: float = EPSILON) -> None:
        super().__init__(groups, d_model, eps=epsilon)
        watch(self)

    def moments(self, x_TD: Tensor) -> tuple[Tensor, Tensor]:
        """As of layer norm, each entry's those of its group."""
        groups_T1X = x_TD.unflatten(1, (self.num_groups, -1))
        mean_T1X = groups_T1X.mean(2, keepdim=True).expand_as(groups_T1X)
        deviation_T1X = (groups_T1X.var(2, keepdim=True, correction=0) + self.eps).sqrt().expand_as(groups_T1X)
        return mean_T1X.flatten(1), deviation_T1X.flatten(1)


class BatchNorm(nn.Module):
    """``(x - mean) / √(variance + ε) · gain + bias`` of each entry over the tokens of a batch [Ioffe15].

    Statistics are those of the real tokens, as :func:`counting` or :func:`count_real_tokens` says; tokens after the
    last sentence are ignored. While training a token thus sees its batch; in evaluation mode the running averages stand
    in, and a sentence alone is the same among others.
    """

    momentum = 0.1
    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, d_model: int, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.register_buffer("running_mean", torch.zeros(d_model))
        self.register_buffer("running_variance", torch.ones(d_model))
        self.epsilon = epsilon
        watch(self)

    def forward(self, x_TD: Tensor) -> Tensor:
        """Each entry normalised."""
        mean_D, variance_D = self._moments(x_TD) if self.training else (self.running_mean, self.running_variance)
        return (x_TD - mean_D) * ((variance_D + self.epsilon).rsqrt() * self.weight) + self.bias

    def moments(self, x_TD: Tensor) -> tuple[Tensor, Tensor]:
        """As of layer norm, each entry's own; those of evaluation."""
        return self.running_mean[None], (self.running_variance + self.epsilon).sqrt()[None]

    def _moments(self, x_TD: Tensor) -> tuple[Tensor, Tensor]:
        weight_T = _REAL.get()
        if weight_T is None:
            weight_T = x_TD.new_ones(len(x_TD))
        weight_T = weight_T.to(x_TD.dtype)
        share_T = weight_T / weight_T.sum().clamp(min=1.0)
        mean_D = share_T @ x_TD
        variance_D = share_T @ (x_TD - mean_D).square()
        with torch.no_grad():
            self.running_mean.lerp_(mean_D.to(self.running_mean.dtype), self.momentum)
            self.running_variance.lerp_(variance_D.to(self.running_variance.dtype), self.momentum)
        return mean_D, variance_D


class Scaled(nn.Module):
    """What ends T5's decoder: a norm, then a factor, so that the tied table can be the output [Raffel20]."""

    def __init__(self, norm: nn.Module, factor: float) -> None:
        super().__init__()
        self.norm = norm
        self.factor = factor

    def forward(self, x_TD: Tensor) -> Tensor:
        """Each token normalised and multiplied."""
        scaled_TD: Tensor = self.norm(x_TD) * self.factor
        return scaled_TD


class Packed(Protocol):
    """A packed input of a stack."""

    @property
    def sequences(self) -> Sequences:
        """Its sentences."""


def count_real_tokens(stack: nn.Module) -> None:
    """From now on, while ``stack`` trains, batch norms inside it count the tokens of sentences only.

    The first input of the stack is :class:`Packed`. Without this, every token of the batch counts.
    """
    stack.register_forward_pre_hook(_count)
    stack.register_forward_hook(_count_all, always_call=True)


def _count(stack: nn.Module, inputs: tuple[Packed, ...]) -> None:
    _REAL.set(inputs[0].sequences.inside_T if stack.training else None)


def _count_all(stack: nn.Module, inputs: object, output: object) -> None:
    _REAL.set(None)
