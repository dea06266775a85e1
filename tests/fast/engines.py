"""Engines of small models, beside the models themselves."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from regard.config import TransformerSection
from regard.models.store import named_tensors
from regard.models.transformer import Transformer
from tests.models import small_models as small


def weights(model: torch.nn.Module) -> dict[str, np.ndarray]:
    """By the names they have in a model file."""
    return {name: tensor.detach().float().numpy() for name, tensor in named_tensors(model).items()}


def engine(model: Transformer, section: TransformerSection) -> Any:
    """The engine of a model."""
    from regard.fast.build import transformer

    return transformer(section, weights(model))


def pair(choices: Mapping[str, Any], **more: Any) -> tuple[Transformer, Any]:
    """A small model in float32, and its engine."""
    model = small.transformer(dtype=torch.float32, **more, **choices)
    return model, engine(model, small.section(**choices))
