"""Sequences to be told backwards, and the loop that learns them: to see whether the parts together learn."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols
from regard.decoding.search import search
from regard.models.decoding import stepper
from regard.models.inputs import pairs
from regard.nn.dropout import reseed
from regard.nn.loss import SmoothedCrossEntropy
from regard.system.keys import generator, key
from tests.models.small_models import batch, texts

PIECES, MARK = 14, 1
Examples = tuple[list[np.ndarray], list[np.ndarray]]


def drawn(count: int, *numbers: int, longest: int = 6, repeats: bool = False) -> list[np.ndarray]:
    """Sequences of words, distinct ones unless they may repeat."""
    random = generator(1, "reverse", *numbers)
    if repeats:
        return [random.integers(2, PIECES, random.integers(2, longest + 1)) for _ in range(count)]
    return [random.permutation(np.arange(2, PIECES))[: random.integers(2, longest + 1)] for _ in range(count)]


def backwards(words: list[np.ndarray], behind: int = 0) -> Examples:
    """The sequences with a symbol behind each, and the same backwards with ``</s>``."""
    return [np.append(w, behind) for w in words], [np.append(w[::-1], 0) for w in words]


def fit(model: Any, steps: int, loss: Callable[[int], torch.Tensor], rate: float = 5e-3) -> Any:
    """The model after so many steps, each of the loss of its number; the rate warms up and falls to zero."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 30) * (1 - step / steps)
        reseed(key(1, "dropout", step))
        optimiser.zero_grad()
        loss(step).backward()
        optimiser.step()
    return model.eval()


def loss_of_pairs(model: Any, examples: Examples) -> torch.Tensor:
    """Of an encoder-decoder, per token."""
    given, table = pairs(batch(*examples, pieces=PIECES)), model.output
    total, _ = SmoothedCrossEntropy(0.0)(model(given), table.weight, given.labels_T, given.weight_T, table.pieces)
    return total / given.weight_T.sum()  # type: ignore[no-any-return]


def loss_of_texts(model: Any, examples: Examples) -> torch.Tensor:
    """Of a decoder-only model, per token behind the mark: what is drawn at random cannot be guessed."""
    both = list(zip(*examples, strict=True))
    labels_T = torch.from_numpy(np.concatenate([np.append(prompt[1:], answer) for prompt, answer in both]))
    behind = [np.arange(len(prompt) + len(answer) - 1) >= len(prompt) - 1 for prompt, answer in both]
    weight_T = torch.from_numpy(np.concatenate(behind)).float()
    given = texts([np.concatenate([prompt, answer[:-1]]) for prompt, answer in both])
    total, _ = SmoothedCrossEntropy(0.0)(model(given), model.output.weight, labels_T, weight_T, PIECES)
    return total / weight_T.sum()  # type: ignore[no-any-return]


def written(model: Any, source: list[np.ndarray], beam: int = 1) -> list[tuple[int, ...]]:
    """What the model makes of each source; one that ends in the mark is gone on with."""
    options: dict[str, Any] = {}
    if source[0][-1] == MARK:
        options = {"firsts": [MARK] * len(source), "limits": [8] * len(source)}
        source = [prompt[:-1] for prompt in source]
    found = search(stepper(model), source, Decoding(beam=beam), Symbols(PIECES), **options)
    return [best[0].tokens for best in found]


def right(model: Any, examples: Examples, beam: int = 1) -> float:
    """The share of sequences written exactly."""
    found = written(model, examples[0], beam)
    return float(np.mean([tokens == tuple(t[:-1]) for tokens, t in zip(found, examples[1], strict=True)]))


def right_tags(score_TC: torch.Tensor, read: Sequence[np.ndarray]) -> float:
    """The share of sequences whose tags are all right."""
    parts = np.split(score_TC.argmax(1).numpy(), np.cumsum([len(ids) for ids in read])[:-1])
    return float(np.mean([np.array_equal(part, ids[::-1]) for part, ids in zip(parts, read, strict=True)]))
