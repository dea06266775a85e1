"""What adversarial training does to a batch, followed by hand [Miyato17 §3]."""

from typing import Any

import pytest
import torch

from regard.nn.hooks import intervene


def expect_adversarial(teaching: Any, batch: Any, lengths: list[int], size: float = 0.7) -> None:
    """The loss is the mean of the plain one and of that with embeddings moved against it, text by text.

    In training alone.

    Args:
        teaching: a training task whose model has no dropout.
        batch: one of its batches.
        lengths: tokens of its texts, which lie end to end.
        size: how far embeddings are moved, in lengths of one.
    """
    model, recipe = teaching.model.train().requires_grad_(), teaching.task.recipe

    def loss(adversarial: float) -> Any:
        section = recipe.classification.model_copy(update={"adversarial": adversarial})
        teaching.task.recipe = recipe.model_copy(update={"classification": section})
        return teaching.loss(batch)

    entered: list[torch.Tensor] = []
    enter = lambda x_TD: entered.append(x_TD.detach().requires_grad_()) or entered[0]  # noqa: E731
    with intervene("encoder.input.embedding", enter):
        plain = loss(0.0)
    (gradient_TD,) = torch.autograd.grad(plain.total, entered[0])
    mean = entered[0].norm(dim=1)[: sum(lengths)].mean()
    parts = [size * mean * one / one.norm() for one in gradient_TD[: sum(lengths)].split(lengths) if len(one)]
    moved_TD = torch.cat([*parts, torch.zeros_like(gradient_TD[sum(lengths) :])])
    with intervene("encoder.input.embedding", lambda x_TD: x_TD + moved_TD):
        moved = loss(0.0)
    found = loss(size)
    assert found.total.item() == pytest.approx((plain.total + moved.total).item() / 2, rel=1e-5)
    assert moved.total.item() > plain.total.item()
    assert (found.nll.item(), found.count) == (pytest.approx(plain.nll.item()), plain.count)
    model.eval()
    assert loss(size).total.item() == loss(0.0).total.item()
    teaching.task.recipe = recipe
    model.requires_grad_(False)
