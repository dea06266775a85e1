"""What a model would have said at each place of a scene, and how sure it was: the candidates of every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import UsageError
from regard.explore.scene import Scene
from regard.explore.tokens import piece

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Said:
    """One candidate: the number of a piece, the piece as people read it, and its probability at that place."""

    id: int
    piece: str
    probability: float


def _next(model: Any, hidden_TD: Tensor) -> Tensor:
    return model.output.scores(hidden_TD)


def _hidden(model: Any, hidden_TD: Tensor) -> Tensor:
    from regard.nn.layout import Sequences

    sequences = Sequences.end_to_end([len(hidden_TD)], hidden_TD.device)
    return model.head.scores(model.head(hidden_TD, sequences))


SAYING: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "translation": _next,
    "span-corruption": _next,
    "language-model": _next,
    "masked-lm": _hidden,
}
"""By task, from ``hidden_TD`` to ``score_TV`` of every piece; classifiers and taggers say no pieces."""


def said(seen: Scene, k: int = 5) -> list[list[Said]]:
    """The ``k`` most probable pieces at each place.

    A decoder says what it would write there, a language model what comes next; a model of masked words what may stand
    there, though it sees what does, but for the gaps.

    Raises:
        UsageError: the model says no pieces.
    """
    return candidates(seen.task, scores(seen), k)


def scores(seen: Scene) -> Tensor:
    """``score_TV`` of every piece at each place, in float64.

    Raises:
        UsageError: the model says no pieces.
    """
    import torch

    from regard.models.reading import evaluating

    task = seen.task
    if task.name not in SAYING:
        raise UsageError("this model says no pieces of text", "candidates")
    with torch.inference_mode(), evaluating(task.model):
        return SAYING[task.name](task.model, seen.run()).double()


def candidates(task: Any, score_TV: Tensor, k: int = 5) -> list[list[Said]]:
    """The pieces with the ``k`` highest scores at each place."""
    probability_TV = score_TV.softmax(1).cpu().numpy()
    tokenizer = task.vocabularies.target if task.name == "translation" else task.assets.tokenizer
    order = np.argsort(-probability_TV, axis=1, kind="stable")[:, :k]
    return [
        [Said(int(id), piece(tokenizer, int(id)), float(row[id])) for id in ids]
        for ids, row in zip(order, probability_TV, strict=True)
    ]
