"""What training knows of a task and of its data: two protocols and their plain results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn

from regard.data.batch import Batch, Position


@dataclass(frozen=True)
class Loss:
    """The loss of one batch, summed over its real target tokens (the trainer divides by those of the whole step)."""

    total: torch.Tensor
    """Scalar with a gradient, label smoothing included."""
    nll: torch.Tensor
    """Scalar without: the negative log-likelihood in nats."""
    tokens: int


@dataclass(frozen=True)
class Sample:
    """One validation sentence and what the model made of it."""

    source: str
    reference: str
    hypothesis: str


@dataclass(frozen=True)
class Validation:
    """The scores of one validation."""

    loss: float
    """Negative log-likelihood in nats per target token, without label smoothing."""
    bleu: float | None = None
    chrf: float | None = None
    samples: tuple[Sample, ...] = ()
    generated: int | None = None
    """Tokens generated for the scores, where known."""
    expected: int | None = None
    """Tokens of their references; an unlearned model generates far more, so a budget must not count on its time."""


class Objective(Protocol):
    """A task as training sees it."""

    @property
    def model(self) -> nn.Module:
        """The model; its fp32 master weights live in it."""
        ...

    def loss(self, batch: Batch) -> Loss:
        """The loss of a batch in training mode."""
        ...

    def validate(self, generate: bool) -> Validation:
        """Scores on the validation set; ``generate``: translate it and score BLEU and chrF too."""
        ...


class Feed(Protocol):
    """Batches from any position on, for ever; a pure function of the position."""

    @property
    def fingerprint(self) -> str:
        """Changes when the data, or the plan of batches, does."""
        ...

    def iterate(self, position: Position) -> Iterator[tuple[Batch, Position]]:
        """The batches from ``position`` on, each with the position of the next one."""
        ...


Weights = Mapping[str, torch.Tensor]
"""Tensors by parameter name, tied ones once."""
