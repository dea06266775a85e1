"""What differs from BERT in RoBERTa [Liu19], XLM-R [Conneau20], CamemBERT [Martin20] and DistilBERT [Sanh19]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from regard.config import BertSection, Recipe
from regard.runs.convert.hub import NATURAL, SHARE, Fields
from regard.runs.convert.layouts.format import ACTIVATIONS, ConfigField, Obstacle, Row, affine, misfits
from regard.runs.convert.layouts.single_stack import CLASSES, Bert
from regard.system.errors import RegardError
from regard.text.tokenizers.vocabulary import AnyTokenizer

_POOLER = affine("roberta.pooler.dense", "head.dense")


def _tasks(name: str) -> dict[str, str]:
    """Their classes of an encoder of a name to our tasks."""
    heads = {"ForMaskedLM": "masked-lm", "ForSequenceClassification": "classification"}
    heads |= {"ForTokenClassification": "tagging", "Model": "encoding"}
    return {f"{name}{head}": task for head, task in heads.items()}


class Roberta(Bert):
    """Positions count from the place after the padding symbol's; two texts are one segment, with two ends between."""

    model_type, kind = "roberta", "RoBERTa"
    tasks: ClassVar = _tasks("Roberta")
    plain: ClassVar = {name: value for name, value in Bert.plain.items() if name != "first_position"}
    prefix = "roberta."
    heads = ("lm_head.", "classifier.")
    silent = re.compile(r"roberta\.embeddings\.(position|token_type)_ids")
    spare = re.compile(r"roberta\.pooler\.dense\.(weight|bias)|lm_head\..*")
    copies: ClassVar = {
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }
    outputs: ClassVar = {"masked-lm": "lm_head.decoder.weight"}
    head_rows: ClassVar = {
        "words": [
            *affine("lm_head.dense", "head.dense"),
            *affine("lm_head.layer_norm", "head.norm"),
            Row("lm_head.bias", "head.bias"),
        ],
        "classes": affine("classifier.dense", "head.dense") + affine("classifier.out_proj", "head.classes"),
        "tags": CLASSES,
        "nothing": _POOLER,
    }

    def section(self, config: Fields, tensors: Mapping[str, Tensor]) -> dict[str, object]:
        found, first = super().section(config, tensors), config.parse("pad_token_id", NATURAL, 1) + 1
        if found["activation"] != "gelu" and "lm_head.dense.weight" in tensors:
            raise RegardError("has another hidden_act than gelu, which its head for masked words has", config.where)
        places = found["max_positions"]
        assert isinstance(places, int)
        if places <= first:
            raise RegardError(f"pad_token_id {first - 1} leaves no place of {places} positions", config.where)
        return {**found, "first_position": first, "max_positions": places - first}

    def obstacles(self, recipe: Recipe, weights: Mapping[str, Tensor] | None = None) -> list[Obstacle]:
        found, model = super().obstacles(recipe, weights), recipe.model
        if recipe.info.writes == "words":
            found += misfits(model, activation="gelu")
        return found

    def odd_tokenizer(self, recipe: Recipe, tokenizer: AnyTokenizer | None) -> list[Obstacle]:
        """Positions that begin elsewhere than behind the padding symbol."""
        assert isinstance(recipe.model, BertSection)
        pad, first = getattr(tokenizer, "pad", None), recipe.model.first_position
        if pad == first - 1:
            return []
        return [Obstacle("model.first_position", first, "a tokenizer whose padding symbol is the one before it")]

    def _odd_segments(self, model: BertSection, texts: int) -> list[Obstacle]:
        allowed = (1,) if texts > 1 else tuple(range(1, max(2, model.segments + 1)))
        return misfits(model, segments=allowed)

    def config(self, recipe: Recipe, pieces: int) -> dict[str, object]:
        model = recipe.model
        assert isinstance(model, BertSection)
        first = model.first_position
        own = {"pad_token_id": first - 1, "max_position_embeddings": model.max_positions + first}
        return super().config(recipe, pieces) | own


class XlmRoberta(Roberta):
    """The same under another name; it goes out as RoBERTa."""

    model_type, kind = "xlm-roberta", "XLM-R"
    tasks: ClassVar = _tasks("XLMRoberta")


class Camembert(Roberta):
    """The same under another name; it goes out as RoBERTa."""

    model_type, kind = "camembert", "CamemBERT"
    tasks: ClassVar = _tasks("Camembert")


class DistilBert(Bert):
    """No segments and no pooler, but a dense layer with ReLU before classes; its sinusoids stand in the file."""

    model_type, kind = "distilbert", "DistilBERT"
    tasks: ClassVar = _tasks("DistilBert")
    keys = (
        ConfigField("layers", "n_layers"),
        ConfigField("d_model", "dim"),
        ConfigField("d_ff", "hidden_dim"),
        ConfigField("heads", "n_heads"),
        ConfigField("activation", "activation", ACTIVATIONS, "gelu"),
        ConfigField("max_positions", "max_position_embeddings"),
        ConfigField("dropout", "dropout", SHARE, 0.1),
        ConfigField("attention_dropout", "attention_dropout", SHARE, 0.1),
    )
    plain: ClassVar = {**Bert.plain, "segments": 0, "norm_epsilon": 1e-12}
    prefix = "distilbert."
    heads = ("vocab_", "pre_classifier.", "classifier.")
    silent = re.compile(r"distilbert\.embeddings\.position_ids")
    spare = re.compile(r"vocab_.*|pre_classifier\..*")
    copies: ClassVar = {"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"}
    outputs: ClassVar = {"masked-lm": "vocab_projector.weight"}
    head_rows: ClassVar = {
        "words": [
            *affine("vocab_transform", "head.dense"),
            *affine("vocab_layer_norm", "head.norm"),
            Row("vocab_projector.bias", "head.bias"),
        ],
        "classes": affine("pre_classifier", "head.dense") + CLASSES,
        "tags": CLASSES,
    }
    pooler_activation = "relu"
    stack = "transformer.layer"
    layer_names: ClassVar = {
        **{f"attention.{name[0]}_lin": f"attention.{name}" for name in ("query", "key", "value")},
        "attention.out_lin": "attention.output",
        "sa_layer_norm": "attention_residual.norm",
        "ffn.lin1": "feedforward.inner",
        "ffn.lin2": "feedforward.outer",
        "output_layer_norm": "feedforward_residual.norm",
    }

    def section(self, config: Fields, tensors: Mapping[str, Tensor]) -> dict[str, object]:
        fixed = {"segments": 0, "norm_epsilon": 1e-12, "pooler_activation": self.pooler_activation}
        return super().section(config, tensors) | fixed

    def obstacles(self, recipe: Recipe, weights: Mapping[str, Tensor] | None = None) -> list[Obstacle]:
        dense = misfits(recipe.model, pooler=False) if recipe.info.writes == "nothing" else []
        return super().obstacles(recipe, weights) + dense

    def _odd_segments(self, model: BertSection, texts: int) -> list[Obstacle]:
        return []
