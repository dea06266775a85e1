"""Weight initialisation, a pure function of a key."""

from __future__ import annotations

import torch
from torch import nn

from regard.nn.alignment import AdditiveScore
from regard.nn.attention.multi_head import MultiHeadAttention
from regard.nn.embeddings import PatchEmbedding, Segments, TokenEmbedding
from regard.nn.heads import Attention as Pooling
from regard.nn.ops import Linear
from regard.nn.positions import Grid, Learned, Relative
from regard.nn.recurrent import Recurrent


def initialise(model: nn.Module, key: int) -> None:
    """Xavier-uniform projections, zero biases, embeddings of standard deviation d_model^-0.5.

    The start symbol's row is zero. Relative positions begin by looking near.
    Queries whose scores are not divided by √d_k start that much smaller [Raffel20].
    With the embedding times √d_model, entries that enter the stack have unit variance, like the sinusoids
    [Vaswani17 §3.4]. The paper does not state its initialisation; this is its published code's.
    """
    generator = torch.Generator().manual_seed(key & 0x7FFF_FFFF_FFFF_FFFF)
    for module in model.modules():
        if isinstance(module, Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5, generator=generator)
            with torch.no_grad():
                module.weight[module.pieces :] = 0
        elif isinstance(module, Relative):
            with torch.no_grad():
                module.weight.copy_(module.nearby())
        elif isinstance(module, Learned | Grid | Segments | PatchEmbedding):
            for parameter in module.parameters(recurse=False):
                nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5, generator=generator)
        elif isinstance(module, AdditiveScore):
            nn.init.normal_(module.direction, std=module.direction.shape[0] ** -0.5, generator=generator)
        elif isinstance(module, Pooling):
            nn.init.zeros_(module.query)
        elif isinstance(module, Recurrent):
            _recurrent(module, generator)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention) and not module.scoring.scaled:
            with torch.no_grad():
                module.query.weight *= module.d_k**-0.5


def _recurrent(module: Recurrent, generator: torch.Generator) -> None:
    """Gate by gate: Xavier-uniform for what enters, orthogonal for what recurs, zero biases.

    An orthogonal matrix neither shrinks nor swells what is carried. A gate that keeps what is remembered starts open:
    its bias is one, so that an LSTM does not forget before it has learned.
    """
    for name, parameter in module.kernel.named_parameters():
        for gate, block in enumerate(parameter.detach().chunk(module.gates)):
            if name.startswith("weight_ih"):
                nn.init.xavier_uniform_(block, generator=generator)
            elif name.startswith("weight_hh"):
                nn.init.orthogonal_(block, generator=generator)
            else:
                nn.init.constant_(block, float(name.startswith("bias_ih") and gate in module.open_gates))
