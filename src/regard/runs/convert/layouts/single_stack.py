"""Models of one stack in Hugging Face's names: BERT [Devlin19], GPT-2 [Radford19] and ViT [Dosovitskiy21]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from regard.config import TASKS, BertSection, GptSection, Recipe, VitSection
from regard.runs.convert.hub import PAIR, POSITIVE, SHARE, TEXT, WHOLE, Fields
from regard.runs.convert.layouts.format import (
    ACTIVATIONS,
    PAD,
    PURPOSE,
    Chunks,
    ConfigField,
    Format,
    Obstacle,
    Row,
    Shaped,
    affine,
    misfits,
    odd_heads,
)
from regard.system.errors import RegardError

PAIRS = "sentence-pairs"
"""Our word for two texts."""
OF_PAIRS = (PAIRS, "mnli", "mrpc", "qnli", "qqp", "rte", "stsb", "sts-b", "wnli")
"""What stands there for two texts: our word, and GLUE's tasks of two."""
PLAIN = {"positions": "learned", "first_position": 0, "biases": True, "scale_scores": True}
ENCODER_KEYS = (
    ConfigField("layers", "num_hidden_layers"),
    ConfigField("d_model", "hidden_size"),
    ConfigField("d_ff", "intermediate_size"),
    ConfigField("heads", "num_attention_heads"),
    ConfigField("activation", "hidden_act", ACTIVATIONS, "gelu"),
    ConfigField("norm_epsilon", "layer_norm_eps", POSITIVE, 1e-12),
)
CLASSES = affine("classifier", "head.classes")
_POOLER = affine("bert.pooler.dense", "head.dense")


_ALIKE = {
    "attention.output.dense": "attention.output",
    "intermediate.dense": "feedforward.inner",
    "output.dense": "feedforward.outer",
}
"""What BERT and ViT call projections of a layer."""


def _layers(theirs: str, count: int, names: Mapping[str, str]) -> list[Row]:
    """The rows of an encoder's layers, by the names of their norms and projections."""
    table: list[Row] = []
    for layer in range(count):
        for name, own in names.items():
            table += affine(f"{theirs}.{layer}.{name}", f"encoder.layers.{layer}.{own}")
    return table


