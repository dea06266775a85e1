"""GPT-2 in Hugging Face's names [Radford19]: transposed matrices; queries, keys and values in one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from regard.config import GptSection, Recipe
from regard.convert.config_fields import ACTIVATIONS, THEIRS, Fields
from regard.convert.layouts.names import Row, Transposed, affine, row
from regard.convert.obstacles import Obstacle, misfits, odd_heads

TASKS = {"GPT2LMHeadModel": "language-model", "GPT2Model": "language-model"}
"""Their architectures to what they are for; the output is the table, so the bare one is a language model too."""
COPIES = {"lm_head.weight": "transformer.wte.weight"}
"""Tied tensors that a file may hold a second time."""
SILENT = re.compile(r"transformer\.h\.\d+\.attn\.(masked_)?bias")
"""Mask buffers that old files hold in addition to the weights."""


def section(config: Fields, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The values of our model section."""
    config.only(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    d_model = config.whole("n_embd")
    longest = "n_ctx" if config.get("n_positions") is None and config.get("n_ctx") is not None else "n_positions"
    return {
        "family": "gpt",
        "layers": config.whole("n_layer"),
        "d_model": d_model,
        "d_ff": config.whole("n_inner", 4 * d_model),
        "heads": config.whole("n_head"),
        "activation": config.word("activation_function", ACTIVATIONS, "gelu_new"),
        "max_positions": config.whole(longest),
        "norm_epsilon": config.positive("layer_norm_epsilon", 1e-5),
        "dropout": config.share("resid_pdrop", 0.1),
        "attention_dropout": config.share("attn_pdrop", 0.1),
    }


def obstacles(recipe: Recipe) -> list[Obstacle]:
    """The values of a recipe that GPT-2 has no form for."""
    model = recipe.model
    assert isinstance(model, GptSection)
    plain = {"norm": "layer", "norm_place": "pre", "positions": "learned", "biases": True, "scale_scores": True}
    return misfits(model, **plain, activation=tuple(THEIRS)) + odd_heads(model)


def config(recipe: Recipe, pieces: int) -> dict[str, Any]:
    """Their ``config.json``."""
    model = recipe.model
    assert isinstance(model, GptSection)
    return {
        "model_type": "gpt2",
        "vocab_size": pieces,
        "n_layer": model.layers,
        "n_embd": model.d_model,
        "n_inner": model.d_ff,
        "n_head": model.heads,
        "activation_function": THEIRS[model.activation],
        "n_positions": model.max_positions,
        "layer_norm_epsilon": model.norm_epsilon,
        "resid_pdrop": model.dropout,
        "embd_pdrop": model.dropout,
        "attn_pdrop": model.attention_dropout,
        "tie_word_embeddings": True,
    }


def rows(model: GptSection, task: str) -> list[Row]:
    """The table of names."""
    table = [
        row("transformer.wte.weight", "decoder.input.tokens.weight"),
        row("transformer.wpe.weight", "decoder.input.positions.weight"),
    ]
    one, three = Transposed(), Transposed(3)
    for layer in range(model.layers):
        theirs, ours = f"transformer.h.{layer}", f"decoder.layers.{layer}"
        joined = [f"{ours}.attention.{name}" for name in ("query", "key", "value")]
        table += affine(f"{theirs}.attn.c_attn", *joined, form=three)
        table += affine(f"{theirs}.attn.c_proj", f"{ours}.attention.output", form=one)
        table += affine(f"{theirs}.ln_1", f"{ours}.attention_residual.norm")
        table += affine(f"{theirs}.mlp.c_fc", f"{ours}.feedforward.inner", form=one)
        table += affine(f"{theirs}.mlp.c_proj", f"{ours}.feedforward.outer", form=one)
        table += affine(f"{theirs}.ln_2", f"{ours}.feedforward_residual.norm")
    return table + affine("transformer.ln_f", "decoder.final")
