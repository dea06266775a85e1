"""Our translator in Hugging Face's names [Vaswani17 §3]: with the paper's post-norm a Marian, with pre-norm a Pegasus.

They are the same but for the order of the sinusoids: sine and cosine alternate in the paper, there all sines come
first. Nothing in the model asks for the place of an entry of the residual stream, so all matrices that read it or write
to it are written with their rows or columns in that order, and what is computed stays the same.

The row behind the pieces, the start symbol's, is ``<pad>`` there, of zeros as here, and must never be written. Marian
models are known for that everywhere; a Pegasus has a bias for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.config import TransformerSection
from regard.convert.fields import THEIRS, demand, demand_plain_heads
from regard.convert.names import Form, Reordered, Row, affine, row
from regard.nn.positions import sinusoids

KINDS = {"post": ("marian", "MarianMTModel"), "pre": ("pegasus", "PegasusForConditionalGeneration")}
"""Where the norm stands to their ``model_type`` and architecture."""
NEVER = -1e4
"""The bias of a symbol that is never written: no probability is left to it, in half precision too."""
ROOM = 1024
"""Places that sinusoids are made for there, at least."""


def config(model: TransformerSection, pieces: int, longest: int) -> dict[str, Any]:
    """Their ``config.json``; ``longest``: tokens of a text that sinusoids are made for at least.

    Raises:
        UsageError: a field that neither has a form for.
    """
    kind, architecture = KINDS[model.norm_place]
    demand(model, architecture, norm="layer", positions="sinusoidal", biases=True, scale_scores=True)
    demand(model, architecture, tie="three", scale_embedding=True, scale_output=False, decoder_norm=(None, "layer"))
    demand(model, architecture, activation=tuple(THEIRS), norm_epsilon=1e-5)
    demand_plain_heads(model, architecture)
    sides = {
        f"{side}_{name}": value
        for side, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers))
        for name, value in (("layers", layers), ("ffn_dim", model.d_ff), ("attention_heads", model.heads))
    }
    return {
        "model_type": kind,
        "architectures": [architecture],
        "is_encoder_decoder": True,
        "vocab_size": pieces + 1,
        "decoder_vocab_size": pieces + 1,
        "d_model": model.d_model,
        **sides,
        "activation_function": THEIRS[model.activation],
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "activation_dropout": model.feedforward_dropout,
        "max_position_embeddings": max(ROOM, longest),
        "scale_embedding": True,
        "static_position_embeddings": True,
        "normalize_before": model.norm_place == "pre",
        "normalize_embedding": False,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "pad_token_id": pieces,
        "decoder_start_token_id": pieces,
        "eos_token_id": 0,
        "forced_eos_token_id": None,
        "bos_token_id": None,
    }


def rows(model: TransformerSection, task: str) -> list[Row]:
    """The table of names, entries of the residual stream in their order."""
    order = _order(model)
    reading, writing = Reordered(order, -1), Reordered(order, 0)
    table = [row("model.shared.weight", "encoder.input.tokens.weight", form=reading)]
    for side, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for layer in range(layers):
            table += _layer(side, layer, reading, writing)
        if model.norm_place == "pre":
            table += affine(f"model.{side}.layer_norm", f"{side}.final", form=writing)
    return table


def _order(model: TransformerSection) -> tuple[int, ...]:
    """Our entries of the stream in their order."""
    return (*range(0, model.d_model, 2), *range(1, model.d_model, 2))


def further(model: TransformerSection, config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Tensors that are no weights of ours: what is added to the scores, and a Pegasus's sinusoids."""
    added = torch.zeros(1, config["vocab_size"])
    if model.norm_place == "post":
        return {"final_logits_bias": added}
    added[0, config["pad_token_id"]] = NEVER
    table = sinusoids(config["max_position_embeddings"], model.d_model)[:, list(_order(model))].contiguous()
    sides = {f"model.{side}.embed_positions.weight": table.clone() for side in ("encoder", "decoder")}
    return {"final_logits_bias": added, **sides}


def _layer(side: str, layer: int, reading: Form, writing: Form) -> list[Row]:
    theirs, ours = f"model.{side}.layers.{layer}", f"{side}.layers.{layer}"
    sublayers = {"self_attn": "attention"} | ({"encoder_attn": "cross"} if side == "decoder" else {})
    table = []
    for their_name, our_name in sublayers.items():
        for letter, name in (("q", "query"), ("k", "key"), ("v", "value")):
            table += _reads(f"{theirs}.{their_name}.{letter}_proj", f"{ours}.{our_name}.{name}", reading)
        table += affine(f"{theirs}.{their_name}.out_proj", f"{ours}.{our_name}.output", form=writing)
        table += affine(f"{theirs}.{their_name}_layer_norm", f"{ours}.{our_name}_residual.norm", form=writing)
    table += _reads(f"{theirs}.fc1", f"{ours}.feedforward.inner", reading)
    table += affine(f"{theirs}.fc2", f"{ours}.feedforward.outer", form=writing)
    return table + affine(f"{theirs}.final_layer_norm", f"{ours}.feedforward_residual.norm", form=writing)


def _reads(theirs: str, ours: str, reading: Form) -> list[Row]:
    """A layer that reads the stream: the columns of its matrix are in that order, its bias is not of the stream."""
    return [row(f"{theirs}.weight", f"{ours}.weight", form=reading), row(f"{theirs}.bias", f"{ours}.bias")]