class Bert(Format):
    """The encoder, and the heads for masked words, classes and tags."""

    model_type, kind, family = "bert", "BERT", "bert"
    tasks: ClassVar = {
        "BertForMaskedLM": "masked-lm",
        "BertForPreTraining": "masked-lm",
        "BertForSequenceClassification": "classification",
        "BertForTokenClassification": "tagging",
        "BertModel": "encoding",
    }
    keys: tuple[ConfigField, ...] = (
        *ENCODER_KEYS,
        ConfigField("max_positions", "max_position_embeddings"),
        ConfigField("segments", "type_vocab_size", WHOLE, 2),
        ConfigField("dropout", "hidden_dropout_prob", SHARE, 0.1),
        ConfigField("attention_dropout", "attention_probs_dropout_prob", SHARE, 0.1),
    )
    plain: ClassVar = {"norm": "layer", "norm_place": "post", **PLAIN, "embedding_norm": True}
    prefix = "bert."
    heads: tuple[str, ...] = ("cls.", "classifier.")
    silent = re.compile(r"bert\.embeddings\.(position|token_type)_ids|cls\.seq_relationship\..*")
    """Counters, and the head of BERT's second task, which we do not have."""
    spare = re.compile(r"bert\.pooler\.dense\.(weight|bias)|cls\..*")
    """The pooler below another head, another head below the pooler."""
    copies: ClassVar = {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }
    outputs: ClassVar = {"masked-lm": "cls.predictions.decoder.weight"}
    old: ClassVar = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    head_rows: ClassVar[Mapping[str, list[Row]]] = {
        "words": [
            *affine("cls.predictions.transform.dense", "head.dense"),
            *affine("cls.predictions.transform.LayerNorm", "head.norm"),
            Row("cls.predictions.bias", "head.bias"),
        ],
        "classes": _POOLER + CLASSES,
        "tags": CLASSES,
        "nothing": _POOLER,
    }
    """Heads on the encoder, by what they give."""
    pooler_activation = "tanh"
    stack = "encoder.layer"
    layer_names: ClassVar[Mapping[str, str]] = {
        **{f"attention.self.{name}": f"attention.{name}" for name in ("query", "key", "value")},
        "attention.output.LayerNorm": "attention_residual.norm",
        "output.LayerNorm": "feedforward_residual.norm",
        **_ALIKE,
    }
    """The layers' place in :attr:`prefix`, and the names of their norms and projections to ours."""

    def section(self, config: Fields, tensors: Mapping[str, Tensor]) -> dict[str, object]:
        bare = not any(name.startswith(self.heads) for name in tensors)
        config.only(position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
        return {
            **super().section(config, tensors),
            "pooler": not bare or f"{self.prefix}pooler.dense.weight" in tensors,
        }

    def obstacles(self, recipe: Recipe, weights: Mapping[str, Tensor] | None = None) -> list[Obstacle]:
        model = recipe.model
        assert isinstance(model, BertSection)
        found = super().obstacles(recipe)
        found += self._odd_segments(model, recipe.info.texts)
        if model.word_features:
            found.append(Obstacle("model.word_features", model.word_features, "0", f"{self.kind} reads pieces alone"))
        if recipe.classification.ngrams:
            found.append(Obstacle("classification.ngrams", True, "false", f"{self.kind} has no n-grams"))
        found += odd_heads(model)
        if recipe.info.has_labels or (recipe.info.writes == "nothing" and model.pooler):
            found += misfits(model, pool="first")
        if recipe.info.writes == "classes":
            found += misfits(model, pooler=True)
        if recipe.info.writes == "classes" or (recipe.info.writes == "nothing" and model.pooler):
            found += misfits(model, pooler_activation=self.pooler_activation)
        if recipe.tagging.crf:
            why = f"{self.kind} has no form for tags that are scored as whole sequences"
            found.append(Obstacle("tagging.crf", True, "false", why))
        return found

    def _odd_segments(self, model: BertSection, texts: int) -> list[Obstacle]:
        """Segments that do not tell so many texts apart as it does."""
        return [Obstacle("model.segments", model.segments, str(texts))] if model.segments < texts else []

    def config(self, recipe: Recipe, pieces: int) -> dict[str, object]:
        said = {"position_embedding_type": "absolute"}  # without it CTranslate2 does not read the file
        if recipe.info.texts > 1:
            said[PURPOSE] = recipe.task
        return super().config(recipe, pieces) | said

    def architecture(self, task: str) -> str:
        return super().architecture("classification" if TASKS[task].writes == "classes" else task)

    def task(self, architecture: str, config: Fields) -> str:
        """Our task of a class of theirs: one that reads two texts says so by what it was fine-tuned for."""
        found = super().task(architecture, config)
        two = TASKS[found].writes == "classes" and config.parse(PURPOSE, TEXT, "one text").lower() in OF_PAIRS
        return PAIRS if two else found

    def rows(self, model: BertSection, task: str, start: int | None = PAD) -> list[Row]:
        table = [
            Row(f"{self.prefix}embeddings.word_embeddings.weight", "encoder.input.tokens.weight"),
            Row(f"{self.prefix}embeddings.position_embeddings.weight", "encoder.input.positions.weight"),
        ]
        if model.segments:
            table.append(Row(f"{self.prefix}embeddings.token_type_embeddings.weight", "encoder.input.segments.weight"))
        table += affine(f"{self.prefix}embeddings.LayerNorm", "encoder.input.norm")
        table += _layers(self.prefix + self.stack, model.layers, self.layer_names)
        writes = TASKS[task].writes
        return table + (self.head_rows.get(writes, []) if writes != "nothing" or model.pooler else [])


class Gpt2(Format):
    """Transposed matrices; queries, keys and values in one."""

    model_type, kind, family = "gpt2", "GPT-2", "gpt"
    tasks: ClassVar = {"GPT2LMHeadModel": "language-model", "GPT2Model": "language-model"}
    """The output is the table, so the bare one is a language model too."""
    keys = (
        ConfigField("layers", "n_layer"),
        ConfigField("d_model", "n_embd"),
        ConfigField("d_ff", "n_inner"),
        ConfigField("heads", "n_head"),
        ConfigField("activation", "activation_function", ACTIVATIONS, "gelu_new"),
        ConfigField("max_positions", "n_positions"),
        ConfigField("norm_epsilon", "layer_norm_epsilon", POSITIVE, 1e-5),
        ConfigField("dropout", "resid_pdrop", SHARE, 0.1),
        ConfigField("attention_dropout", "attn_pdrop", SHARE, 0.1),
    )
    plain: ClassVar = {"norm": "layer", "norm_place": "pre", **PLAIN}
    prefix = "transformer."
    heads = ("lm_head.",)
    silent = re.compile(r"transformer\.h\.\d+\.attn\.(masked_)?bias")
    """Mask buffers that old files hold in addition to the weights."""
    copies: ClassVar = {"lm_head.weight": "transformer.wte.weight"}
    outputs: ClassVar = {"language-model": "lm_head.weight"}

    def section(self, config: Fields, tensors: Mapping[str, Tensor]) -> dict[str, object]:
        config.only(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
        places = None if config.get("n_ctx") is None else config.parse("n_ctx", WHOLE)
        return super().section(config.fill(n_inner=4 * config.parse("n_embd", WHOLE), n_positions=places), tensors)

    def obstacles(self, recipe: Recipe, weights: Mapping[str, Tensor] | None = None) -> list[Obstacle]:
        assert isinstance(recipe.model, GptSection)
        return super().obstacles(recipe) + odd_heads(recipe.model)

    def config(self, recipe: Recipe, pieces: int) -> dict[str, object]:
        found = super().config(recipe, pieces)
        return {**found, "embd_pdrop": found["resid_pdrop"], "tie_word_embeddings": True}

    def rows(self, model: GptSection, task: str, start: int | None = PAD) -> list[Row]:
        table = [
            Row("transformer.wte.weight", "decoder.input.tokens.weight"),
            Row("transformer.wpe.weight", "decoder.input.positions.weight"),
        ]
        one, three = Chunks(1, transposed=True), Chunks(3, transposed=True)
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


class Vit(Format):
    """The patch projection is the kernel of a convolution there."""

    model_type, kind, family = "vit", "ViT", "vit"
    tasks: ClassVar = {"ViTForImageClassification": "image-classification"}
    keys = (
        *ENCODER_KEYS,
        ConfigField("channels", "num_channels", WHOLE, 3),
        ConfigField("dropout", "hidden_dropout_prob", SHARE, 0.0),
        ConfigField("attention_dropout", "attention_probs_dropout_prob", SHARE, 0.0),
    )
    plain: ClassVar = {"norm": "layer", "norm_place": "pre", **PLAIN, "pool": "first"}
    prefix = "vit."
    heads = ("classifier.",)
    silent = re.compile(r"vit\.embeddings\.mask_token|vit\.pooler\..*")

    def section(self, config: Fields, tensors: Mapping[str, Tensor]) -> dict[str, object]:
        config.only(qkv_bias=True)
        height, width = config.parse("image_size", PAIR, 224)
        tall, patch = config.parse("patch_size", PAIR, 16)
        if tall != patch:
            raise RegardError(f"patch_size {tall} x {patch} is not supported, only squares are", config.where)
        return super().section(config, tensors) | {"height": height, "width": width, "patch": patch}

    def obstacles(self, recipe: Recipe, weights: Mapping[str, Tensor] | None = None) -> list[Obstacle]:
        assert isinstance(recipe.model, VitSection)
        return super().obstacles(recipe) + odd_heads(recipe.model)

    def config(self, recipe: Recipe, pieces: int) -> dict[str, object]:
        model = recipe.model
        assert isinstance(model, VitSection)
        size = model.height if model.height == model.width else [model.height, model.width]
        return super().config(recipe, pieces) | {"image_size": size, "patch_size": model.patch, "qkv_bias": True}

    def rows(self, model: VitSection, task: str, start: int | None = PAD) -> list[Row]:
        d_model, places = model.d_model, 1 + model.patches
        kernel = (d_model, model.channels, model.patch, model.patch)
        matrix = Shaped((d_model, model.channels * model.patch**2), kernel)
        first, positions = Shaped((d_model,), (1, 1, d_model)), Shaped((places, d_model), (1, places, d_model))
        table = [
            Row("vit.embeddings.cls_token", "encoder.input.first", form=first),
            Row("vit.embeddings.position_embeddings", "encoder.input.positions.weight", form=positions),
            Row("vit.embeddings.patch_embeddings.projection.weight", "encoder.input.project.weight", form=matrix),
            Row("vit.embeddings.patch_embeddings.projection.bias", "encoder.input.project.bias"),
        ]
        names = {f"attention.attention.{name}": f"attention.{name}" for name in ("query", "key", "value")}
        names |= {"layernorm_before": "attention_residual.norm", "layernorm_after": "feedforward_residual.norm"}
        table += _layers("vit.encoder.layer", model.layers, {**names, **_ALIKE})
        return table + affine("vit.layernorm", "encoder.final") + affine("classifier", "head.classes")
