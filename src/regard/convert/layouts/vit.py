"""ViT in Hugging Face's names [Dosovitskiy21]: the patch projection is a convolution kernel there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from regard.config import Recipe, VitSection
from regard.convert.config_fields import ACTIVATIONS, THEIRS, Fields
from regard.convert.layouts.names import Row, Shaped, affine, row
from regard.convert.obstacles import Obstacle, misfits, odd_heads
from regard.system.errors import RegardError

TASKS = {"ViTForImageClassification": "image-classification"}
"""Their architectures to what they are for."""
SILENT = re.compile(r"vit\.embeddings\.mask_token|vit\.pooler\..*")
"""Tensors that say nothing here."""


def section(config: Fields, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The values of our model section."""
    config.only(qkv_bias=True)
    height, width = config.pair("image_size", 224)
    tall, patch = config.pair("patch_size", 16)
    if tall != patch:
        raise RegardError(f"patch_size {tall} x {patch} is not supported, only squares are", config.where)
    return {
        "family": "vit",
        "layers": config.whole("num_hidden_layers"),
        "height": height,
        "width": width,
        "channels": config.whole("num_channels", 3),
        "patch": patch,
        "d_model": config.whole("hidden_size"),
        "d_ff": config.whole("intermediate_size"),
        "heads": config.whole("num_attention_heads"),
        "activation": config.word("hidden_act", ACTIVATIONS, "gelu"),
        "norm_epsilon": config.positive("layer_norm_eps", 1e-12),
        "dropout": config.share("hidden_dropout_prob", 0.0),
        "attention_dropout": config.share("attention_probs_dropout_prob", 0.0),
    }


def obstacles(recipe: Recipe) -> list[Obstacle]:
    """The values of a recipe that ViT has no form for."""
    model = recipe.model
    assert isinstance(model, VitSection)
    plain = {"norm": "layer", "norm_place": "pre", "positions": "learned", "biases": True, "scale_scores": True}
    return misfits(model, **plain, activation=tuple(THEIRS), pool="first") + odd_heads(model)


def config(recipe: Recipe, pieces: int) -> dict[str, Any]:
    """Their ``config.json``; there are no pieces."""
    model = recipe.model
    assert isinstance(model, VitSection)
    size = model.height if model.height == model.width else [model.height, model.width]
    return {
        "model_type": "vit",
        "num_hidden_layers": model.layers,
        "image_size": size,
        "num_channels": model.channels,
        "patch_size": model.patch,
        "hidden_size": model.d_model,
        "intermediate_size": model.d_ff,
        "num_attention_heads": model.heads,
        "hidden_act": THEIRS[model.activation],
        "layer_norm_eps": model.norm_epsilon,
        "hidden_dropout_prob": model.dropout,
        "attention_probs_dropout_prob": model.attention_dropout,
        "qkv_bias": True,
    }


def rows(model: VitSection, task: str) -> list[Row]:
    """The table of names."""
    d_model, places = model.d_model, 1 + model.patches
    kernel = (d_model, model.channels, model.patch, model.patch)
    matrix = Shaped((d_model, model.channels * model.patch**2), kernel)
    table = [
        row("vit.embeddings.cls_token", "encoder.input.first", form=Shaped((d_model,), (1, 1, d_model))),
        row(
            "vit.embeddings.position_embeddings",
            "encoder.input.positions.weight",
            form=Shaped((places, d_model), (1, places, d_model)),
        ),
        row("vit.embeddings.patch_embeddings.projection.weight", "encoder.input.project.weight", form=matrix),
        row("vit.embeddings.patch_embeddings.projection.bias", "encoder.input.project.bias"),
    ]
    for layer in range(model.layers):
        theirs, ours = f"vit.encoder.layer.{layer}", f"encoder.layers.{layer}"
        for name in ("query", "key", "value"):
            table += affine(f"{theirs}.attention.attention.{name}", f"{ours}.attention.{name}")
        table += affine(f"{theirs}.attention.output.dense", f"{ours}.attention.output")
        table += affine(f"{theirs}.layernorm_before", f"{ours}.attention_residual.norm")
        table += affine(f"{theirs}.intermediate.dense", f"{ours}.feedforward.inner")
        table += affine(f"{theirs}.output.dense", f"{ours}.feedforward.outer")
        table += affine(f"{theirs}.layernorm_after", f"{ours}.feedforward_residual.norm")
    return table + affine("vit.layernorm", "encoder.final") + affine("classifier", "head.classes")
