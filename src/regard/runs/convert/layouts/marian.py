"""Translators in Hugging Face's names: Marian (post-norm), Pegasus (pre-norm), M2M-100, NLLB, mBART [Vaswani17 §3]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.config import Recipe, TransformerSection
from regard.nn.positions import sinusoids
from regard.runs.convert.hub import FLAG, NATURAL, SHARE, WHOLE, Fields
from regard.runs.convert.layouts.format import (
    ACTIVATIONS,
    TABLES,
    ConfigField,
    Form,
    Format,
    InitialTensor,
    Obstacle,
    Reordered,
    Row,
    affine,
    odd_heads,
    sides,
)
from regard.system.errors import RegardError
from regard.text.tokenizers.vocabulary import AnyTokenizer

SHARED_TABLE, OUTPUT = "model.shared.weight", "lm_head.weight"
SOURCE_TABLE, TARGET_TABLE = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
BIAS, PLACES = "final_logits_bias", "model.{}.embed_positions.weight"
"""What is added to the scores; and sinusoids, which are no weights of ours."""
NEVER = -1e4
"""The bias of a symbol that is never written: no probability is left to it, in half precision too."""
ROOM = 1024
"""Places that sinusoids are made for there, at least."""


@dataclass(frozen=True)
class Compose:
    """Two forms of one tensor, the first nearer to theirs."""

    theirs: Form
    ours: Form

    def inward(self, theirs: Tensor) -> list[Tensor]:
        return [part for held in self.theirs.inward(theirs) for part in self.ours.inward(held)]

    def outward(self, ours: list[Tensor]) -> Tensor:
        return self.theirs.outward([self.ours.outward(ours)])


@dataclass(frozen=True)
class OutputBias:
    """A number for each row of the table, in one line; where ``padded`` the last is the start symbol's, not ours."""

    padded: bool

    def inward(self, theirs: Tensor) -> list[Tensor]:
        bias_V = theirs.flatten()
        return [bias_V[:-1] if self.padded else bias_V]

    def outward(self, ours: list[Tensor]) -> Tensor:
        return torch.cat([ours[0], ours[0].new_zeros(int(self.padded))])[None]


