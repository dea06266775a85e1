"""A translator reading pairs as they stand, so that one can look inside: for the demonstration and for pictures."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.models.inputs import Tokens
from regard.models.transformer import Transformer
from regard.nn.layout import Sequences
from regard.nn.probe import listen

POINTS = {
    "encoder": "encoder.{}.attention.weight",
    "decoder": "decoder.{}.attention.weight",
    "cross": "decoder.{}.cross.weight",
}
"""Where the weights of the three uses of attention pass, by layer [Vaswani17 §3.2.3]."""


@torch.inference_mode()
def weights_of(
    model: Transformer, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> dict[str, list[list[Tensor]]]:
    """Every attention weight of one pass in evaluation mode: ``[kind][layer][pair]`` has shape (heads, queries, keys).

    Args:
        model: the translator; its mode is left as it was.
        sources: ids of each sentence, ``</s>`` at the end.
        targets: what the decoder reads for each: the start symbol, then the ids of its translation.
    """
    device, training = model.output.weight.device, model.training
    read, written = _tokens(sources, device), _tokens(targets, device)
    model.eval()
    with listen([point.format("*") for point in POINTS.values()]) as heard:
        model.decoder(written, model.encoder(read), read)
    model.train(training)
    depth = {"encoder": len(model.encoder.layers), "decoder": len(model.decoder.layers)}
    depth["cross"] = depth["decoder"]
    return {kind: [heard[point.format(layer)] for layer in range(depth[kind])] for kind, point in POINTS.items()}


def _tokens(sentences: Sequence[Sequence[int]], device: torch.device) -> Tokens:
    ids_T = torch.tensor([id for sentence in sentences for id in sentence], dtype=torch.int64, device=device)
    return Tokens(ids_T, Sequences.end_to_end([len(sentence) for sentence in sentences], device))
