"""Encoder-decoders in CTranslate2's names: our section from its variables, and one table of names, read both ways."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.config import Recipe, TransformerSection
from regard.nn.positions import TimingSignal, sinusoids
from regard.runs.convert.layouts.format import TABLES, Chunks, InitialTensor, Obstacle, Row, misfits, odd_heads, sides
from regard.system.errors import RegardError
from regard.text.tokenizers.tokenizer import Tokenizer
from regard.text.tokenizers.vocabulary import AnyTokenizer

if TYPE_CHECKING:
    from regard.runs.convert.ctranslate2_file import ModelFile

HEADS = {"": 8, "TransformerBase": 8, "TransformerBig": 16, "TransformerSpec": 8}
"""Specifications of an encoder-decoder, and heads where the file does not say how many."""
LAST = 7
"""The revision of the specification that is written; 1 had other names."""
SIDES = ("encoder", "decoder")
SOURCES = ("encoder/embeddings/weight", "encoder/embeddings_0/weight")
"""The source's table in older files, and now."""
TARGET, OUTPUT, PLACES = "decoder/embeddings/weight", "decoder/projection/weight", "{}/position_encodings/encodings"
ACTIVATIONS = {0: "relu", 1: "gelu_tanh", 2: "swish", 3: "gelu"}
UNKNOWN = {4: "gelu by a sigmoid (1.702)", 5: "tanh", 6: "sigmoid"}
BIAS, FARTHEST = "{}/layer_{}/self_attention/relative_attention_bias", "relative_attention_max_distance"
"""Relative positions: a table that every layer names, and the distance from which on all are one."""
SAID = {
    FARTHEST,
    "num_heads",
    "pre_norm",
    "activation",
    "scale_embeddings",
    "multiply_by_sqrt_depth",
    "start_from_zero_embedding",
    "layernorm_embedding",
    "with_source_bos",
    "with_source_eos",
    "with_target_bos",
}
"""Attributes that are read."""
SILENT = {"alignment_layer", "alignment_heads", "embeddings_merge", "alibi_use_positive_positions"}
"""Attributes that change nothing of what an encoder-decoder computes here."""
OFF = {
    "alibi": "linear biases (ALiBi)",
    "scale_alibi": "scaled linear biases",
    "multi_query_attention": "multi-query attention",
    "with_relative_position": "relative positions",
    "user_decoder_start_tokens": "a start that its caller gives",
}
"""Attributes that must be 0, and what they would mean."""
LAYERS = {
    "relative_position_": "relative positions in keys and values",
    "relative_asymmetric_": "relative positions",
    "rotary_": "rotary positions",
    "linear_0_noact": "gated feed-forward layers",
    "num_heads_kv": "fewer heads of keys than of queries",
    "embeddings_1": "several features of a source token",
    "weight_zero": "weights quantised by AWQ",
    "q_norm": "norms of queries",
    "sliding_window": "attention in a sliding window",
    "project_in": "embeddings of another size",
    "scale_outputs": "scaled outputs",
}
"""Parts of names of what there is nothing for here."""
STRINGS = {"unk_token", "bos_token", "eos_token"}
QUANTISED = "_scale"
ROWS = 4096
"""Positions of a table that are looked at."""


PLAIN = {
    "norm": "layer",
    "decoder_norm": (None, "layer"),
    "scale_scores": True,
    "scale_output": False,
    "activation": tuple(ACTIVATIONS.values()),
    "positions": ("sinusoidal", "timing_signal", "learned", "relative"),
}
"""Values of our section that CTranslate2 has a form for."""


@dataclass(frozen=True)
class _After:
    """A table of positions without the first ones, which are of no token."""

    first: int

    def inward(self, theirs: Tensor) -> list[Tensor]:
        return [torch.cat([theirs.new_zeros(self.first, theirs.shape[1]), theirs])]

    def outward(self, ours: list[Tensor]) -> Tensor:
        return ours[0][self.first :]


def obstacles(recipe: Recipe, tokenizer: AnyTokenizer | None) -> list[Obstacle]:
    """What of a recipe this export has no form for; empty for most translators."""
    model = recipe.model
    if recipe.info.learns_from != "pairs" or not isinstance(model, TransformerSection):
        return [Obstacle("task", recipe.task, "translation")]
    own = [] if recipe.text.joint or not isinstance(tokenizer, Tokenizer) else [Obstacle("text.joint", False, "true")]
    return [*misfits(model, **PLAIN), *odd_heads(model), *odd_heads(model.decoder), *own]


def attribute(held: ModelFile, name: str, side: str = "", default: float = 0) -> float:
    """A number of one side, or of both in older files.

    Raises:
        RegardError: it is not one number.
    """
    for known in (f"{side}/{name}", name):
        if known in held:
            value = held[known]
            if value.numel() != 1 or not value.isfinite():
                raise RegardError(f"{known!r} is not one number", str(held.path))
            return float(value)
    return default


