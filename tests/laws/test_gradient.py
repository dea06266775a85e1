"""The law of gradients: every parameter receives a finite one that is not zero, unless the table says why."""

import pytest
import torch

from regard.nn.dropout import reseed
from tests.laws.families import ALL, Family, held


@pytest.mark.one_of(12)
@held(*ALL)
def test_gradient(family: Family) -> None:
    model = family.model(dropout=0.1).train()
    reseed(5)
    family.loss(model).backward()
    largest = max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        size = float(parameter.grad.abs().max())
        if name.endswith(".key.bias") and (".cross." in name or family.choices.get("positions") != "rotary"):
            assert size < 1e-12 * largest, name  # the softmax does not see it, unless each key's is turned
        else:
            assert size > 1e-6 * largest, name
    if family.name in ("transformer", "rnn"):
        for embedding in (model.encoder.input.tokens, model.decoder.input.tokens, model.output):
            assert not embedding.weight.grad[embedding.pieces].any()
