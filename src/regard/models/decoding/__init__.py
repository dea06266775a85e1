"""Incremental decoders by model family: returns the stepper that search and sampling drive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn


def stepper(model: nn.Module, device: torch.device | str = "cpu", **options: Any) -> Any:
    """A model as a step function, which :mod:`regard.decoding` searches with.

    Args:
        model: a Transformer, a recurrent encoder-decoder or a decoder-only model.
        device: where it runs.
        options: ``weights`` of encoder-decoders: each answer also has the attention weights of its step. ``window`` of
            decoder-only models: tokens that a token sees at most.
    """
    from regard.models.decoding.gpt import GptStepper
    from regard.models.decoding.rnn import RnnStepper
    from regard.models.decoding.transformer import TransformerStepper

    steppers: tuple[Any, ...] = (TransformerStepper, RnnStepper, GptStepper)
    return next(each for each in steppers if isinstance(model, each.model_class))(model, device, **options)
