"""T5 in Hugging Face's names [Raffel20]: 1.0 (ReLU, one shared table), and 1.1 (gated, untied output)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.config import Recipe, TransformerSection
from regard.convert.config_fields import Fields
from regard.convert.layouts.names import InitialTensor, Row, affine, row
from regard.convert.obstacles import Obstacle, misfits, two_vocabularies
from regard.system.errors import RegardError

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
PAD = 0
"""The id of T5's symbol that starts the decoder's text by default."""
TABLES = ("encoder.input.tokens.weight", "decoder.input.tokens.weight")
"""Our tables of what is read."""


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
        **_sizes(config),
        "activation": config.word("feed_forward_proj", ACTIVATIONS, "relu"),
        "relative_buckets": config.whole("relative_attention_num_buckets", 32),
        "relative_distance": config.whole("relative_attention_max_distance", 128),
        "norm_epsilon": config.positive("layer_norm_epsilon", 1e-6),
        "dropout": share,
        "attention_dropout": share,
        "feedforward_dropout": share,
        "tie": "none" if own else "three",
        "scale_output": _scales_output(config),
        **FIXED,
    }


def _sizes(config: Fields) -> dict[str, int]:
    """The sizes of a head, if other than d_model / heads."""
    size = config.whole("d_kv")
    return {} if size * config.whole("num_heads") == config.whole("d_model") else {"d_k": size, "d_v": size}


FIXED: dict[str, Any] = {
    "norm": "rms",
    "norm_place": "pre",
    "positions": "relative",
    "biases": False,
    "scale_scores": False,
    "scale_embedding": False,
}
"""Values common to all models of the kind."""


def _scales_output(config: Fields) -> bool:
    """Whether the decoder's output is divided by √d_model before the softmax: in 1.0, where the table is shared."""
    return config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", True))


def obstacles(recipe: Recipe, weights: Mapping[str, Tensor] | None = None) -> list[Obstacle]:
    """The values of a recipe that T5 has no form for.

    What it reads with one table, a model that is not tied here reads with two, which training makes different.

    Args:
        recipe: what the model is made by.
        weights: by our names; ``None``: they are still to be trained.
    """
    model = recipe.model
    assert isinstance(model, TransformerSection)
    found = two_vocabularies(recipe) + misfits(model, **FIXED, decoder_norm=(None, "rms"))
    found += misfits(model, value_size=model.key_size, activation=tuple(THEIRS))
    shared = model.tie == "three" or (model.tie == "none" and not _different(weights or {}))
    if not shared:
        why = "T5 reads source and target with one table of embeddings, and here they are two"
        found.append(Obstacle("model.tie", model.tie, "three", why if model.tie == "none" else ""))
    return found + misfits(model, scale_output=model.tie == "three" or not shared)


def _different(weights: Mapping[str, Tensor]) -> bool:
    source, target = (weights.get(name) for name in TABLES)
    return source is None or target is None or not torch.equal(source, target)


def config(recipe: Recipe, pieces: int) -> dict[str, Any]:
    """Their ``config.json``, the start symbol's row counted among the pieces where it is one of its own."""
    model = recipe.model
    assert isinstance(model, TransformerSection)
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


def row_options(config: Fields, generation: Fields) -> dict[str, Any]:
    """Keyword arguments of :func:`rows`: the row that starts the decoder.

    A row that no piece has is the last one, and must never be written: so ``export`` has it where we trained a model.

    Raises:
        RegardError: there is no such row.
    """
    name = "pad_token_id" if config.get("decoder_start_token_id") is None else "decoder_start_token_id"
    start, rows = config.whole(name, PAD, least=0), config.whole("vocab_size")
    if start >= rows:
        raise RegardError(f"{name} {start} is none of its pieces", config.where)
    alone = start == rows - 1 and generation.get("bad_words_ids") == [[start]]
    return {"own": True} if alone else {"start": start}


def rows(model: TransformerSection, task: str, *, own: bool = False, start: int = PAD) -> list[Row]:
    """The table of names; the row after the pieces, our start symbol's, is a copy of their start row.

    ``own``: it is a row of its own there too, the last one; so it is where we trained the model.
    """
    row_of = None if own else start
    if model.tie == "three":
        table = [row("shared.weight", TABLES[0], form=InitialTensor(row_of))]
    else:
        table = [row("shared.weight", *TABLES, form=InitialTensor(row_of, copies=2))]
        table.append(row("lm_head.weight", "output.weight", form=InitialTensor(row_of)))
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
