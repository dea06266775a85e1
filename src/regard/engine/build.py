"""From a recipe's section and the weights of a model to an engine; ``readers`` goes on with heads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from regard.config import TransformerSection
from regard.config.families import Attentive
from regard.engine import positions
from regard.engine.answer import Output
from regard.engine.layers import (
    SSRU,
    CachedAttention,
    CrossAttention,
    FeedForward,
    GatedFeedForward,
    Heads,
    Ids,
    Linear,
    Norm,
    NormFirst,
    PostNorm,
    PreNorm,
    SelfAttention,
    SubLayer,
)
from regard.engine.positions import Positions
from regard.engine.shortlist import ShortlistOutput
from regard.engine.stack import Stack
from regard.engine.transformer import Decoder, FastTransformer
from regard.system.kernels.packing import FP32, Floats, Packer


class Take(Protocol):
    """Gives a weight by the name that the model has for it, and its shape."""

    def __call__(self, name: str, *shape: int) -> Floats:
        """The weight."""


def transformer(
    section: TransformerSection, source_pieces: int, target_pieces: int, take: Take, pack: Packer = FP32
) -> FastTransformer:
    """The engine of an encoder-decoder; its weights are packed, and those given needed for embeddings only."""
    source = target = output = take("encoder.input.tokens.weight", source_pieces + 1, section.d_model)
    if section.tie != "three":
        target = output = take("decoder.input.tokens.weight", target_pieces + 1, section.d_model)
    if section.tie == "none":
        output = take("output.weight", target_pieces + 1, section.d_model)
    reading = StackParts(section, take, "encoder", two_way=True, pack=pack)
    writing = StackParts(section.decoder, take, "decoder", two_way=False, pack=pack)
    scale = section.d_model**0.5 if section.scale_embedding else 1.0
    layers, entries = range(section.decoder_layers), writing.heads.keys + writing.heads.values
    own = (section.d_model, FP32.precision) if section.decoder_cell else (entries, pack.precision)
    bias = take("output_bias", target_pieces) if section.output_bias else None
    smaller = np.float32(section.d_model**-0.5)

    def part(ids: Ids) -> Output:
        weight = output[ids] * smaller if section.scale_output else output[ids]
        return ShortlistOutput(weight, Packer(pack.precision), None if bias is None else bias[ids], ids, target_pieces)

    return FastTransformer(
        Stack(source, scale, reading.positions, reading.encoder_layers(section.encoder_layers)),
        Decoder(
            Stack(target, scale, writing.positions, writing.decoder_layers(section.decoder_layers)),
            [writing.memory(f"layers.{n}.cross") for n in layers],
            (entries, pack.precision),
            own,
            writing.heads.heads,
        ),
        Output(output[:-1] * smaller if section.scale_output else output[:-1], pack, bias),
        part,
    )


@dataclass
class StackParts:
    """The parts of one stack of layers, whose weights' names begin alike."""

    section: Attentive
    take: Take
    name: str
    two_way: bool
    pack: Packer = FP32

    def __post_init__(self) -> None:
        section = self.section
        scale = section.key_size**-0.5 if section.scale_scores else 1.0
        self.heads = Heads(section.heads, section.key_size, section.value_size, scale)
        self.positions = POSITIONS[section.positions](self)

    def weight(self, name: str, *shape: int) -> Floats:
        """A weight of the stack."""
        return self.take(f"{self.name}.{name}", *shape)

    def linear(self, parts: dict[str, int], inner: int, activation: str = "none") -> Linear:
        """Linear layers of one input, side by side: their names, and what each gives of ``inner`` entries."""
        weights = [self.weight(f"{name}.weight", size, inner) for name, size in parts.items()]
        biased = self.section.biases
        biases = [self.weight(f"{name}.bias", size) if biased else None for name, size in parts.items()]
        return Linear(weights, biases, activation, self.pack)

    def memory(self, cross: str) -> Linear:
        """What makes keys and values of a sentence, for one layer."""
        return self.linear({f"{cross}.key": self.heads.keys, f"{cross}.value": self.heads.values}, self.section.d_model)

    def encoder_layers(self, count: int) -> SubLayer:
        """The layers of an encoder."""
        layers = [f"layers.{n}" for n in range(count)]
        sublayers = [
            part for layer in layers for part in (SelfAttention(*self._parts(layer)), self._feed_forward(layer))
        ]
        return self._join(sublayers, [f"{x}.{part}" for x in layers for part in ("attention", "feedforward")])

    def decoder_layers(self, count: int) -> SubLayer:
        """The layers of a decoder that has a memory."""
        sublayers: list[SubLayer] = []
        recurs = getattr(self.section, "decoder_cell", None)
        first, own = ("recurrence", self._ssru) if recurs else ("attention", self._cached_attention)
        for n in range(count):
            layer = f"layers.{n}"
            query = self.linear({f"{layer}.cross.query": self.heads.keys}, self.section.d_model)
            cross = CrossAttention(self.heads, query, self._output(f"{layer}.cross"), n)
            sublayers += [own(layer, n), cross, self._feed_forward(layer)]
        parts = (first, "cross", "feedforward")
        return self._join(sublayers, [f"layers.{n}.{part}" for n in range(count) for part in parts])

    def _cached_attention(self, layer: str, n: int) -> SubLayer:
        return CachedAttention(*self._parts(layer), n)

    def _ssru(self, layer: str, n: int) -> SubLayer:
        part, size = f"{layer}.recurrence", self.section.d_model
        weights = [self.weight(f"{part}.{name}.weight", size, size) for name in ("value", "forget_gate")]
        bias = self.weight(f"{part}.forget_gate.bias", size) if self.section.biases else None
        return SSRU(Linear(weights, [None, bias], pack=self.pack), n)

    def causal_layers(self, count: int) -> tuple[SubLayer, SubLayer]:
        """The layers of a decoder-only model for whole texts, and for new tokens; the matrices are the same."""
        whole, new = list[SubLayer](), list[SubLayer]()
        for n in range(count):
            parts, feed_forward = self._parts(f"layers.{n}"), self._feed_forward(f"layers.{n}")
            whole += [SelfAttention(*parts), feed_forward]
            new += [CachedAttention(*parts, n), feed_forward]
        names = [f"layers.{n}.{part}" for n in range(count) for part in ("attention", "feedforward")]
        return self._join(whole, names), self._join(new, names)

    def _parts(self, layer: str) -> tuple[Heads, Linear, Linear, bool, bool]:
        sizes = {"query": self.heads.keys, "key": self.heads.keys, "value": self.heads.values}
        project = self.linear({f"{layer}.attention.{name}": size for name, size in sizes.items()}, self.section.d_model)
        biased, turned = self.positions.bias is not None, self.positions.turned is not None
        return self.heads, project, self._output(f"{layer}.attention"), biased, turned

    def _output(self, attention: str) -> Linear:
        return self.linear({f"{attention}.output": self.section.d_model}, self.heads.values)

    def _feed_forward(self, layer: str) -> SubLayer:
        part, d_model, d_ff = f"{layer}.feedforward", self.section.d_model, self.section.d_ff
        outer = self.linear({f"{part}.outer": d_model}, d_ff)
        if self.section.activation not in GATES:
            inner = self.linear({f"{part}.inner": d_ff}, d_model, self.section.activation)
            return FeedForward(inner, outer)
        both = self.linear({f"{part}.inner": d_ff, f"{part}.gate": d_ff}, d_model)
        return GatedFeedForward(both, outer, GATES[self.section.activation])

    def _join(self, sublayers: list[SubLayer], names: list[str]) -> SubLayer:
        norms = [norm(self.section, f"{self.name}.{name}_residual.norm", self.take) for name in names]
        layers: SubLayer = PostNorm(sublayers, norms)
        if self.section.norm_place == "pre":
            scaled = self.name == "decoder" and getattr(self.section, "scale_output", False)
            final = norm(self.section, f"{self.name}.final{'.norm' if scaled else ''}", self.take)
            layers = PreNorm(sublayers, [*norms, final], self.section.d_model)
        if not getattr(self.section, "embedding_norm", False):
            return layers
        return NormFirst(norm(self.section, f"{self.name}.input.norm", self.take), layers)


