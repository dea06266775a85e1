"""An encoder of your own, made of the parts of ``regard.nn``: trained, kept, loaded, and looked at.

python examples/own_model.py FOLDER [STEPS]

It learns to mark each letter of a text that stands again later in it, which needs attention.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard.nn import (
    Dropout,
    EncoderLayer,
    InputEmbedding,
    Layout,
    Linear,
    MultiHeadAttention,
    PlainFeedForward,
    PreNorm,
    Sequences,
    Sinusoidal,
    TokenEmbedding,
)

LETTERS = "abcdefghijklmnop"


class Marker(nn.Module):
    """Ids of letters, texts end to end → a score for each letter: does it come again?"""

    def __init__(self, d_model: int, heads: int, layers: int) -> None:
        super().__init__()
        self.input = InputEmbedding(TokenEmbedding(len(LETTERS), d_model, start=0), Sinusoidal(d_model), 0.0)
        self.layers = nn.ModuleList(
            EncoderLayer(
                MultiHeadAttention(d_model, heads, d_model // heads, d_model // heads),
                PlainFeedForward(d_model, 4 * d_model, nn.ReLU()),
                [PreNorm(nn.LayerNorm(d_model), Dropout(0.0)) for _ in range(2)],
            )
            for _ in range(layers)
        )
        self.output = Linear(d_model, 1)

    def forward(self, texts: Sequence[str]) -> Tensor:
        sequences = Sequences.end_to_end([len(text) for text in texts])
        ids_T = torch.tensor([LETTERS.index(letter) for text in texts for letter in text])
        x_TD = self.input(ids_T, sequences.positions_T, sequences.longest)
        for layer in self.layers:
            x_TD = layer(x_TD, Layout(sequences, sequences))
        score_T: Tensor = self.output(x_TD)[:, 0]
        return score_T


def draw_texts(epoch: int) -> list[list[str]]:
    """The batches of an epoch: a hundred, each of 32 texts."""
    chance = random.Random(epoch)
    return [["".join(chance.choices(LETTERS, k=chance.randint(4, 12))) for _ in range(32)] for _ in range(100)]


def loss(model: Marker, texts: list[str]) -> Tensor:
    """The mean loss of a batch."""
    again_T = torch.tensor([float(letter in text[place + 1 :]) for text in texts for place, letter in enumerate(text)])
    return F.binary_cross_entropy_with_logits(model(texts), again_T)


def main(arguments: list[str]) -> int:
    """Run the program; the exit code."""
    if len(arguments) not in (1, 2) or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder, steps = arguments[0], int(arguments[1]) if len(arguments) == 2 else 1000
    sizes = {"d_model": 32, "heads": 2, "layers": 2}
    try:
        regard.fit(Marker(**sizes), draw_texts, loss=loss, steps=steps, out=folder, arguments=sizes, warmup=100)
        model = regard.load(folder, "cpu", model=Marker)
        print(f"loss on new texts: {loss(model, draw_texts(-1)[0]).item():.3f}")
        text = "abcadb"
        with regard.probe.capture(model, "*.attention.weight") as found:
            model([text])
        for captured in found.values():
            for head, weight_QK in enumerate(captured.tensors[0], 1):
                print(f"{captured.part} head {head}: the first a looks at {text[int(weight_QK[0].argmax())]!r}")
    except regard.RegardError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
