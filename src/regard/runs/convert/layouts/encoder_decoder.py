"""Encoder-decoders in Hugging Face's names: T5 [Raffel20]; Marian (post-norm) and Pegasus (pre-norm) [Vaswani17 §3]."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.config import Recipe, TransformerSection
from regard.nn.positions import sinusoids
from regard.runs.convert.hub import FLAG, NATURAL, POSITIVE, SHARE, WHOLE, Fields
from regard.runs.convert.layouts.format import (
    ACTIVATIONS,
    PAD,
    PURPOSE,
    ConfigField,
    Format,
    InitialTensor,
    Obstacle,
    Reordered,
    Row,
    affine,
    misfits,
    odd_heads,
    row,
)
from regard.system.errors import RegardError

PREFIXED = "text-to-text"
"""Our word for several tasks that prefixes name."""
TABLES = ("encoder.input.tokens.weight", "decoder.input.tokens.weight")
"""Our tables of what is read."""
SHARED_TABLE = "model.shared.weight"
BIAS, PLACES = "final_logits_bias", "model.{}.embed_positions.weight"
"""Tensors that are no weights of ours: what is added to the scores, and sinusoids."""
NEVER = -1e4
"""The bias of a symbol that is never written: no probability is left to it, in half precision too."""
ROOM = 1024
"""Places that sinusoids are made for there, at least."""


def _sides(model: TransformerSection) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Encoder and decoder: the name, the layers, and our names of a layer's attention."""
    yield "encoder", model.encoder_layers, ("attention",)
    yield "decoder", model.decoder_layers, ("attention", "cross")


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
    plain: ClassVar = {**fixed, "decoder_norm": (None, "rms")}
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
            table = [row("shared.weight", TABLES[0], form=InitialTensor(start))]
        else:
            table = [row("shared.weight", *TABLES, form=InitialTensor(start, copies=2))]
            table.append(row("lm_head.weight", "output.weight", form=InitialTensor(start)))
        gate = [("wi_0", "inner"), ("wi_1", "gate")] if model.activation.startswith("gated") else [("wi", "inner")]
        for side, layers, sublayers in _sides(model):
            relative = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
            table.append(row(relative, f"{side}.input.positions.weight"))
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


