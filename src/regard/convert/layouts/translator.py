"""Encoder-decoder in Hugging Face's names [Vaswani17 §3]: Marian (post-norm) and Pegasus (pre-norm).

They are the same but for the order of the sinusoids: sine and cosine alternate in the paper, there all sines come
first. Nothing in the model asks for the place of an entry of the residual stream, so all matrices that read it or write
to it are written with their rows or columns in that order, and what is computed stays the same.

The row after the pieces, the start symbol's, is ``<pad>`` there, of zeros as here, and must never be written. Marian
models are known for that everywhere; a Pegasus has a bias for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.config import Recipe, TransformerSection
from regard.convert.config_fields import ACTIVATIONS, THEIRS, Fields
from regard.convert.layouts.names import Form, Reordered, Row, affine, row
from regard.convert.obstacles import Obstacle, misfits, odd_heads, two_vocabularies
from regard.nn.positions import sinusoids
from regard.system.errors import RegardError

TASKS = {
    "marian": {"MarianMTModel": "translation"},
    "pegasus": {"PegasusForConditionalGeneration": "translation"},
}
"""Their architectures, by ``model_type``, to what they are for."""
KINDS = {"marian": "post", "pegasus": "pre"}
"""Their ``model_type`` to where the norm stands."""
TABLE = "model.shared.weight"
COPIES = {f"{name}.weight": TABLE for name in ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")}
"""Tied tensors that a file may hold a second time."""
BIAS, PLACES = "final_logits_bias", "model.{}.embed_positions.weight"
"""Tensors that are no weights of ours: what is added to the scores, and sinusoids."""
SPARE = re.compile(rf"{BIAS}|model\.(en|de)coder\.embed_positions\.weight")
NEVER = -1e4
"""The bias of a symbol that is never written: no probability is left to it, in half precision too."""
ROOM = 1024
"""Places that sinusoids are made for there, at least."""


def section(config: Fields, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The values of our model section."""
    kind = config.text("model_type")
    config.only(normalize_before=KINDS[kind] == "pre", normalize_embedding=False, add_bias_logits=False)
    config.only(static_position_embeddings=True, share_encoder_decoder_embeddings=True, tie_word_embeddings=True)
    for name in ("ffn_dim", "attention_heads"):
        if (decoder := config.whole(f"decoder_{name}")) != (encoder := config.whole(f"encoder_{name}")):
            message = f"decoder_{name} {decoder} is not supported, only {encoder}, the encoder's, is"
            raise RegardError(message, config.where)
    _refuse_others(config, tensors)
    return {
        "family": "transformer",
        "encoder_layers": config.whole("encoder_layers"),
        "decoder_layers": config.whole("decoder_layers"),
        "d_model": config.whole("d_model"),
        "d_ff": config.whole("encoder_ffn_dim"),
        "heads": config.whole("encoder_attention_heads"),
        "activation": config.word("activation_function", ACTIVATIONS, "gelu"),
        "norm_place": KINDS[kind],
        "scale_embedding": config.flag("scale_embedding", False),
        "dropout": config.share("dropout", 0.1),
        "attention_dropout": config.share("attention_dropout", 0.0),
        "feedforward_dropout": config.share("activation_dropout", 0.0),
    }


def _refuse_others(config: Fields, tensors: Mapping[str, Tensor]) -> None:
    """Refuse a bias on the output logits, and positions other than sinusoids; neither is supported."""
    added = tensors.get(BIAS)
    if added is not None and added.flatten()[:-1].any():  # the last is that of the start symbol, which is never written
        raise RegardError(f"{BIAS!r} is a bias on the output logits, which is not supported", config.where)
    for side in ("encoder", "decoder"):
        held = tensors.get(name := PLACES.format(side))
        if held is not None and not _are_sinusoids(held):
            raise RegardError(f"{name!r} holds other positions than sinusoids, which are not supported", config.where)


