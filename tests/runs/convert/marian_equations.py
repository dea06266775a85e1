"""What Marian computes (``src/models/transformer.h``), on the tensors as its files name them, in plain NumPy."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "swish": lambda x: x * sigmoid(x),
    "gelu": lambda x: x * sigmoid(1.702 * x),
}


@dataclass
class Marian:
    """A model: its tensors, its settings."""

    tensors: Mapping[str, Array]
    settings: Mapping[str, Any]

    def greedy(self, source: Sequence[int], most: int, kept: Collection[int] | None = None) -> list[int]:
        """The most probable pieces one by one, but for ``<unk>``; ``</s>`` is 0 and the last.

        ``kept``: the only pieces that there are.
        """
        memory, written = self.encode(source), list[int]()
        while len(written) < most and 0 not in written:
            scores = self.scores(written, memory)[-1]
            scores[[1, *(id for id in range(len(scores)) if kept is not None and id not in kept)]] = -np.inf
            written.append(int(scores.argmax()))
        return written

    def encode(self, source: Sequence[int]) -> Array:
        x = self.embed("encoder", [self.table("encoder")[id] for id in source])
        for layer in range(1, self.settings["enc-depth"] + 1):
            x = self.attend(f"encoder_l{layer}_self", x, None, causal=False)
            x = self.feed(f"encoder_l{layer}_ffn", x)
        return self.top("encoder", x)

    def scores(self, target: Sequence[int], memory: Array) -> Array:
        """Of the piece after each of ``target``, before the first too, where zeros are read."""
        table = self.table("decoder")
        x = self.embed("decoder", [np.zeros(table.shape[1]), *(table[id] for id in target)])
        for layer in range(1, self.settings["dec-depth"] + 1):
            prefix = f"decoder_l{layer}"
            recurrent = self.settings["transformer-decoder-autoreg"] == "rnn"
            x = self.recur(f"{prefix}_rnn", x) if recurrent else self.attend(f"{prefix}_self", x, None, causal=True)
            x = self.attend(f"{prefix}_context", x, memory, causal=False)
            x = self.feed(f"{prefix}_ffn", x)
        x = self.top("decoder", x)
        scores = x @ self.tensors.get("decoder_ff_logit_out_W", table.T)
        return scores + self.tensors.get("decoder_ff_logit_out_b", 0.0)

    def table(self, side: str) -> Array:
        return self.tensors.get("Wemb", self.tensors.get(f"{side}_Wemb"))

    def embed(self, side: str, rows: Sequence[Array]) -> Array:
        x, size = np.array(rows), len(rows[0])
        rates = 1e-4 ** (np.arange(size // 2) / (size // 2 - 1.0))
        for place in range(len(x)):
            x[place] = math.sqrt(size) * x[place] + np.concatenate([np.sin(place * rates), np.cos(place * rates)])
        return self.norm(x, f"{side}_emb", "_pre") if "n" in self.settings["transformer-postprocess-emb"] else x

    def norm(self, x: Array, prefix: str, end: str = "") -> Array:
        y = x - x.mean(-1, keepdims=True)
        y = y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-6)
        return y * self.tensors[f"{prefix}_ln_scale{end}"] + self.tensors[f"{prefix}_ln_bias{end}"]

    def before(self, x: Array, prefix: str) -> Array:
        return self.norm(x, prefix, "_pre") if "n" in self.settings["transformer-preprocess"] else x

    def after(self, x: Array, output: Array, prefix: str) -> Array:
        return self.norm(x + output, prefix) if "n" in self.settings["transformer-postprocess"] else x + output

    def top(self, side: str, x: Array) -> Array:
        return self.norm(x, f"{side}_top") if self.settings["transformer-postprocess-top"] == "n" else x

    def affine(self, x: Array, prefix: str, end: str) -> Array:
        return x @ self.tensors[f"{prefix}_W{end}"] + self.tensors[f"{prefix}_b{end}"]

    def attend(self, prefix: str, x: Array, memory: Array | None, causal: bool) -> Array:
        h = self.before(x, f"{prefix}_Wo")
        keys = h if memory is None else memory
        q, k, v = (self.affine(h if end == "q" else keys, prefix, end) for end in "qkv")
        heads = self.settings["transformer-heads"]
        parts = []
        for qh, kh, vh in zip(*(np.split(part, heads, -1) for part in (q, k, v)), strict=True):
            scores = qh @ kh.T / math.sqrt(kh.shape[1])
            if causal:
                scores[np.triu_indices(len(scores), 1)] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            parts.append(weights / weights.sum(-1, keepdims=True) @ vh)
        return self.after(x, self.affine(np.concatenate(parts, -1), prefix, "o"), f"{prefix}_Wo")

    def feed(self, prefix: str, x: Array) -> Array:
        h = self.affine(self.before(x, f"{prefix}_ffn"), prefix, "1")
        h = ACTIVATIONS[self.settings["transformer-ffn-activation"]](h)
        return self.after(x, self.affine(h, prefix, "2"), f"{prefix}_ffn")

    def recur(self, prefix: str, x: Array) -> Array:
        h = self.before(x, prefix)
        state, output = np.zeros(x.shape[1]), []
        for one in h:
            keep = sigmoid(self.affine(one[None], prefix, "f")[0])
            state = keep * state + (1 - keep) * (one @ self.tensors[f"{prefix}_W"])
            output.append(np.maximum(state, 0))
        return self.after(x, np.array(output), f"{prefix}_ffn")
