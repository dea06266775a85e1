"""Images as sequences of patches [Dosovitskiy21]: the encoder of the Transformer, and the classes of an image."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.models.bert import TextHead
from regard.models.inputs import Patches
from regard.models.transformer import Encoder
from regard.nn.probe import listen

POINT = "encoder.{}.attention.weight"
"""Where a layer's attention weights pass."""


class Vit(nn.Module):
    """A class token and the patches of an image, each attending to all; the class token is classified [§3.1]."""

    def __init__(self, encoder: Encoder, head: TextHead) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, patches: Patches) -> Tensor:
        """``score_BC`` of every image."""
        score_BC: Tensor = self.head(self.encoder(patches), patches.sequences)
        return score_BC


@torch.inference_mode()
def weights_of(model: Vit, patches: Patches) -> list[list[Tensor]]:
    """Every attention weight of one pass: ``[layer][image]`` has shape (heads, 1 + patches, 1 + patches).

    The class token stands first; the model's mode is left as it was.
    """
    training = model.training
    model.eval()
    with listen([POINT.format("*")]) as heard:
        model.encoder(patches)
    model.train(training)
    return [heard[POINT.format(layer)] for layer in range(len(model.encoder.layers))]
