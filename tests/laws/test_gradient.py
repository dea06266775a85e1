"""The law of gradients: every parameter receives a finite one that is not zero, unless the table says why."""

from __future__ import annotations

import torch

from regard.nn.dropout import reseed
from regard.nn.loss import SmoothedCrossEntropy
from tests.models.small_models import section, small, some_pairs


def test_gradient(choices) -> None:
    model = small(section(**choices, dropout=0.1)).train()
    given = some_pairs([(5, 6), (7, 4), (3, 5)], tail=3)
    reseed(5)
    table = model.output
    loss = SmoothedCrossEntropy(0.1)
    total, _ = loss(model(given), table.weight, given.labels_T, given.weight_T.double(), table.pieces)
    total.backward()
    largest = max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        assert gradient is not None, name
        assert torch.isfinite(gradient).all(), name
        size = float(gradient.abs().max())
        if name.endswith(".key.bias"):
            assert size < 1e-12 * largest, name  # the softmax does not see it
        else:
            assert size > 1e-6 * largest, name
    for embedding in (model.encoder.input.tokens, model.decoder.input.tokens, model.output):
        assert not embedding.weight.grad[embedding.pieces].any()