class Marian(Format):
    """The paper's model, but for the order of the sinusoids: there all sines come before all cosines.

    Nothing in the model asks for the place of an entry of the residual stream, so all matrices that read it or write to
    it are written with their rows or columns in that order, and what is computed stays the same.

    The row after the pieces, the start symbol's, is ``<pad>`` there, of zeros as here, and must never be written.
    Marian models are known for that everywhere; a Pegasus has a bias for it.
    """

    model_type, kind, family = "marian", "Marian", "transformer"
    tasks: ClassVar = {"MarianMTModel": "translation"}
    keys: tuple[ConfigField, ...] = (
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
    fixed: ClassVar[Mapping[str, object]] = {"norm_place": "post", "positions": "sinusoidal"}
    """Values common to all models of the kind."""
    shared: ClassVar = {
        "norm": "layer",
        "biases": True,
        "scale_scores": True,
        "tie": "three",
        "scale_output": False,
        "decoder_norm": (None, "layer"),
        "norm_epsilon": 1e-5,
    }
    plain: ClassVar = {**fixed, **shared, "embedding_norm": False}
    settings: ClassVar[Mapping[str, object]] = {
        "normalize_before": False,
        "normalize_embedding": False,
        "static_position_embeddings": True,
    }
    """Fields that have one value in all files of the kind."""
    embeddings = (SOURCE_TABLE, TARGET_TABLE, OUTPUT)
    copies: ClassVar = dict.fromkeys(embeddings, SHARED_TABLE)
    own = embeddings
    outputs: ClassVar = {"translation": OUTPUT}
    spare = re.compile(rf"{BIAS}|model\.(en|de)coder\.embed_positions\.weights?")

    def canonical_tensors(
        self, tensors: Mapping[str, Tensor], where: str, untied: str | None = None
    ) -> dict[str, Tensor]:
        """With tables for each side, the copy that some files hold of one of them is none of the model's."""
        source, target = tensors.get(SOURCE_TABLE), tensors.get(TARGET_TABLE)
        apart = source is not None and target is not None and not torch.equal(source, target)
        if not apart:
            return super().canonical_tensors(tensors, where, untied)
        found = {name: tensor for name, tensor in tensors.items() if name != SHARED_TABLE}
        if untied is not None and untied not in found:
            raise RegardError(f"lacks {untied!r}, which its config.json says is a matrix of its own", where)
        if OUTPUT in found and untied is None and torch.equal(found[OUTPUT], found[TARGET_TABLE]):
            del found[OUTPUT]
        return found

    def section(self, config: Fields, tensors: Mapping[str, Tensor]) -> dict[str, object]:
        config.only(**self.settings, add_bias_logits=False)
        if (decoder := config.parse("decoder_ffn_dim", WHOLE)) != config.parse("encoder_ffn_dim", WHOLE):
            raise RegardError(f"decoder_ffn_dim {decoder} is not supported, only the encoder's is", config.where)
        heads = config.parse("decoder_attention_heads", WHOLE)
        own = {} if heads == config.parse("encoder_attention_heads", WHOLE) else {"decoder_heads": heads}
        self._refuse_other_positions(config, tensors)
        rows = config.parse("decoder_vocab_size", WHOLE, config.parse("vocab_size", WHOLE))
        if (added := tensors.get(BIAS)) is not None and added.shape not in ((rows,), (1, rows)):
            raise RegardError(f"{BIAS!r} has the shape {list(added.shape)}, not [1, {rows}]", config.where)
        tie = "three" if SHARED_TABLE in tensors else "two"
        if OUTPUT in tensors:
            tie = "none"
        return {**super().section(config, tensors), **own, **self.fixed, **self._output_bias(tensors), "tie": tie}

    def _output_bias(self, tensors: Mapping[str, Tensor]) -> dict[str, object]:
        """Whether the scores have a bias; the last number is the start symbol's, which is never written."""
        added = tensors.get(BIAS)
        return {"output_bias": True} if added is not None and added.flatten()[:-1].any() else {}

    def _refuse_other_positions(self, config: Fields, tensors: Mapping[str, Tensor]) -> None:
        for name in map(PLACES.format, ("encoder", "decoder")):
            if name in tensors and not _are_sinusoids(tensors[name]):
                message = f"{name!r} holds other positions than sinusoids, which are not supported"
                raise RegardError(message, config.where)

    def start_row(self, config: Fields, generation: Fields) -> int | None:
        """The last one of each table.

        Raises:
            RegardError: it is another.
        """
        last = config.parse("vocab_size", WHOLE) - 1
        target = config.parse("decoder_vocab_size", WHOLE, last + 1) - 1
        for name, row_of in (("pad_token_id", last), ("decoder_start_token_id", target)):
            if (start := config.parse(name, NATURAL)) != row_of or not row_of:
                raise RegardError(f"{name} {start} is not supported, only {row_of}, the last row, is", config.where)
        return None

    def start_piece(self, tokenizer: AnyTokenizer | None) -> int | None:
        return None

    def target_pieces(self, config: Fields, pieces: int) -> int:
        rows = config.parse("vocab_size", WHOLE)
        return pieces + config.parse("decoder_vocab_size", WHOLE, rows) - rows

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
        model = recipe.model
        assert isinstance(model, TransformerSection)
        longest = recipe.data.max_tokens + recipe.decoding.max_extra + 1
        return {
            "max_position_embeddings": max(ROOM, longest),
            **found,
            **self.settings,
            "share_encoder_decoder_embeddings": model.tie == "three",
            "tie_word_embeddings": model.tie != "none",
            "decoder_ffn_dim": found["encoder_ffn_dim"],
            "decoder_attention_heads": model.decoder.heads,
            "is_encoder_decoder": True,
            "decoder_vocab_size": pieces,
            "forced_eos_token_id": None,
            "bos_token_id": None,
        }

    def order(self, model: TransformerSection) -> tuple[int, ...]:
        """Our entries of the residual stream in their order."""
        return _order(model.d_model)

    def rows(self, model: TransformerSection, task: str, start: int | None = None) -> list[Row]:
        """Entries of the residual stream in their order; the start symbol's row may be its own, the last one."""
        order = self.order(model)
        reading, writing = Reordered(order, -1), Reordered(order, 0)

        def reads(theirs: str, ours: str) -> list[Row]:
            """The columns of its matrix are in that order, its bias is not of the stream."""
            return [Row(f"{theirs}.weight", f"{ours}.weight", form=reading), Row(f"{theirs}.bias", f"{ours}.bias")]

        embedding = Compose(InitialTensor(start), reading)
        tables = [SHARED_TABLE] if model.tie == "three" else [SOURCE_TABLE, TARGET_TABLE]
        table = [Row(theirs, ours, form=embedding) for theirs, ours in zip(tables, TABLES, strict=False)]
        table += [Row(OUTPUT, "output.weight", form=embedding)] if model.tie == "none" else []
        table += [Row(BIAS, "output_bias", form=OutputBias(start is None))] if model.output_bias else []
        for side, layers, sublayers in sides(model):
            table += self.positions(model, side)
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
            if model.embedding_norm:
                table += affine(f"model.{side}.layernorm_embedding", f"{side}.input.norm", form=writing)
        return table

    def positions(self, model: TransformerSection, side: str) -> list[Row]:
        """The rows of what is added for positions, if it is learned."""
        return []

    def further(self, model: TransformerSection, config: Mapping[str, Any]) -> dict[str, Tensor]:
        """What is added to the scores, where it is no weight of ours."""
        return {} if model.output_bias else {BIAS: torch.zeros(1, config["decoder_vocab_size"])}


class Pegasus(Marian):
    """With pre-norm; sinusoids, and the bias by which the start symbol is never written, stand in the file."""

    model_type, kind = "pegasus", "Pegasus"
    fixed: ClassVar = {"norm_place": "pre", "positions": "sinusoidal"}
    plain: ClassVar = {**Marian.plain, **fixed, "output_bias": False}
    settings: ClassVar = {**Marian.settings, "normalize_before": True}
    tasks: ClassVar = {"PegasusForConditionalGeneration": "translation"}

    def further(self, model: TransformerSection, config: Mapping[str, Any]) -> dict[str, Tensor]:
        found = super().further(model, config)
        found[BIAS][0, config["pad_token_id"]] = NEVER
        table = sinusoids(config["max_position_embeddings"], model.d_model)[:, list(_order(model.d_model))]
        return found | {PLACES.format(side): table.clone().contiguous() for side in ("encoder", "decoder")}


class M2M100(Marian):
    """M2M-100 and NLLB [Fan21]: pre-norm, the timing signal after two places; ``</s>`` starts a translation."""

    model_type, kind = "m2m_100", "M2M-100 or NLLB"
    tasks: ClassVar = {"M2M100ForConditionalGeneration": "translation"}
    fixed: ClassVar = {"norm_place": "pre", "positions": "timing_signal", "first_position": 2}
    plain: ClassVar = {**Marian.shared, **fixed, "embedding_norm": False, "output_bias": False}
    settings: ClassVar[Mapping[str, object]] = {"pad_token_id": 1}
    """Positions begin behind the number of ``<pad>`` there."""

    def start_row(self, config: Fields, generation: Fields) -> int | None:
        """That of ``</s>``."""
        usual = config.parse("decoder_start_token_id", NATURAL, 2)
        start = generation.parse("decoder_start_token_id", NATURAL, usual)
        if start >= config.parse("vocab_size", WHOLE):
            raise RegardError(f"decoder_start_token_id {start} is none of its pieces", config.where)
        return start

    def start_piece(self, tokenizer: AnyTokenizer | None) -> int | None:
        return None if tokenizer is None else tokenizer.end

    def order(self, model: TransformerSection) -> tuple[int, ...]:
        """Theirs is ours."""
        return tuple(range(model.d_model))

    def further(self, model: TransformerSection, config: Mapping[str, Any]) -> dict[str, Tensor]:
        return {}


class MBart(M2M100):
    """mBART-50 [Tang21]: learned positions after two places, and a norm of the embeddings."""

    model_type, kind = "mbart", "mBART"
    tasks: ClassVar = {"MBartForConditionalGeneration": "translation"}
    keys = (*M2M100.keys, ConfigField("max_positions", "max_position_embeddings"))
    fixed: ClassVar = {"norm_place": "pre", "positions": "learned", "first_position": 2, "embedding_norm": True}
    plain: ClassVar = {**Marian.shared, **fixed}
    settings: ClassVar = {"normalize_embedding": True, "normalize_before": True, "add_final_layer_norm": True}

    def _refuse_other_positions(self, config: Fields, tensors: Mapping[str, Tensor]) -> None:
        pass

    def _output_bias(self, tensors: Mapping[str, Tensor]) -> dict[str, object]:
        return {"output_bias": True} if (added := tensors.get(BIAS)) is not None and added.any() else {}

    def positions(self, model: TransformerSection, side: str) -> list[Row]:
        return [Row(PLACES.format(side), f"{side}.input.positions.weight")]

    def further(self, model: TransformerSection, config: Mapping[str, Any]) -> dict[str, Tensor]:
        return {} if model.output_bias else {BIAS: torch.zeros(1, config["vocab_size"])}


def _order(d_model: int) -> tuple[int, ...]:
    """Our entries of the stream in their order."""
    return (*range(0, d_model, 2), *range(1, d_model, 2))


def _are_sinusoids(held: Tensor) -> bool:
    if held.dim() != 2 or not held.is_floating_point():
        return False
    table = sinusoids(len(held), held.shape[1])[:, list(_order(held.shape[1]))]
    return torch.allclose(held.float(), table.float(), rtol=0.0, atol=1e-5)
