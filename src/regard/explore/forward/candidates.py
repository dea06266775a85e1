"""Next-token candidates at each position, with their probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.explore.forward.inputs import ModelInputs
from regard.explore.forward.tokens import piece
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Candidate:
    """One candidate: the piece's id, its display text, and its probability at that position."""

    id: int
    piece: str
    probability: float


def _decoder_scores(model: Any, hidden_TD: Tensor) -> Tensor:
    return model.output.scores(hidden_TD)


def _masked_lm_scores(model: Any, hidden_TD: Tensor) -> Tensor:
    from regard.nn.layout import Sequences

    sequences = Sequences.end_to_end([len(hidden_TD)], hidden_TD.device)
    return model.head.scores(model.head(hidden_TD, sequences))


PIECE_SCORES: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "translation": _decoder_scores,
    "span-corruption": _decoder_scores,
    "language-model": _decoder_scores,
    "masked-lm": _masked_lm_scores,
}
"""By task, from ``hidden_TD`` to ``score_TV``; classifiers and taggers predict no pieces."""


def top_candidates(seen: ModelInputs, k: int = 5) -> list[list[Candidate]]:
    """The ``k`` most probable pieces at each position.

    A decoder says what it would write there, a language model what comes next; a masked-language model what may stand
    there, though it sees what does, but for the gaps.

    Raises:
        UsageError: the model predicts no tokens.
    """
    return candidates(seen.task, scores(seen), k)


def scores(seen: ModelInputs) -> Tensor:
    """``score_TV`` of every piece at each position, in float64.

    Raises:
        UsageError: the model predicts no tokens.
    """
    import torch

    from regard.models.captured_attention import evaluating

    task = seen.task
    if task.name not in PIECE_SCORES:
        raise UsageError("this model predicts no tokens", "candidates")
    with torch.inference_mode(), evaluating(task.model):
        return PIECE_SCORES[task.name](task.model, seen.run()).double()


def candidates(task: Any, score_TV: Tensor, k: int = 5) -> list[list[Candidate]]:
    """The pieces with the ``k`` highest scores at each position."""
    probability_TV = score_TV.softmax(1).cpu().numpy()
    tokenizer = task.vocabularies.target if task.name == "translation" else task.assets.tokenizer
    order = np.argsort(-probability_TV, axis=1, kind="stable")[:, :k]
    return [
        [Candidate(int(id), piece(tokenizer, int(id)), float(row[id])) for id in ids]
        for ids, row in zip(order, probability_TV, strict=True)
    ]
