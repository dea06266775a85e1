"""What a task brings to a run: how its data is prepared, its model made, taught, scored and described."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
from torch import nn

from regard.config import Recipe
from regard.data.survey import Progress
from regard.nn import ops
from regard.training.objective import Feed, Objective

ShouldStop = Callable[[], bool]


class Assets(Protocol):
    """What a model needs beside its weights: vocabularies, and the names of its labels."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Pieces that are read, and what is chosen from: target pieces, or labels."""
        ...

    @property
    def contents(self) -> Mapping[str, bytes]:
        """The files of a model folder that hold it, by name."""
        ...

    @property
    def sha256(self) -> str:
        """One fingerprint of it all."""
        ...


class Task(Protocol):
    """A model ready to use, with what it needs; each task has a class of its own, which says more."""

    name: ClassVar[str]
    recipe: Recipe

    @property
    def model(self) -> Any:
        """The model, on its device."""
        ...

    @property
    def assets(self) -> Any:
        """What it needs beside the weights."""
        ...

    @staticmethod
    def build(recipe: Recipe, sizes: tuple[int, int], key: int = 0) -> nn.Module:
        """The model of a recipe, its weights drawn from a key."""
        ...

    @staticmethod
    def opened(folder: Path) -> Any:
        """The assets of a model folder."""
        ...


class Prepared(Protocol):
    """Data ready to be learned from."""

    fingerprint: str
    left_out: dict[str, Any]
    mended: list[str]


class Batched(Feed, Protocol):
    """A feed that knows how long a pass over the data is."""

    @property
    def batches_per_epoch(self) -> float:
        """About how many batches a pass has."""
        ...


class Teaching(Objective, Protocol):
    """A task in the making, as training wants it, and what is said of it at the end."""

    @property
    def task(self) -> Task:
        """The task, its model in training."""
        ...

    @property
    def prepared(self) -> Prepared:
        """The data."""
        ...

    @property
    def batches(self) -> Batched:
        """What is learned from."""
        ...

    @property
    def epochs(self) -> int:
        """Passes over the data where nobody says how long to train."""
        ...

    def data_lines(self) -> list[str]:
        """The data in a line or two, for the card."""
        ...

    def final_seconds(self, loss: float, text: float) -> float:
        """About how long :meth:`finish` takes, by the seconds of a validation without and with what takes long."""
        ...

    def finish(self, task: Any, should_stop: ShouldStop) -> list[str]:
        """The scores of the saved model on the validation data, used as it will be; a line each, for the card.

        It may fit what is chosen on that data once the weights are done, e.g. a threshold, and keep it in the assets.
        """
        ...


@dataclass(frozen=True)
class Paths:
    """How products are computed while training, and while validating (``nn/ops.py``)."""

    training: ops.Path = "exact"
    exact: ops.Path = "exact"


class Job(Protocol):
    """One task on its data, before there is a model."""

    task: type[Any]

    def prepare(self, recipe: Recipe, folder: Path, progress: Progress) -> Any:
        """The data of the run, made or found in ``folder``."""
        ...

    def assets(self, prepared: Any) -> Any:
        """What the model needs beside its weights."""
        ...

    def begin(self, model: nn.Module) -> None:
        """Put into a fresh model what another one has learned already, if one was named."""
        ...

    def teach(self, task: Any, prepared: Any, paths: Paths) -> Teaching:
        """The teaching of a task whose model is fresh."""
        ...

    def more(self) -> dict[str, str]:
        """What else the run rests on, by name: the fingerprint of a model it begins from."""
        ...


def device_of(model: nn.Module) -> torch.device:
    """Where a model is."""
    return next(model.parameters()).device