def refuse_unknown(held: ModelFile) -> None:
    """Refuse another kind of model, and layers that there are none of here.

    Raises:
        RegardError: names the first.
    """
    where = str(held.path)
    if held.specification not in HEADS:
        message = f"is a {held.specification[:60]!r}; of CTranslate2 only encoder-decoders (TransformerSpec) are read"
        raise RegardError(message, where)
    if not 2 <= held.revision <= LAST:
        raise RegardError(f"has the revision {held.revision} of {held.specification}; 2 to {LAST} are read", where)
    for name in held:
        last = name.rsplit("/", 1)[-1]
        what = next((what for part, what in LAYERS.items() if part in name), "")
        if last in OFF and held[name].any():
            what = OFF[last]
        if what:
            raise RegardError(f"has {what} ({name!r}), which is not supported", where)


def both(held: ModelFile, what: str, values: Sequence[float]) -> float:
    """The one value of encoder and decoder.

    Raises:
        RegardError: they differ.
    """
    if values[0] != values[1]:
        raise RegardError(f"{what} of encoder and decoder differ ({values[0]:g}, {values[1]:g})", str(held.path))
    return values[0]


def section_of(held: ModelFile, epsilon: float) -> dict[str, object]:
    """The values of our section.

    Raises:
        RegardError: something there is not supported, or missing.
    """
    where = str(held.path)
    first, target = tables_of(held)
    d_model = held.shape(target)[-1]
    if any(
        len(shape := held.shape(name)) != 2 or 0 in shape or shape[1] != d_model for name in (first, target, OUTPUT)
    ):
        raise RegardError("its tables are none of one width", where)
    kind = int(both(held, "the activations", [attribute(held, "activation", side) for side in SIDES]))
    if kind not in ACTIVATIONS:
        raise RegardError(f"has the activation {UNKNOWN.get(kind, kind)}, which is not supported", where)
    heads = [int(attribute(held, "num_heads", side, HEADS[held.specification])) for side in SIDES]
    normed = both(held, "the norms of embeddings", [f"{side}/layernorm_embedding/gamma" in held for side in SIDES])
    scaled = both(held, "the scales of embeddings", [_scale(held, side, d_model) for side in SIDES])
    before = both(held, "pre_norm", [attribute(held, "pre_norm", side, 1) for side in SIDES])
    tie = "none"
    if held.same(target, OUTPUT):
        tie = "three" if held.same(first, target) else "two"
    return {
        "family": "transformer",
        **{f"{side}_layers": _layers(held, side) for side in SIDES},
        "d_model": d_model,
        "d_ff": _first(held, "encoder/layer_0/ffn/linear_0/weight"),
        "heads": heads[0],
        **({} if heads[0] == heads[1] else {"decoder_heads": heads[1]}),
        "norm_place": "pre" if before else "post",
        "norm_epsilon": epsilon,
        "dropout": 0.0,  # which the file does not say
        "activation": ACTIVATIONS[kind],
        "scale_embedding": bool(scaled),
        "biases": "encoder/layer_0/ffn/linear_0/bias" in held,
        "output_bias": "decoder/projection/bias" in held,
        "embedding_norm": bool(normed),
        "tie": tie,
        **_positions(held, d_model),
    }


def tables_of(held: ModelFile) -> tuple[str, str]:
    """The names of both tables of embeddings."""
    first = SOURCES[SOURCES[0] not in held]
    for name in (first, TARGET, OUTPUT):
        _first(held, name)
    return first, TARGET


def _first(held: ModelFile, name: str) -> int:
    """The first size of a variable that has to be there."""
    if name not in held or not held.shape(name):
        raise RegardError(f"lacks {name!r}, which an encoder-decoder has", str(held.path))
    return held.shape(name)[0]


def _layers(held: ModelFile, side: str) -> int:
    named = {int(found[1]) for name in held if (found := re.match(rf"{side}/layer_([0-9]{{1,4}})/", name))}
    if named != {*range(len(named))}:
        raise RegardError(f"lacks a layer of its {side}", str(held.path))
    return len(named)


def _scale(held: ModelFile, side: str, d_model: int) -> bool:
    """Whether embeddings are multiplied by the root of d_model; a flag, or the factor itself."""
    names = [name for name in held if re.fullmatch(rf"{side}/(scale_embeddings|embeddings.*/multiply.*)", name)]
    value = attribute(held, names[0], default=1) if names else 1.0
    if not names or held[names[0]].dtype == torch.int8:
        return bool(value)
    if math.isclose(value, math.sqrt(d_model), rel_tol=1e-3):
        return True
    if value == 1.0:
        return False
    raise RegardError(f"multiplies embeddings by {value:g}, which is not supported", str(held.path))


def _positions(held: ModelFile, d_model: int) -> dict[str, object]:
    """Kind of positions: sinusoids where there is no table, or where it holds such; else they are learned."""
    if BIAS.format("encoder", 0) in held:
        return _relative(held)
    named = [PLACES.format(side) for side in SIDES]
    if not any(name in held for name in named):
        return {"positions": "timing_signal", "first_position": 1}
    places, others = (held.numbers(name) if name in held else torch.empty(0) for name in named)
    if places.dim() != 2 or places.shape[1] != d_model or places.shape != others.shape or not len(places):
        raise RegardError("the positions of encoder and decoder are not of one size", str(held.path))
    seen = places[:ROWS]
    if torch.equal(places, others):
        for first in (0, 1, 2):
            if _near(seen, TimingSignal(d_model, first, len(seen)).table_SD):
                return {"positions": "timing_signal", "first_position": first}
        if _near(seen, sinusoids(len(seen), d_model)):
            return {"positions": "sinusoidal"}
    return {"positions": "learned", "max_positions": len(places)}


