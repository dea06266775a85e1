"""Incremental decoders by model family: returns the stepper that search and sampling drive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard.config import FAMILIES
from regard.config.tasks import import_name

if TYPE_CHECKING:
    import torch
    from torch import nn


def stepper(model: nn.Module, device: torch.device | str = "cpu", **options: Any) -> Any:
    """A model as a step function, which :mod:`regard.decoding` searches with; its family's row names the class.

    Args:
        model: a Transformer, a recurrent encoder-decoder or a decoder-only model.
        device: where it runs.
        options: ``weights`` of encoder-decoders: each answer also has the attention weights of its step. ``window`` of
            decoder-only models: tokens that a token sees at most.
    """
    steppers = (import_name(family.info.stepper) for family in FAMILIES.values() if family.info.stepper)
    return next(each for each in steppers if isinstance(model, each.model_class))(model, device, **options)