class Marian(Format):
    """The paper's model, but for the order of the sinusoids: there all sines come before all cosines.

    Nothing in the model asks for the place of an entry of the residual stream, so all matrices that read it or write to
    it are written with their rows or columns in that order, and what is computed stays the same.

    The row after the pieces, the start symbol's, is ``<pad>`` there, of zeros as here, and must never be written.
    Marian models are known for that everywhere; a Pegasus has a bias for it.
    """

    model_type, kind, family = "marian", "Marian", "transformer"
    tasks: ClassVar = {"MarianMTModel": "translation"}
    keys = (
        ConfigField("encoder_layers", "encoder_layers"),
        ConfigField("decoder_layers", "decoder_layers"),
        ConfigField("d_model", "d_model"),
        ConfigField("d_ff", "encoder_ffn_dim"),
        ConfigField("heads", "encoder_attention_heads"),
        ConfigField("activation", "activation_function", ACTIVATIONS, "gelu"),
        ConfigField("scale_embedding", "scale_embedding", FLAG, False),
        ConfigField("dropout", "dropout", SHARE, 0.1),
        ConfigField("attention_dropout", "attention_dropout", SHARE, 0.0),
        ConfigField("feedforward_dropout", "activation_dropout", SHARE, 0.0),
    )
    plain: ClassVar = {
        "norm_place": "post",
        "norm": "layer",
        "positions": "sinusoidal",
        "biases": True,
        "scale_scores": True,
        "tie": "three",
        "scale_output": False,
        "decoder_norm": (None, "layer"),
        "norm_epsilon": 1e-5,
    }
    embeddings = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    copies: ClassVar = dict.fromkeys(embeddings, SHARED_TABLE)
    spare = re.compile(rf"{BIAS}|model\.(en|de)coder\.embed_positions\.weight")

    @property
    def _settings(self) -> dict[str, object]:
        """Fields that have one value in all files of the kind."""
        return {
            "normalize_before": self.plain["norm_place"] == "pre",
            "normalize_embedding": False,
            "static_position_embeddings": True,
            "share_encoder_decoder_embeddings": True,
            "tie_word_embeddings": True,
        }

    def section(self, config: Fields, tensors: Mapping[str, Tensor]) -> dict[str, object]:
        config.only(**self._settings, add_bias_logits=False)
        if (decoder := config.parse("decoder_ffn_dim", WHOLE)) != config.parse("encoder_ffn_dim", WHOLE):
            raise RegardError(f"decoder_ffn_dim {decoder} is not supported, only the encoder's is", config.where)
        heads = config.parse("decoder_attention_heads", WHOLE)
        own = {} if heads == config.parse("encoder_attention_heads", WHOLE) else {"decoder_heads": heads}
        added = tensors.get(BIAS)
        if added is not None and added.flatten()[:-1].any():  # the last is the start symbol's, which is never written
            raise RegardError(f"{BIAS!r} is a bias on the output logits, which is not supported", config.where)
        for name in map(PLACES.format, ("encoder", "decoder")):
            if name in tensors and not _are_sinusoids(tensors[name]):
                message = f"{name!r} holds other positions than sinusoids, which are not supported"
                raise RegardError(message, config.where)
        return super().section(config, tensors) | own | {"norm_place": self.plain["norm_place"]}

    def start_row(self, config: Fields, generation: Fields) -> int | None:
        """The last one.

        Raises:
            RegardError: it is another.
        """
        last = config.parse("vocab_size", WHOLE) - 1
        config.only(decoder_vocab_size=last + 1)
        for name in ("decoder_start_token_id", "pad_token_id"):
            if (start := config.parse(name, NATURAL)) != last or not last:
                raise RegardError(f"{name} {start} is not supported, only {last}, the last row, is", config.where)
        return None

    def obstacles(self, recipe: Recipe, weights: Mapping[str, Tensor] | None = None) -> list[Obstacle]:
        model = recipe.model
        assert isinstance(model, TransformerSection)
        own = odd_heads(model)
        if own and model.decoder_heads not in (None, model.heads):  # the sizes that fit the encoder fit as many heads
            own.append(Obstacle("model.decoder_heads", model.decoder_heads, str(model.heads)))
        if not own and odd_heads(model.decoder):
            fits = f"a divisor of {model.d_model}, with model.d_k and model.d_v not set,"
            own = [Obstacle("model.decoder_heads", model.decoder_heads, fits)]
        return super().obstacles(recipe) + own

    def config(self, recipe: Recipe, pieces: int) -> dict[str, object]:
        found = super().config(recipe, pieces)
        assert isinstance(recipe.model, TransformerSection)
        longest = recipe.data.max_tokens + recipe.decoding.max_extra + 1
        return {
            **found,
            **self._settings,
            "decoder_ffn_dim": found["encoder_ffn_dim"],
            "decoder_attention_heads": recipe.model.decoder.heads,
            "is_encoder_decoder": True,
            "decoder_vocab_size": pieces,
            "max_position_embeddings": max(ROOM, longest),
            "forced_eos_token_id": None,
            "bos_token_id": None,
        }

    def rows(self, model: TransformerSection, task: str, start: int | None = None) -> list[Row]:
        """Entries of the residual stream in their order; the start symbol's row is always its own."""
        order = _order(model.d_model)
        reading, writing = Reordered(order, -1), Reordered(order, 0)

        def reads(theirs: str, ours: str) -> list[Row]:
            """The columns of its matrix are in that order, its bias is not of the stream."""
            return [row(f"{theirs}.weight", f"{ours}.weight", form=reading), row(f"{theirs}.bias", f"{ours}.bias")]

        table = [row(SHARED_TABLE, TABLES[0], form=reading)]
        for side, layers, sublayers in _sides(model):
            for layer in range(layers):
                theirs, ours = f"model.{side}.layers.{layer}", f"{side}.layers.{layer}"
                for name in sublayers:
                    part = f"{theirs}.{'encoder' if name == 'cross' else 'self'}_attn"
                    for letter, read in (("q", "query"), ("k", "key"), ("v", "value")):
                        table += reads(f"{part}.{letter}_proj", f"{ours}.{name}.{read}")
                    table += affine(f"{part}.out_proj", f"{ours}.{name}.output", form=writing)
                    table += affine(f"{part}_layer_norm", f"{ours}.{name}_residual.norm", form=writing)
                table += reads(f"{theirs}.fc1", f"{ours}.feedforward.inner")
                table += affine(f"{theirs}.fc2", f"{ours}.feedforward.outer", form=writing)
                table += affine(f"{theirs}.final_layer_norm", f"{ours}.feedforward_residual.norm", form=writing)
            if model.norm_place == "pre":
                table += affine(f"model.{side}.layer_norm", f"{side}.final", form=writing)
        return table

    def further(self, model: TransformerSection, config: Mapping[str, Any]) -> dict[str, Tensor]:
        """What is added to the scores."""
        return {BIAS: torch.zeros(1, config["vocab_size"])}


class Pegasus(Marian):
    """With pre-norm; sinusoids, and the bias by which the start symbol is never written, stand in the file."""

    model_type, kind = "pegasus", "Pegasus"
    plain: ClassVar = {**Marian.plain, "norm_place": "pre"}
    tasks: ClassVar = {"PegasusForConditionalGeneration": "translation"}

    def further(self, model: TransformerSection, config: Mapping[str, Any]) -> dict[str, Tensor]:
        found = super().further(model, config)
        found[BIAS][0, config["pad_token_id"]] = NEVER
        table = sinusoids(config["max_position_embeddings"], model.d_model)[:, list(_order(model.d_model))]
        return found | {PLACES.format(side): table.clone().contiguous() for side in ("encoder", "decoder")}


def _order(d_model: int) -> tuple[int, ...]:
    """Our entries of the stream in their order."""
    return (*range(0, d_model, 2), *range(1, d_model, 2))


def _are_sinusoids(held: Tensor) -> bool:
    if held.dim() != 2 or not held.is_floating_point():
        return False
    table = sinusoids(len(held), held.shape[1])[:, list(_order(held.shape[1]))]
    return torch.allclose(held.float(), table.float(), rtol=0.0, atol=1e-5)
