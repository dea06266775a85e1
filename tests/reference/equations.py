"""The paper's equations in plain loops over NumPy float64: slow, plain, and nothing of ``regard`` in them.

Sentences come one at a time, so there is neither padding nor packing. ``weights`` maps a model's own names
(``attention.query.weight``) to arrays.
"""

import math
from collections.abc import Mapping

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


def rms_norm(x: Array, weights: Weights, epsilon: float = 1e-5) -> Array:
    return np.array([t / math.sqrt(sum(e * e for e in t) / len(t) + epsilon) * weights["weight"] for t in x])


def sinusoids(length: int, d_model: int) -> Array:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(the same). §3.5."""
    table = np.zeros((length, d_model))
    for position in range(length):
        for dimension in range(d_model):
            angle = position / 10000 ** ((dimension - dimension % 2) / d_model)
            table[position, dimension] = math.cos(angle) if dimension % 2 else math.sin(angle)
    return table


def ssru(x: Array, weights: Weights) -> Array:
    """c_t = f c_(t-1) + (1 - f) x W with f = 1 / (1 + e^-(x W_f + b_f)); max(0, c_t) [Kim19]."""
    bias = weights.get("forget_gate.bias", np.zeros(x.shape[1]))
    state, found = np.zeros(x.shape[1]), []
    for row in x:
        for d in range(len(state)):
            keep = 1 / (1 + math.exp(-sum(weights["forget_gate.weight"][d] * row) - bias[d]))
            state[d] = keep * state[d] + (1 - keep) * sum(weights["value.weight"][d] * row)
        found.append([max(0.0, entry) for entry in state])
    return np.array(found).reshape(x.shape)


def embed(ids: list[int], table: Array, positions: Array | None) -> Array:
    """Embedding(ids) · √d_model + positions. §3.4, §3.5."""
    rows = [table[i] * math.sqrt(table.shape[1]) for i in ids]
    return np.array([row + positions[t] if positions is not None else row for t, row in enumerate(rows)])
