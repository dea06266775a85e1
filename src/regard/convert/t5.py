"""T5 in Hugging Face's names [Raffel20]: 1.0 (ReLU, one table for all), and 1.1 (gated, an output of its own)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from regard.config import TransformerSection
from regard.convert.fields import Fields, demand
from regard.convert.names import Row, Started, affine, row
from regard.errors import RegardError

TASKS = {"T5ForConditionalGeneration": "span-corruption"}
"""Their architectures to what they are for."""
SILENT = re.compile(r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight")
"""Tensors that say nothing here: old files hold one that is never read."""
COPIES = {f"{name}.weight": "shared.weight" for name in ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head")}
"""Tied tensors that a file may hold a second time; the last of them 1.1 has as one of its own."""
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "silu": "swish",
    "gated-gelu": "gated_gelu",
    "gated-silu": "gated_swish",
}
"""Their words for the feed-forward to ours."""
THEIRS = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
PAD, END = 0, 1
"""Ids of T5's symbols: what starts a text the decoder writes, and what ends one."""


def section(config: Fields, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The values of our model section; a file that holds an output of its own is not tied."""
    layers = config.whole("num_layers")
    share = config.share("dropout_rate", 0.1)
    own = "lm_head.weight" in tensors
    return {
        "family": "transformer",
        "encoder_layers": layers,
        "decoder_layers": config.whole("num_decoder_layers", layers),
        "d_model": config.whole("d_model"),
        "d_ff": config.whole("d_ff"),
        "heads": config.whole("num_heads"),
        "d_k": config.whole("d_kv"),
        "d_v": config.whole("d_kv"),
        "activation": config.word("feed_forward_proj", ACTIVATIONS, "relu"),
        "relative_buckets": config.whole("relative_attention_num_buckets", 32),
        "relative_distance": config.whole("relative_attention_max_distance", 128),
        "norm_epsilon": config.positive("layer_norm_epsilon", 1e-6),
        "dropout": share,
        "attention_dropout": share,
        "feedforward_dropout": share,
        "tie": "none" if own else "three",
        "scale_output": _scaled(config),
        **FIXED,
    }


FIXED: dict[str, Any] = {
    "norm": "rms",
    "norm_place": "pre",
    "positions": "relative",
    "biases": False,
    "scale_scores": False,
    "scale_embedding": False,
}
"""What all models of the kind have in common."""


def _scaled(config: Fields) -> bool:
    """Whether what the decoder says is divided by √d_model before the output: in 1.0, where the table is shared."""
    return config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", True))


def config(model: TransformerSection, pieces: int) -> dict[str, Any]:
    """Their ``config.json``.

    Raises:
        UsageError: a field that T5 has no form for.
    """
    demand(model, "T5", **FIXED, tie=("none", "three"), decoder_norm=(None, "rms"), value_size=model.key_size)
    demand(model, "T5", activation=tuple(THEIRS), scale_output=model.tie == "three")
    return {
        "model_type": "t5",
        "architectures": [*TASKS],
        "is_encoder_decoder": True,
        "vocab_size": pieces,
        "num_layers": model.encoder_layers,
        "num_decoder_layers": model.decoder_layers,
        "d_model": model.d_model,
        "d_ff": model.d_ff,
        "num_heads": model.heads,
        "d_kv": model.key_size,
        "feed_forward_proj": THEIRS[model.activation],
        "relative_attention_num_buckets": model.relative_buckets,
        "relative_attention_max_distance": model.relative_distance,
        "layer_norm_epsilon": model.norm_epsilon,
        "dropout_rate": model.dropout,
        "tie_word_embeddings": model.tie == "three",
    }


def told(config: Fields) -> dict[str, Any]:
    """What ``config.json`` tells the table of names: the row with which the decoder starts.

    Raises:
        RegardError: there is no such row.
    """
    name = "pad_token_id" if config.get("decoder_start_token_id") is None else "decoder_start_token_id"
    start = config.whole(name, PAD, least=0)
    if start >= config.whole("vocab_size"):
        raise RegardError(f"{name} {start} is none of its pieces", config.where)
    return {"start": start}


def rows(model: TransformerSection, task: str, *, own: bool = False, start: int = PAD) -> list[Row]:
    """The table of names; the row behind the pieces, our start symbol's, is a copy of the row that starts there.

    ``own``: it is a row of its own there too, the last one; so it is where we trained the model.
    """
    row_of = None if own else start
    if model.tie == "three":
        table = [row("shared.weight", "encoder.input.tokens.weight", form=Started(row_of))]
    else:
        read = [f"{side}.input.tokens.weight" for side in ("encoder", "decoder")]
        table = [row("shared.weight", *read, form=Started(row_of, copies=2))]
        table.append(row("lm_head.weight", "output.weight", form=Started(row_of)))
    for side, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        relative = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        table.append(row(relative, f"{side}.input.positions.weight"))
        table += affine(f"{side}.final_layer_norm", f"{side}.final{_inner(model, side)}", bias=False)
        for layer in range(layers):
            table += _layer(model, side, layer)
    return table


def _inner(model: TransformerSection, side: str) -> str:
    return ".norm" if side == "decoder" and model.scale_output else ""


def _layer(model: TransformerSection, side: str, layer: int) -> list[Row]:
    theirs, ours = f"{side}.block.{layer}.layer", f"{side}.layers.{layer}"
    sublayers = [("SelfAttention", "attention"), ("EncDecAttention", "cross")][: 2 if side == "decoder" else 1]
    table = []
    for place, (their_name, our_name) in enumerate(sublayers):
        for letter, name in (("q", "query"), ("k", "key"), ("v", "value"), ("o", "output")):
            table += affine(f"{theirs}.{place}.{their_name}.{letter}", f"{ours}.{our_name}.{name}", bias=False)
        table += affine(f"{theirs}.{place}.layer_norm", f"{ours}.{our_name}_residual.norm", bias=False)
    last = f"{theirs}.{len(sublayers)}"
    gated = model.activation.startswith("gated")
    inner = [("wi_0", "inner"), ("wi_1", "gate")] if gated else [("wi", "inner")]
    for their_name, our_name in [*inner, ("wo", "outer")]:
        table += affine(f"{last}.DenseReluDense.{their_name}", f"{ours}.feedforward.{our_name}", bias=False)
    return table + affine(f"{last}.layer_norm", f"{ours}.feedforward_residual.norm", bias=False)
