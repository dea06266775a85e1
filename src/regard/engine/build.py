"""From a recipe's section and the weights of a model to an engine; ``readers`` goes on with heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from regard.config import TransformerSection
from regard.config.families import Attentive
from regard.engine import positions
from regard.engine.answer import Output
from regard.engine.layers import (
    SSRU,
    CrossAttention,
    FeedForward,
    Floats,
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
from regard.system.kernels.packing import FP32, Packer


class Take(Protocol):
    """Gives a weight by the name that the model has for it, and its shape."""

    def __call__(self, name: str, *shape: int) -> Floats:
        """The weight."""


def transformer(
    section: TransformerSection, source_pieces: int, target_pieces: int, take: Take, pack: Packer
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
    pack: Packer

    def __post_init__(self) -> None:
        section = self.section
        scale = section.key_size**-0.5 if section.scale_scores else 1.0
        self.heads = Heads(section.heads, section.key_size, section.value_size, scale)
        self.positions = self._positions()

    def _positions(self) -> Positions:
        """Where positions act: added to embeddings, to scores, or turning queries and keys."""
        section = self.section
        match section.positions:
            case "sinusoidal":
                return Positions(added=positions.sinusoids(section.d_model))
            case "timing_signal":
                return Positions(added=positions.timing_signal(section.d_model, section.first_position))
            case "learned":
                first, most = section.first_position, section.max_positions
                table = self.weight("input.positions.weight", first + most, section.d_model)
                return Positions(added=positions.learned(table[first:]), most=most)
            case "alibi":
                return Positions(bias=positions.linear_bias(section.heads))
            case "relative":
                table = self.weight("input.positions.weight", section.relative_buckets, section.heads)
                return Positions(bias=positions.relative_bias(table, section.relative_distance, self.two_way))
            case "rotary":
                turned = positions.rotary(section.key_size, section.rotary_base, section.rotary_scaling)
                return Positions(turned=turned)
            case "none":
                return Positions()
            case unknown:
                raise ValueError(f"no positions {unknown}")

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
        names = [f"layers.{n}" for n in range(count)]
        sublayers = [part for name in names for part in (SelfAttention(*self._parts(name)), self._feed_forward(name))]
        return self._join(sublayers, count, "attention", "feedforward")

    def causal_layers(self, count: int) -> tuple[SubLayer, SubLayer]:
        """Self-attention and feed-forward for whole texts, and for new tokens of rows; the matrices are the same."""
        whole, new = list[SubLayer](), list[SubLayer]()
        for n in range(count):
            parts, feed_forward = self._parts(f"layers.{n}"), self._feed_forward(f"layers.{n}")
            whole += [SelfAttention(*parts), feed_forward]
            new += [SelfAttention(*parts, n), feed_forward]
        return self._join(whole, count, "attention", "feedforward"), self._join(new, count, "attention", "feedforward")

    def decoder_layers(self, count: int) -> SubLayer:
        """The layers of a decoder that has a memory."""
        sublayers: list[SubLayer] = []
        recurs = getattr(self.section, "decoder_cell", None)
        for n in range(count):
            layer = f"layers.{n}"
            query = self.linear({f"{layer}.cross.query": self.heads.keys}, self.section.d_model)
            cross = CrossAttention(self.heads, query, self._output(f"{layer}.cross"), n)
            own = self._ssru(layer, n) if recurs else SelfAttention(*self._parts(layer), n)
            sublayers += [own, cross, self._feed_forward(layer)]
        return self._join(sublayers, count, "recurrence" if recurs else "attention", "cross", "feedforward")

    def _ssru(self, layer: str, n: int) -> SubLayer:
        part, size = f"{layer}.recurrence", self.section.d_model
        weights = [self.weight(f"{part}.{name}.weight", size, size) for name in ("value", "forget_gate")]
        bias = self.weight(f"{part}.forget_gate.bias", size) if self.section.biases else None
        return SSRU(Linear(weights, [None, bias], pack=self.pack), n)

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
        if gate := GATES.get(self.section.activation):
            inner = self.linear({f"{part}.inner": d_ff, f"{part}.gate": d_ff}, d_model)
        else:
            inner = self.linear({f"{part}.inner": d_ff}, d_model, self.section.activation)
        return FeedForward(inner, outer, gate)

    def _join(self, sublayers: list[SubLayer], count: int, *parts: str) -> SubLayer:
        names = [f"{self.name}.layers.{n}.{part}_residual.norm" for n in range(count) for part in parts]
        norms = [norm(self.section, name, self.take) for name in names]
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
