"""Integrated gradients of a score with respect to token embeddings, refined until they add up."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from regard.models.captured_attention import evaluating
from regard.nn.hooks import intervene

NODES = 4
"""Points of the Gauss-Legendre rule in each part of the path of integrated gradients."""
PARTS = 8
"""Parts of the path at first; they halve towards zero, where a norm changes most."""
ENOUGH = 1e-3
"""Error of integrated gradients below which no part is halved, relative to the difference of the scores."""


def integrated_gradients(
    model: nn.Module, stacks: Sequence[str], run: Callable[[], Tensor], passes: int
) -> tuple[float, dict[str, Tensor]]:
    """``share_T`` of each stack: integrated gradients from embeddings of zero [Sundararajan17 §3].

    ``Σ_d x_d ∫₀¹ ∂score(α x)/∂x_d dα``, the embeddings of all stacks scaled by α together. All shares add up to the
    score minus the score at zero. Positions are not scaled: they are added later. The same holds of each part of the
    path: the part whose shares lack most of the difference of its two scores is halved, until little is lacking.

    Args:
        model: its mode and its gradients are left as they were.
        stacks: ``encoder``, ``decoder``: whose tokens.
        run: one pass of the model; gives the score, a single number.
        passes: most of them, backward ones; fewer where the error is below :data:`ENOUGH`.

    Returns:
        The score at zero, and the shares by stack, in float64.
    """

    def score(scale: float) -> float:
        return float(_scaled_run(model, stacks, run, scale)[0].detach())

    def integrate(begin: tuple[float, float], end: tuple[float, float]) -> _Part:
        shares = _part_shares(model, stacks, run, begin[0], end[0])
        error = end[1] - begin[1] - sum(float(share_T.sum()) for share_T in shares.values())
        return _Part(begin, end, shares, abs(error))

    edges = [(scale, score(scale)) for scale in (0.0, *(0.5**power for power in range(PARTS - 1, -1, -1)))]
    parts, done = [integrate(*ends) for ends in itertools.pairwise(edges)], PARTS * NODES
    enough = ENOUGH * abs(edges[-1][1] - edges[0][1])
    while sum(part.error for part in parts) > enough and done + 2 * NODES <= passes:
        worst = max(parts, key=lambda part: part.error)
        parts.remove(worst)
        middle = (worst.begin[0] + worst.end[0]) / 2
        half = middle, score(middle)
        parts += [integrate(worst.begin, half), integrate(half, worst.end)]
        done += 2 * NODES
    return edges[0][1], {stack: torch.stack([part.shares[stack] for part in parts]).sum(0) for stack in stacks}


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the path: where it begins and ends, with the scores there, its shares, and what they lack."""

    begin: tuple[float, float]
    end: tuple[float, float]
    shares: dict[str, Tensor]
    error: float


def _part_shares(
    model: nn.Module, stacks: Sequence[str], run: Callable[[], Tensor], begin: float, end: float
) -> dict[str, Tensor]:
    """The integral over a part of the path, by a Gauss-Legendre rule."""
    shares: dict[str, Tensor] = {}
    for node, weight in zip(*np.polynomial.legendre.leggauss(NODES), strict=True):
        score, entered = _scaled_run(model, stacks, run, begin + (end - begin) * (float(node) + 1) / 2)
        gradients = torch.autograd.grad(score, [leaf for leaf, _ in entered.values()])
        for (stack, (_, x_TD)), gradient_TD in zip(entered.items(), gradients, strict=True):
            share_T = (end - begin) * float(weight) / 2 * (x_TD.double() * gradient_TD.double()).sum(1)
            shares[stack] = shares[stack] + share_T if stack in shares else share_T
    return shares


def _scaled_run(
    model: nn.Module, stacks: Sequence[str], run: Callable[[], Tensor], scale: float
) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor]]]:
    """The score with embeddings scaled, and for each stack the scaled embeddings and the whole ones."""
    entered: dict[str, tuple[Tensor, Tensor]] = {}

    def watch(x_TD: Tensor, stack: str) -> Tensor:
        whole_TD = x_TD.detach()
        entered[stack] = (scale * whole_TD).requires_grad_(), whole_TD
        return entered[stack][0]

    with evaluating(model), torch.enable_grad(), ExitStack() as hooks:
        for stack in stacks:
            hooks.enter_context(intervene(f"{stack}.input.embedding", partial(watch, stack=stack)))
        return run(), entered
