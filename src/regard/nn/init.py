"""Starting weights, a pure function of a key."""

from __future__ import annotations

import torch
from torch import nn

from regard.nn.embeddings import TokenEmbedding
from regard.nn.ops import Linear
from regard.nn.positions import Learned


def initialise(model: nn.Module, key: int) -> None:
    """Xavier-uniform projections, zero biases, embeddings of standard deviation d_model^-0.5.

    The start symbol's row is zero.
    With the embedding times √d_model, entries that enter the stack have unit variance, like the sinusoids
    [Vaswani17 §3.4]. The paper does not state its initialisation; this is its published code's.
    """
    generator = torch.Generator().manual_seed(key & 0x7FFF_FFFF_FFFF_FFFF)
    for module in model.modules():
        if isinstance(module, Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            nn.init.zeros_(module.bias)
        elif isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5, generator=generator)
            with torch.no_grad():
                module.weight[module.pieces :] = 0
        elif isinstance(module, Learned):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5, generator=generator)