def norm(section: Attentive, name: str, take: Take) -> Norm:
    """A norm of a model; batch norm with its running averages in gain and bias."""
    size = section.d_model
    gain = take(f"{name}.weight", size).astype(np.float64)
    bias = np.zeros(size) if section.norm == "rms" else take(f"{name}.bias", size).astype(np.float64)
    if section.norm == "batch":
        variance = take(f"{name}.running_variance", size).astype(np.float64)
        gain = gain / np.sqrt(variance + section.norm_epsilon)
        bias = bias - gain * take(f"{name}.running_mean", size)
    kind = {"batch": "affine", "group": "layer"}.get(section.norm, section.norm)
    groups = section.norm_groups if section.norm == "group" else 1
    shift = None if section.norm == "rms" else bias.astype(np.float32)
    return Norm(kind, gain.astype(np.float32), shift, section.norm_epsilon, groups)


GATES = {"gated_gelu": "gelu_tanh", "gated_swish": "swish"}
"""The activation of a gated feed-forward network."""
POSITIONS: dict[str, Callable[[StackParts], Positions]] = {
    "sinusoidal": lambda stack: Positions(added=positions.sinusoids(stack.section.d_model)),
    "timing_signal": lambda stack: Positions(
        added=positions.timing_signal(stack.section.d_model, stack.section.first_position)
    ),
    "learned": lambda stack: Positions(
        added=positions.learned(
            stack.weight(
                "input.positions.weight",
                stack.section.first_position + stack.section.max_positions,
                stack.section.d_model,
            )[stack.section.first_position :]
        ),
        most=stack.section.max_positions,
    ),
    "alibi": lambda stack: Positions(bias=positions.linear_bias(stack.section.heads)),
    "relative": lambda stack: Positions(
        bias=positions.relative_bias(
            stack.weight("input.positions.weight", stack.section.relative_buckets, stack.section.heads),
            stack.section.relative_distance,
            stack.two_way,
        )
    ),
    "rotary": lambda stack: Positions(
        turned=positions.rotary(stack.section.key_size, stack.section.rotary_base, stack.section.rotary_scaling)
    ),
    "none": lambda stack: Positions(),
}
"""Where positions act: added to embeddings, to scores, or turning queries and keys."""
