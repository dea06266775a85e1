"""Engines of small models, beside the models themselves."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from regard.config import TransformerSection
from regard.kernels.packing import Precision
from regard.models.store import named_tensors
from regard.models.transformer import Transformer
from tests.models import small_models as small


def taken(model: torch.nn.Module) -> Callable[..., np.ndarray]:
    """The weights by the names they have in a model file."""
    weights = {name: tensor.detach().float().numpy() for name, tensor in named_tensors(model).items()}

    def take(name: str, *shape: int) -> np.ndarray:
        assert weights[name].shape == shape, name
        return weights[name]

    return take


def engine(
    model: Transformer, section: TransformerSection, pieces: int = small.PIECES, precision: Precision = "fp32"
) -> Any:
    """The engine of a model."""
    from regard.fast.build import transformer

    return transformer(section, pieces, pieces, taken(model), precision)


def pair(choices: Mapping[str, Any], broken: bool = False, precision: Precision = "fp32") -> tuple[Transformer, Any]:
    """A small model in float32, and its engine; in a broken one the start symbol is no number."""
    model = small.transformer(dtype=torch.float32, **choices)
    if broken:
        with torch.no_grad():
            model.decoder.input.tokens.weight[small.PIECES] = torch.nan
    return model, engine(model, small.section(**choices), precision=precision)
