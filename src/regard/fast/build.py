"""From a recipe's section and the weights of a model to an engine: the only module that maps recipe words to parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from regard.config import TransformerSection
from regard.fast import positions
from regard.fast.answer import Output
from regard.fast.layers import CachedAttention, CrossAttention, Heads, PostNorm, PreNorm, SelfAttention, Stack, SubLayer
from regard.fast.parts import FeedForward, Floats, GatedFeedForward, Linear, Norm, Scratch
from regard.fast.transformer import Decoder, Encoder, FastTransformer, Input

Weights = Mapping[str, Floats]
"""By the names that the model has for them."""


def transformer(section: TransformerSection, weights: Weights) -> FastTransformer:
    """The engine of an encoder-decoder; weights are packed, so those given are needed for embeddings only."""
    scratch = Scratch()
    reading = _Stack(section, weights, "encoder", scratch, two_way=True)
    writing = _Stack(section.decoder, weights, "decoder", scratch, two_way=False)
    source, target, output = _tables(section.tie, weights)
    scale = section.d_model**0.5 if section.scale_embedding else 1.0
    layers = range(section.decoder_layers)
    return FastTransformer(
        Encoder(reading.input(source, scale), reading.encoder_layers(section.encoder_layers)),
        Decoder(
            writing.input(target, scale),
            writing.decoder_layers(section.decoder_layers),
            [writing.linear([f"layers.{n}.cross.key", f"layers.{n}.cross.value"]) for n in layers],
            writing.heads.keys + writing.heads.values,
            writing.heads.keys + writing.heads.values,
        ),
        Output(output[:-1] * np.float32(section.d_model**-0.5) if section.scale_output else output[:-1]),
    )


def _tables(tie: str, weights: Weights) -> tuple[Floats, Floats, Floats]:
    """Tables of source, target and output; their last row is the start symbol's."""
    source = weights["encoder.input.tokens.weight"]
    target = source if tie == "three" else weights["decoder.input.tokens.weight"]
    return source, target, weights["output.weight"] if tie == "none" else target


@dataclass
class _Stack:
    """The parts of one stack of layers, whose weights' names begin alike."""

    section: TransformerSection
    weights: Weights
    name: str
    scratch: Scratch
    two_way: bool

    def __post_init__(self) -> None:
        section = self.section
        scale = section.key_size**-0.5 if section.scale_scores else 1.0
        self.heads = Heads(section.heads, section.key_size, section.value_size, scale)
        self._bias = BIASES[section.positions](self) if section.positions in BIASES else None
        rotary = section.key_size, section.rotary_base, section.rotary_scaling
        self._rotary = positions.Rotary(*rotary) if section.positions == "rotary" else None

    def weight(self, name: str) -> Floats:
        """A weight of the stack."""
        return self.weights[f"{self.name}.{name}"]

    def input(self, table_VD: Floats, scale: float) -> Input:
        add = ADDED[self.section.positions](self) if self.section.positions in ADDED else None
        return Input(table_VD, scale, self.scratch, add)

    def linear(self, names: list[str], activation: str = "none") -> Linear:
        """Linear layers of one input, side by side."""
        biases = [self.weight(f"{name}.bias") if self.section.biases else None for name in names]
        return Linear([self.weight(f"{name}.weight") for name in names], biases, activation)

    def encoder_layers(self, count: int) -> Stack:
        layers = [f"layers.{n}" for n in range(count)]
        sublayers = [part for layer in layers for part in (self._self_attention(layer), self._feed_forward(layer))]
        return self._joined(sublayers, [f"{x}.{part}" for x in layers for part in ("attention", "feedforward")])

    def decoder_layers(self, count: int) -> Stack:
        sublayers: list[SubLayer] = []
        for n in range(count):
            layer = f"layers.{n}"
            query, output = self.linear([f"{layer}.cross.query"]), self.linear([f"{layer}.cross.output"])
            cross = CrossAttention(n, self.heads, query, output, self.scratch)
            sublayers += [CachedAttention(n, *self._parts(layer)), cross, self._feed_forward(layer)]
        parts = ("attention", "cross", "feedforward")
        return self._joined(sublayers, [f"layers.{n}.{part}" for n in range(count) for part in parts])

    def _parts(self, layer: str) -> tuple[object, ...]:
        names = [f"{layer}.attention.{name}" for name in ("query", "key", "value")]
        output = self.linear([f"{layer}.attention.output"])
        return self.heads, self.linear(names), output, self.scratch, self._bias, self._rotary

    def _self_attention(self, layer: str) -> SubLayer:
        return SelfAttention(*self._parts(layer))  # type: ignore[arg-type]

    def _feed_forward(self, layer: str) -> SubLayer:
        inner, outer = f"{layer}.feedforward.inner", self.linear([f"{layer}.feedforward.outer"])
        if self.section.activation not in GATES:
            return FeedForward(self.linear([inner], self.section.activation), outer, self.scratch)
        both = self.linear([inner, f"{layer}.feedforward.gate"])
        return GatedFeedForward(both, outer, self.scratch, GATES[self.section.activation])

    def _joined(self, sublayers: list[SubLayer], names: list[str]) -> Stack:
        norms = [self._norm(f"{name}_residual.norm") for name in names]
        if self.section.norm_place == "post":
            return PostNorm(sublayers, norms)
        final = "final.norm" if f"{self.name}.final.norm.weight" in self.weights else "final"
        return PreNorm(sublayers, [*norms, self._norm(final)], self.scratch)

    def _norm(self, name: str) -> Norm:
        section, gain = self.section, self.weight(f"{name}.weight").astype(np.float64)
        bias = np.zeros_like(gain) if section.norm == "rms" else self.weight(f"{name}.bias").astype(np.float64)
        if section.norm == "batch":
            deviation = np.sqrt(self.weight(f"{name}.running_variance").astype(np.float64) + section.norm_epsilon)
            gain = gain / deviation
            bias = bias - gain * self.weight(f"{name}.running_mean")
        kind = {"batch": "affine", "group": "layer"}.get(section.norm, section.norm)
        groups = section.norm_groups if section.norm == "group" else 1
        shift = None if section.norm == "rms" else bias.astype(np.float32)
        return Norm(kind, gain.astype(np.float32), shift, section.norm_epsilon, groups)


GATES = {"gated_gelu": "gelu_tanh", "gated_swish": "swish"}
"""The activation of a gated feed-forward network."""
ADDED: dict[str, Callable[[_Stack], Callable[[int], Floats]]] = {
    "sinusoidal": lambda stack: positions.sinusoids(stack.section.d_model),
    "learned": lambda stack: positions.learned(stack.weight("input.positions.weight")),
}
"""Positions that are added to embeddings."""
BIASES: dict[str, Callable[[_Stack], positions.Table]] = {
    "alibi": lambda stack: positions.linear_bias(stack.section.heads),
    "relative": lambda stack: positions.relative_bias(
        stack.weight("input.positions.weight"), stack.section.relative_distance, stack.two_way
    ),
}
"""Positions that are added to scores."""
