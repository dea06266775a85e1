"""Input attribution by gradient × input: the share of each input token in a score."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.models.inspect.captured_attention import evaluating
from regard.nn.hooks import intervene


def gradient_times_input(model: nn.Module, stack: str, run: Callable[[], Tensor]) -> Tensor:
    """``share_T``: what the score gains, to first order, by each token's embedding [Shrikumar16 §3].

    ``Σ_d x_d ∂score/∂x_d``: if the embedding were a hundredth larger, the score would be about that much, divided by a
    hundred, larger. It may be negative. Positions are not counted: they are added later.

    Args:
        model: its mode and its gradients are left as they were.
        stack: ``encoder`` or ``decoder``: which tokens.
        run: one pass of the model; gives the score, a single number.
    """
    entered: list[Tensor] = []

    def watch(x_TD: Tensor) -> Tensor:
        entered.append(x_TD.detach().requires_grad_())
        return entered[-1]

    with evaluating(model), torch.enable_grad(), intervene(f"{stack}.input.embedding", watch):
        score = run()
    (gradient_TD,) = torch.autograd.grad(score, entered[0])
    share_T: Tensor = (entered[0].detach() * gradient_TD).sum(1)
    return share_T
