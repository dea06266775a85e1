"""Protocols between training and tasks: the objective (loss, validation) and the batch source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import torch
from safetensors.torch import load, save
from torch import nn

from regard.data.batches.batch import EVERY_BATCH, Batch, BatchRange, Position
from regard.training.world import ALONE, World

TITLES = {"bleu": "BLEU", "chrf": "chrF", "exact": "exact match", "f1": "F1"}
"""How people write the names of scores, where otherwise than we do."""
CORRELATIONS = ("pearson", "spearman")
"""Scores from -1 to 1; others are percent or points."""
Done = Callable[[float], None]
"""Callback with the share of work done, from 0 to 1."""
_Part = TypeVar("_Part")
Weights = Mapping[str, torch.Tensor]
"""Tensors by parameter name, tied ones once."""


def format_score(name: str, value: float) -> str:
    """A score with its name, for people."""
    return f"{TITLES.get(name, name)} {value:.{3 if name in CORRELATIONS else 1}f}"


@dataclass(frozen=True)
class Loss:
    """The loss of one batch, a sum (the trainer divides by the counts of the whole step)."""

    total: torch.Tensor
    """Scalar with a gradient, label smoothing included."""
    nll: torch.Tensor
    """Scalar without: the negative log-likelihood in nats."""
    count: int
    """The unit of the sums: target tokens, masked tokens, texts."""


@dataclass(frozen=True)
class Sample:
    """One validation example with the model's output, as display text."""

    source: str
    reference: str
    hypothesis: str


@dataclass(frozen=True)
class Validation:
    """The scores of one validation."""

    loss: float
    """Negative log-likelihood in nats, per target token if there are any, without label smoothing."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Scores by name, larger is better; the first is the task's own. Empty if not requested."""
    samples: tuple[Sample, ...] = ()
    searched: str = ""
    """What the scores are of, where that is not all of the validation data."""


def ignore_progress(share: float) -> None:
    """The default callback: ignores progress."""


def predict(
    parts: Sequence[_Part], work: Callable[[_Part], torch.Tensor], world: World, done: Done = ignore_progress
) -> list[torch.Tensor]:
    """What ``work`` gives for each part of the validation data, in order; the processes divide the parts."""
    if world.size == 1:
        found = []
        for number, part in enumerate(parts, 1):
            found.append(work(part))
            done(number / len(parts))
        return found
    sent = world.divide(parts, lambda part: save({"found": work(part)}))
    return [load(content)["found"] for content in sent]


def sum_losses(
    parts: Sequence[_Part], loss: Callable[[_Part], Loss], world: World, done: Done = ignore_progress
) -> tuple[float, int]:
    """The nats of the batches of the validation data, and the count of their units."""

    def sums(part: _Part) -> torch.Tensor:
        found = loss(part)
        return torch.stack([found.nll.double(), found.nll.new_tensor(found.count, dtype=torch.float64)])

    rows = [found.tolist() for found in predict(parts, sums, world, done)]
    return sum(nll for nll, _ in rows), round(sum(count for _, count in rows))


def mean_loss(
    parts: Sequence[_Part], loss: Callable[[_Part], Loss], world: World, done: Done = ignore_progress
) -> float:
    """The nats of a unit over the batches of the validation data."""
    nats, count = sum_losses(parts, loss, world, done)
    return float(nats / max(1, count))


class Objective(Protocol):
    """A task as training sees it."""

    @property
    def model(self) -> nn.Module:
        """The model; its fp32 master weights live in it."""

    def loss(self, batch: Any) -> Loss:
        """The loss of a batch in training mode."""

    def validate(self, generate: bool, world: World = ALONE) -> Validation:
        """Scores on the validation set; ``generate``: those too that take long, as where text is generated.

        The processes of ``world`` divide the work.
        """

    def trial(self, generate: bool, done: Done) -> None:
        """The work of a validation for the sake of its time: of one without what takes long, or that part alone.

        ``done`` is called now and then with the share of work done, and may end it by raising: 0 before the part that
        takes long, if there is one.
        """


class BatchSource(Protocol):
    """Endless batches from any position on; a pure function of the position."""

    @property
    def fingerprint(self) -> str:
        """Changes when the data, or the plan of batches, does."""

    def iterate(self, position: Position, among: BatchRange = EVERY_BATCH) -> Iterator[tuple[Batch, Position]]:
        """The batches from ``position`` on, some of each group, with the position that follows the group."""
