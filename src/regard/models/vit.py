"""Vision Transformer [Dosovitskiy21]: an image as a sequence of patches, the Transformer encoder, and a classifier."""

from __future__ import annotations

from torch import Tensor, nn

from regard.models.bert import TextHead
from regard.models.inputs import Patches
from regard.models.transformer import Encoder


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