def _are_sinusoids(held: Tensor) -> bool:
    if held.dim() != 2 or not held.is_floating_point():
        return False
    table = sinusoids(len(held), held.shape[1])[:, list(_order(held.shape[1]))]
    return torch.allclose(held.float(), table.float(), rtol=0.0, atol=1e-5)


def row_options(config: Fields, generation: Fields) -> dict[str, Any]:
    """Keyword arguments of :func:`rows`: none; the decoder's start row is the last one.

    Raises:
        RegardError: it is another.
    """
    rows = config.whole("vocab_size", least=2)
    config.only(decoder_vocab_size=rows)
    for name in ("decoder_start_token_id", "pad_token_id"):
        if config.whole(name, least=0) != rows - 1:
            message = f"{name} {config.whole(name, least=0)} is not supported, only {rows - 1}, the last row, is"
            raise RegardError(message, config.where)
    return {"own": True}


def obstacles(recipe: Recipe, kind: str) -> list[Obstacle]:
    """The values of a recipe that a Marian or a Pegasus has no form for."""
    model = recipe.model
    assert isinstance(model, TransformerSection)
    found = two_vocabularies(recipe) + misfits(model, norm_place=KINDS[kind], norm="layer", positions="sinusoidal")
    found += misfits(model, biases=True, scale_scores=True, tie="three", scale_output=False)
    found += misfits(model, decoder_norm=(None, "layer"), activation=tuple(THEIRS), norm_epsilon=1e-5)
    return found + odd_heads(model)


def config(recipe: Recipe, pieces: int) -> dict[str, Any]:
    """Their ``config.json``, the start symbol's row counted among the pieces."""
    model, start = recipe.model, pieces - 1
    assert isinstance(model, TransformerSection)
    longest = recipe.data.max_tokens + recipe.decoding.max_extra + 1
    kind = next(kind for kind, place in KINDS.items() if place == model.norm_place)
    sides = {
        f"{side}_{name}": value
        for side, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers))
        for name, value in (("layers", layers), ("ffn_dim", model.d_ff), ("attention_heads", model.heads))
    }
    return {
        "model_type": kind,
        "architectures": [*TASKS[kind]],
        "is_encoder_decoder": True,
        "vocab_size": pieces,
        "decoder_vocab_size": pieces,
        "d_model": model.d_model,
        **sides,
        "activation_function": THEIRS[model.activation],
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "activation_dropout": model.feedforward_dropout,
        "max_position_embeddings": max(ROOM, longest),
        "scale_embedding": model.scale_embedding,
        "static_position_embeddings": True,
        "normalize_before": model.norm_place == "pre",
        "normalize_embedding": False,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "pad_token_id": start,
        "decoder_start_token_id": start,
        "eos_token_id": 0,
        "forced_eos_token_id": None,
        "bos_token_id": None,
    }


def rows(model: TransformerSection, task: str, *, own: bool = True) -> list[Row]:
    """The table of names, entries of the residual stream in their order; the start symbol's row is always its own."""
    order = _order(model.d_model)
    reading, writing = Reordered(order, -1), Reordered(order, 0)
    table = [row(TABLE, "encoder.input.tokens.weight", form=reading)]
    for side, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for layer in range(layers):
            table += _layer(side, layer, reading, writing)
        if model.norm_place == "pre":
            table += affine(f"model.{side}.layer_norm", f"{side}.final", form=writing)
    return table


def _order(d_model: int) -> tuple[int, ...]:
    """Our entries of the stream in their order."""
    return (*range(0, d_model, 2), *range(1, d_model, 2))


def further(model: TransformerSection, config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Tensors that are no weights of ours: what is added to the scores, and a Pegasus's sinusoids."""
    added = torch.zeros(1, config["vocab_size"])
    if model.norm_place == "post":
        return {BIAS: added}
    added[0, config["pad_token_id"]] = NEVER
    table = sinusoids(config["max_position_embeddings"], model.d_model)[:, list(_order(model.d_model))].contiguous()
    return {BIAS: added, **{PLACES.format(side): table.clone() for side in ("encoder", "decoder")}}


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