def _relative(held: ModelFile) -> dict[str, object]:
    """Those of T5, in all layers of a side the same, and of one size on both."""
    first = [BIAS.format(side, 0) for side in SIDES]
    others = [(BIAS.format(side, 0), BIAS.format(side, n)) for side in SIDES for n in range(_layers(held, side))]
    if not all(name in held and other in held and held.same(name, other) for name, other in others):
        raise RegardError("has a relative attention bias in some layers that others have not", str(held.path))
    if any(len(held.shape(name)) != 2 for name in first):
        raise RegardError("has a relative attention bias that is no table", str(held.path))
    buckets = both(held, "the buckets of distances", [held.shape(name)[0] for name in first])
    reach = {attribute(held, f"{other.rpartition('/')[0]}/{FARTHEST}", default=128) for _, other in others}
    if len(reach) > 1:
        raise RegardError("tells distances apart up to one that differs by layer", str(held.path))
    return {"positions": "relative", "relative_buckets": int(buckets), "relative_distance": int(reach.pop())}


def _near(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other.float(), rtol=0.0, atol=2e-5)


def rows(model: TransformerSection, first: str, start: int | None = None) -> list[Row]:
    """The table of names.

    Args:
        model: our section.
        first: the source's table there.
        start: the token whose row starts a translation; ``None``: zeros do.
    """

    def linear(theirs: str, *ours: str) -> list[Row]:
        """Matrices one below the other, and their biases."""
        parts, form = ("weight", "bias") if model.biases else ("weight",), Chunks(len(ours)) if len(ours) > 1 else None
        return [Row(f"{theirs}/{part}", *(f"{one}.{part}" for one in ours), form=form) for part in parts]

    def norm(theirs: str, ours: str) -> list[Row]:
        return [Row(f"{theirs}/{one}", f"{ours}.{part}") for one, part in (("gamma", "weight"), ("beta", "bias"))]

    started, unstarted = InitialTensor(start, zeros=True), InitialTensor(None, zeros=True)
    if model.tie == "three":
        table = [Row(TARGET, TABLES[0], form=started)]
    else:
        table = [Row(first, TABLES[0], form=unstarted), Row(TARGET, TABLES[1], form=started)]
    if model.tie == "none":
        table.append(Row(OUTPUT, "output.weight", form=unstarted))
    table += [Row("decoder/projection/bias", "output_bias")] * model.output_bias
    for side, layers, sublayers in sides(model):
        for layer in range(layers):
            theirs, ours = f"{side}/layer_{layer}", f"{side}.layers.{layer}"
            for name in sublayers:
                there = f"{theirs}/{'attention' if name == 'cross' else 'self_attention'}"
                groups = [["query"], ["key", "value"]] if name == "cross" else [["query", "key", "value"]]
                for number, group in enumerate([*groups, ["output"]]):
                    table += linear(f"{there}/linear_{number}", *(f"{ours}.{name}.{one}" for one in group))
                table += norm(f"{there}/layer_norm", f"{ours}.{name}_residual.norm")
            for number, name in enumerate(("inner", "outer")):
                table += linear(f"{theirs}/ffn/linear_{number}", f"{ours}.feedforward.{name}")
            table += norm(f"{theirs}/ffn/layer_norm", f"{ours}.feedforward_residual.norm")
            if model.positions == "relative":
                table.append(Row(BIAS.format(side, layer), f"{side}.input.positions.weight"))
        table += norm(f"{side}/layer_norm", f"{side}.final") if model.norm_place == "pre" else []
        table += norm(f"{side}/layernorm_embedding", f"{side}.input.norm") if model.embedding_norm else []
        if model.positions == "learned":
            form = _After(model.first_position)
            table.append(Row(PLACES.format(side), f"{side}.input.positions.weight", form=form))
    return table


def refuse_surplus(held: ModelFile, table: Sequence[Row], first: str) -> None:
    """Refuse variables that no row tells what to do with, and a table without one of its variables.

    Raises:
        RegardError: names the first.
    """
    read = {each.theirs for each in table} | {first, OUTPUT}
    if lacking := sorted(read - {*held}):
        raise RegardError(f"lacks {lacking[0]!r}, which such a model has", str(held.path))
    read |= {PLACES.format(side) for side in SIDES} | {f"{name}{QUANTISED}" for name in read} | STRINGS
    surplus = (name for name in held if name not in read and name.rsplit("/", 1)[-1] not in SAID | SILENT | OFF.keys())
    if name := next(surplus, None):
        raise RegardError(f"has {name!r}, which such a model has not", str(held.path))
