"""T5 in Hugging Face's names [Raffel20]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from regard.config import Recipe, TransformerSection
from regard.runs.convert.hub import FLAG, NATURAL, POSITIVE, SHARE, WHOLE, Fields
from regard.runs.convert.layouts.format import (
    PAD,
    PURPOSE,
    TABLES,
    ConfigField,
    Format,
    InitialTensor,
    Obstacle,
    Row,
    affine,
    misfits,
    sides,
)
from regard.system.errors import RegardError

PREFIXED = "text-to-text"
"""Our word for several tasks that prefixes name."""


class T5(Format):
    """1.0 (ReLU, one shared table), and 1.1 (gated, untied output)."""

    model_type, kind, family = "t5", "T5", "transformer"
    tasks: ClassVar = {"T5ForConditionalGeneration": PREFIXED}
    gates: ClassVar = {
        "relu": "relu",
        "gelu": "gelu",
        "gelu_new": "gelu_tanh",
        "silu": "swish",
        "gated-gelu": "gated_gelu",
        "gated-silu": "gated_swish",
    }
    """Their words for the feed-forward to ours."""
    keys = (
        ConfigField("encoder_layers", "num_layers"),
        ConfigField("decoder_layers", "num_decoder_layers"),
        ConfigField("d_model", "d_model"),
        ConfigField("d_ff", "d_ff"),
        ConfigField("heads", "num_heads"),
        ConfigField("activation", "feed_forward_proj", gates, "relu"),
        ConfigField("relative_buckets", "relative_attention_num_buckets", WHOLE, 32),
        ConfigField("relative_distance", "relative_attention_max_distance", WHOLE, 128),
        ConfigField("norm_epsilon", "layer_norm_epsilon", POSITIVE, 1e-6),
        ConfigField("dropout", "dropout_rate", SHARE, 0.1),
    )
    fixed: ClassVar = {
        "norm": "rms",
        "norm_place": "pre",
        "positions": "relative",
        "biases": False,
        "scale_scores": False,
        "scale_embedding": False,
    }
    """Values common to all models of the kind."""
    plain: ClassVar = {**fixed, "decoder_norm": (None, "rms"), "embedding_norm": False, "output_bias": False}
    silent = re.compile(r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight")
    """Old files hold one that is never read."""
    embeddings = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
    copies: ClassVar = dict.fromkeys(embeddings, "shared.weight")
    own = ("lm_head.weight",)
    outputs: ClassVar = dict.fromkeys(tasks.values(), "lm_head.weight")

    def section(self, config: Fields, tensors: Mapping[str, Tensor]) -> dict[str, object]:
        """A file that holds an output of its own is not tied.

        In 1.0, where the table is shared, the decoder's output is divided by √d_model before the softmax.
        """
        found = super().section(config.fill(num_decoder_layers=config.get("num_layers")), tensors)
        size, heads, d_model = (config.parse(name, WHOLE) for name in ("d_kv", "num_heads", "d_model"))
        return {
            **found,
            **({} if size * heads == d_model else {"d_k": size, "d_v": size}),
            **dict.fromkeys(("attention_dropout", "feedforward_dropout"), found["dropout"]),
            "tie": "none" if "lm_head.weight" in tensors else "three",
            "scale_output": config.parse(
                "scale_decoder_outputs", FLAG, config.parse("tie_word_embeddings", FLAG, True)
            ),
            **self.fixed,
        }

    def obstacles(self, recipe: Recipe, weights: Mapping[str, Tensor] | None = None) -> list[Obstacle]:
        """What it reads with one table, an untied model reads with two here, which training makes different."""
        model = recipe.model
        assert isinstance(model, TransformerSection)
        found = super().obstacles(recipe) + misfits(model, value_size=model.key_size, decoder_heads=(None, model.heads))
        source, target = ((weights or {}).get(name) for name in TABLES)
        equal = source is not None and target is not None and torch.equal(source, target)
        shared = model.tie == "three" or (model.tie == "none" and equal)
        if not shared:
            why = "T5 reads source and target with one table of embeddings, and here they are two"
            found.append(Obstacle("model.tie", model.tie, "three", why if model.tie == "none" else ""))
        return found + misfits(model, scale_output=model.tie == "three" or not shared)

    def config(self, recipe: Recipe, pieces: int) -> dict[str, object]:
        model = recipe.model
        assert isinstance(model, TransformerSection)
        own = {"is_encoder_decoder": True, "d_kv": model.key_size, "tie_word_embeddings": model.tie == "three"}
        purpose = {PURPOSE: PREFIXED} if recipe.task == PREFIXED else {}
        return super().config(recipe, pieces) | own | purpose

    def start_row(self, config: Fields, generation: Fields) -> int | None:
        """A row that no piece has is the last one, and must never be written: so ``export`` has it where we trained.

        Raises:
            RegardError: there is no such row.
        """
        name = "pad_token_id" if config.get("decoder_start_token_id") is None else "decoder_start_token_id"
        start, rows = config.parse(name, NATURAL, PAD), config.parse("vocab_size", WHOLE)
        if start >= rows:
            raise RegardError(f"{name} {start} is none of its pieces", config.where)
        return None if start == rows - 1 and generation.get("bad_words_ids") == [[start]] else start

    def rows(self, model: TransformerSection, task: str, start: int | None = PAD) -> list[Row]:
        """The row after the pieces, our start symbol's, is a copy of their start row, or of its own there too."""
        if model.tie == "three":
            table = [Row("shared.weight", TABLES[0], form=InitialTensor(start))]
        else:
            table = [Row("shared.weight", *TABLES, form=InitialTensor(start, copies=2))]
            table.append(Row("lm_head.weight", "output.weight", form=InitialTensor(start)))
        gate = [("wi_0", "inner"), ("wi_1", "gate")] if model.activation.startswith("gated") else [("wi", "inner")]
        for side, layers, sublayers in sides(model):
            relative = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
            table.append(Row(relative, f"{side}.input.positions.weight"))
            scaled = ".norm" if side == "decoder" and model.scale_output else ""
            table += affine(f"{side}.final_layer_norm", f"{side}.final{scaled}", bias=False)
            for layer in range(layers):
                theirs, ours = f"{side}.block.{layer}.layer", f"{side}.layers.{layer}"
                for place, name in enumerate(sublayers):
                    parts = f"{theirs}.{place}.{'EncDec' if name == 'cross' else 'Self'}Attention"
                    for letter, part in (("q", "query"), ("k", "key"), ("v", "value"), ("o", "output")):
                        table += affine(f"{parts}.{letter}", f"{ours}.{name}.{part}", bias=False)
                    table += affine(f"{theirs}.{place}.layer_norm", f"{ours}.{name}_residual.norm", bias=False)
                last = f"{theirs}.{len(sublayers)}"
                for their_name, our_name in [*gate, ("wo", "outer")]:
                    table += affine(f"{last}.DenseReluDense.{their_name}", f"{ours}.feedforward.{our_name}", bias=False)
                table += affine(f"{last}.layer_norm", f"{ours}.feedforward_residual.norm", bias=False)
        return table
