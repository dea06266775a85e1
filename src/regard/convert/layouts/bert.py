"""BERT in Hugging Face's names [Devlin19]: the encoder, and the heads for masked words, classes and tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from regard.config import BertSection, Recipe
from regard.convert.config_fields import ACTIVATIONS, THEIRS, Fields
from regard.convert.layouts.names import Row, affine, row
from regard.convert.obstacles import Obstacle, misfits, odd_heads

TASKS = {
    "BertForMaskedLM": "masked-lm",
    "BertForPreTraining": "masked-lm",
    "BertForSequenceClassification": "classification",
    "BertForTokenClassification": "tagging",
    "BertModel": "encoding",
}
"""Their architectures to what they are for."""
SILENT = re.compile(r"bert\.embeddings\.(position|token_type)_ids|cls\.seq_relationship\..*")
"""Tensors that say nothing here: counters, and the head of BERT's second task, which we do not have."""
SPARE = re.compile(r"bert\.pooler\.dense\.(weight|bias)|cls\..*")
"""Tensors that may stand there without being asked: the pooler below another head, another head below the pooler."""
OLD = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
"""Names of the first releases."""
COPIES = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
"""Tied tensors that a file may hold a second time."""


def section(config: Fields, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The values of our model section."""
    bare = not any(name.startswith(("cls.", "classifier.")) for name in tensors)
    config.only(position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
    return {
        "family": "bert",
        "layers": config.whole("num_hidden_layers"),
        "d_model": config.whole("hidden_size"),
        "d_ff": config.whole("intermediate_size"),
        "heads": config.whole("num_attention_heads"),
        "activation": config.word("hidden_act", ACTIVATIONS, "gelu"),
        "max_positions": config.whole("max_position_embeddings"),
        "segments": config.whole("type_vocab_size", 2),
        "norm_epsilon": config.positive("layer_norm_eps", 1e-12),
        "dropout": config.share("hidden_dropout_prob", 0.1),
        "attention_dropout": config.share("attention_probs_dropout_prob", 0.1),
        "pooler": not bare or "bert.pooler.dense.weight" in tensors,
    }


def obstacles(recipe: Recipe) -> list[Obstacle]:
    """The values of a recipe that BERT has no form for, the head of its task among them."""
    model, task = recipe.model, recipe.task
    assert isinstance(model, BertSection)
    plain = {"norm": "layer", "norm_place": "post", "positions": "learned", "embedding_norm": True, "biases": True}
    found = misfits(model, **plain, scale_scores=True, activation=tuple(THEIRS))
    if model.segments < 1:
        found.append(Obstacle("model.segments", model.segments, "1"))
    found += odd_heads(model)
    if task in ("classification", "tagging") or (task == "encoding" and model.pooler):
        found += misfits(model, pool="first")
    if task == "classification":
        found += misfits(model, pooler=True)
    if recipe.tagging.crf:
        why = "BERT has no form for tags that are scored as whole sequences"
        found.append(Obstacle("tagging.crf", True, "false", why))
    return found


def config(recipe: Recipe, pieces: int) -> dict[str, Any]:
    """Their ``config.json`` of an encoder, its head not yet named."""
    model = recipe.model
    assert isinstance(model, BertSection)
    return {
        "model_type": "bert",
        "vocab_size": pieces,
        "num_hidden_layers": model.layers,
        "hidden_size": model.d_model,
        "intermediate_size": model.d_ff,
        "num_attention_heads": model.heads,
        "hidden_act": THEIRS[model.activation],
        "max_position_embeddings": model.max_positions,
        "position_embedding_type": "absolute",  # without it CTranslate2 does not read the file
        "type_vocab_size": model.segments,
        "layer_norm_eps": model.norm_epsilon,
        "hidden_dropout_prob": model.dropout,
        "attention_probs_dropout_prob": model.attention_dropout,
    }


def rows(model: BertSection, task: str) -> list[Row]:
    """The table of names of an encoder with the head of a task."""
    table = [
        row("bert.embeddings.word_embeddings.weight", "encoder.input.tokens.weight"),
        row("bert.embeddings.position_embeddings.weight", "encoder.input.positions.weight"),
        row("bert.embeddings.token_type_embeddings.weight", "encoder.input.segments.weight"),
        *affine("bert.embeddings.LayerNorm", "encoder.input.norm"),
    ]
    for layer in range(model.layers):
        theirs, ours = f"bert.encoder.layer.{layer}", f"encoder.layers.{layer}"
        for name in ("query", "key", "value"):
            table += affine(f"{theirs}.attention.self.{name}", f"{ours}.attention.{name}")
        table += affine(f"{theirs}.attention.output.dense", f"{ours}.attention.output")
        table += affine(f"{theirs}.attention.output.LayerNorm", f"{ours}.attention_residual.norm")
        table += affine(f"{theirs}.intermediate.dense", f"{ours}.feedforward.inner")
        table += affine(f"{theirs}.output.dense", f"{ours}.feedforward.outer")
        table += affine(f"{theirs}.output.LayerNorm", f"{ours}.feedforward_residual.norm")
    return table + (HEADS[task] if task != "encoding" or model.pooler else [])


_CLASSES = affine("classifier", "head.classes")
_POOLER = affine("bert.pooler.dense", "head.dense")
HEADS: dict[str, list[Row]] = {
    "masked-lm": [
        *affine("cls.predictions.transform.dense", "head.dense"),
        *affine("cls.predictions.transform.LayerNorm", "head.norm"),
        row("cls.predictions.bias", "head.bias"),
    ],
    "classification": _POOLER + _CLASSES,
    "tagging": _CLASSES,
    "encoding": _POOLER,
}
"""Heads on the encoder, by task."""
