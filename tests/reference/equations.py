"""The paper's equations in plain loops over NumPy float64: slow, plain, and nothing of ``regard`` in them.

Sentences come one at a time, so there is neither padding nor packing. ``weights`` maps a model's own names
(``attention.query.weight``) to arrays.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = Mapping[str, Array]


def part(weights: Weights, name: str) -> dict[str, Array]:
    """The weights of one part, its name taken off theirs."""
    return {key.removeprefix(name + "."): value for key, value in weights.items() if key.startswith(name + ".")}


def softmax(scores: Array) -> Array:
    exponentials = [math.exp(score - max(scores)) for score in scores]
    return np.array([e / sum(exponentials) for e in exponentials])


def attention_weights(query: Array, key: Array, causal: bool, scale: float | None = None) -> Array:
    """softmax(Q Kᵀ / √d_k), a row a query; under ``causal`` the last query stands at the last key. Eq. 1."""
    scale = 1 / math.sqrt(query.shape[1]) if scale is None else scale
    weights = np.zeros((len(query), len(key)))
    for i in range(len(query)):
        seen = i + len(key) - len(query) + 1 if causal else len(key)
        if seen > 0:
            scores = [scale * sum(query[i, k] * key[j, k] for k in range(query.shape[1])) for j in range(seen)]
            weights[i, :seen] = softmax(np.array(scores))
    return weights


def attention(query: Array, key: Array, value: Array, causal: bool = False, scale: float | None = None) -> Array:
    """Each query's mixture of the values. Eq. 1."""
    weights = attention_weights(query, key, causal, scale)
    context = np.zeros((len(query), value.shape[1]))
    for i in range(len(query)):
        for j in range(len(key)):
            context[i] += weights[i, j] * value[j]
    return context


def linear(x: Array, weights: Weights) -> Array:
    """x Wᵀ + b, token by token."""
    return np.array([weights["weight"] @ token + weights["bias"] for token in x])


def multi_head(x: Array, memory: Array, weights: Weights, heads: int, causal: bool = False) -> Array:
    """Concat(head_1 … head_h) W^O, head_i = Attention(x W_i^Q, memory W_i^K, memory W_i^V). §3.2.2."""
    query = np.split(linear(x, part(weights, "query")), heads, axis=1)
    key = np.split(linear(memory, part(weights, "key")), heads, axis=1)
    value = np.split(linear(memory, part(weights, "value")), heads, axis=1)
    contexts = [attention(q, k, v, causal) for q, k, v in zip(query, key, value, strict=True)]
    return linear(np.concatenate(contexts, axis=1), part(weights, "output"))


def layer_norm(x: Array, weights: Weights, epsilon: float = 1e-5) -> Array:
    rows = []
    for token in x:
        mean = sum(token) / len(token)
        variance = sum((entry - mean) ** 2 for entry in token) / len(token)
        rows.append((token - mean) / math.sqrt(variance + epsilon) * weights["weight"] + weights["bias"])
    return np.array(rows)


def rms_norm(x: Array, weights: Weights, epsilon: float = 1e-5) -> Array:
    return np.array([t / math.sqrt(sum(e * e for e in t) / len(t) + epsilon) * weights["weight"] for t in x])


def relu(x: float) -> float:
    return max(0.0, x)


def gelu(x: float) -> float:
    """x Φ(x) [Hendrycks16]."""
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def feed_forward(x: Array, weights: Weights, activation: Callable[[float], float] = relu) -> Array:
    """max(0, x W_1 + b_1) W_2 + b_2. Eq. 2."""
    inner = linear(x, part(weights, "inner"))
    return linear(np.array([[activation(entry) for entry in token] for token in inner]), part(weights, "outer"))


def sinusoids(length: int, d_model: int) -> Array:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(the same). §3.5."""
    table = np.zeros((length, d_model))
    for position in range(length):
        for dimension in range(d_model):
            angle = position / 10000 ** ((dimension - dimension % 2) / d_model)
            table[position, dimension] = math.cos(angle) if dimension % 2 else math.sin(angle)
    return table


@dataclass(frozen=True)
class Kind:
    """Which of the paper's words and their later variants a stack is made of."""

    heads: int
    place: str = "post"
    norm: Callable[[Array, Weights], Array] = layer_norm
    activation: Callable[[float], float] = relu

    def residual(self, x: Array, sublayer: Callable[[Array], Array], weights: Weights) -> Array:
        """LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)). §3.1."""
        if self.place == "post":
            return self.norm(x + sublayer(x), part(weights, "norm"))
        return x + sublayer(self.norm(x, part(weights, "norm")))


def encoder_layer(x: Array, weights: Weights, kind: Kind) -> Array:
    """§3.1, Figure 1 left."""
    attend = part(weights, "attention")
    x = kind.residual(x, lambda h: multi_head(h, h, attend, kind.heads), part(weights, "attention_residual"))
    forward = part(weights, "feedforward")
    return kind.residual(x, lambda h: feed_forward(h, forward, kind.activation), part(weights, "feedforward_residual"))


def decoder_layer(x: Array, memory: Array, weights: Weights, kind: Kind) -> Array:
    """§3.1, Figure 1 right."""
    attend, cross = part(weights, "attention"), part(weights, "cross")
    x = kind.residual(x, lambda h: multi_head(h, h, attend, kind.heads, True), part(weights, "attention_residual"))
    x = kind.residual(x, lambda h: multi_head(h, memory, cross, kind.heads), part(weights, "cross_residual"))
    forward = part(weights, "feedforward")
    return kind.residual(x, lambda h: feed_forward(h, forward, kind.activation), part(weights, "feedforward_residual"))


def embed(ids: list[int], table: Array, positions: Array | None) -> Array:
    """Embedding(ids) · √d_model + positions. §3.4, §3.5."""
    rows = [table[i] * math.sqrt(table.shape[1]) for i in ids]
    return np.array([row + positions[t] if positions is not None else row for t, row in enumerate(rows)])


def stack(weights: Weights, layer: Callable[[Array, dict[str, Array]], Array], x: Array, kind: Kind) -> Array:
    """Layer upon layer; a pre-norm stack ends with a norm."""
    count = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))
    for i in range(count):
        x = layer(x, part(weights, f"layers.{i}"))
    return kind.norm(x, part(weights, "final")) if kind.place == "pre" else x
