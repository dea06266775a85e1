"""Protocols of tasks and their assets; the input files of a task, and the bases of training tasks and jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import nn

from regard.config import Recipe, TaskInfo
from regard.data.corpora.corpus import Progress
from regard.nn import ops
from regard.system.errors import UsageError
from regard.tasks.defaults import epochs_for
from regard.tasks.text.pretrained import Pretrained
from regard.training.objective import BatchSource, Done, Objective, ignore_progress

if TYPE_CHECKING:
    from regard.data.batches.batch import Packed
    from regard.decoding.hypotheses import Symbols
    from regard.models.gpt import Gpt
    from regard.models.inputs import Tokens
    from regard.models.rnn import Reader, Rnn
    from regard.models.transformer import Transformer
    from regard.text.seen_words import Side, UnseenWord
    from regard.text.tokenizers.vocabulary import AnyTokenizer

Files = Sequence[Path | str]
Read = tuple[int, int, int]
"""An input id and its characters, from and to; none for a symbol."""
Opened = TypeVar("Opened")
ShouldStop = Callable[[], bool]


@dataclass(frozen=True)
class InputFiles:
    """The input files of a training.

    Args:
        train: training files of any task but translation.
        valid: validation file, if not split off.
        columns: columns or keys of ``train``, or of ``pairs``.
        begun: a model to initialise from.
        source, target: training files of a translator, line by line each other's translation.
        pairs: files that hold both sides.
        valid_source, valid_target: validation files of a translator.
    """

    train: Files = ()
    valid: Path | str | None = None
    columns: str | None = None
    begun: Pretrained | None = None
    source: Files = ()
    target: Files = ()
    pairs: Files = ()
    valid_source: Path | str | None = None
    valid_target: Path | str | None = None

    def corpora(self, opened: Callable[[Path | str, str | None], Opened]) -> tuple[list[Opened], Opened | None]:
        """The corpora of the files, and that to validate on.

        Raises:
            UsageError: no file is given, or one is not there, or can be read only once.
        """
        files = [*self.train, *([self.valid] if self.valid is not None else [])]
        if not self.train:
            raise UsageError("nothing to learn from: give --train FILE")
        for path in map(Path, files):
            if not path.is_file():
                refuse_pipes([path])
                raise UsageError("is a folder; a file is needed" if path.exists() else "no such file", str(path))
        learned = [opened(path, self.columns) for path in self.train]
        return learned, opened(self.valid, self.columns) if self.valid is not None else None


def refuse_pipes(files: Files) -> None:
    """Name the first file that can be read only once; training reads its data several times.

    Raises:
        UsageError: it is a pipe, or a device.
    """
    for path in files:
        if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
            raise UsageError("is a pipe or a device, but training reads more than once; give a file", str(path))


class Assets(Protocol):
    """Assets of a model besides its weights: vocabularies and label names."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of input pieces and of outputs (target pieces or labels)."""

    @property
    def contents(self) -> Mapping[str, bytes]:
        """The files of a model folder that hold it, by name."""

    @property
    def sha256(self) -> str:
        """One fingerprint of it all."""


class Task(Protocol):
    """A loaded model with its assets; each task has its own class."""

    recipe: Recipe

    @property
    def info(self) -> TaskInfo:
        """The row of its task."""

    @property
    def name(self) -> str:
        """The recipe's word."""

    @property
    def model(self) -> nn.Module:
        """The model, on its device."""

    @property
    def assets(self) -> Assets:
        """The assets besides the weights."""

    @property
    def device(self) -> torch.device:
        """Where the model is."""


class TextModel(Task, Protocol):
    """A task that reads texts."""

    @property
    def source_tokenizer(self) -> AnyTokenizer:
        """Of what is read."""

    @property
    def target_tokenizer(self) -> AnyTokenizer:
        """Of what is written, if anything."""

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The model's input for a text, and its characters."""

    def unseen_words(self, text: str) -> list[UnseenWord] | None:
        """The words of a text that training never saw, in order; None where the model folder does not say."""

    def unseen_pieces(self, side: Side) -> frozenset[int] | None:
        """The pieces of a vocabulary that no training text has; None where the model folder does not say."""


class SingleTextModel(TextModel, Protocol):
    """A task whose model has one stack, and so one text at a time."""

    @property
    def model(self) -> Reader | Gpt:
        """The model, on its device."""

    def inputs(self, packed: Packed) -> Tokens:
        """The model's input."""

    def pack(self, ids: Sequence[int]) -> Tokens:
        """One framed input as the model reads it."""


class TextWriter(TextModel, Protocol):
    """A task whose model writes, token by token."""

    symbols: Symbols


class TargetWriter(TextWriter, Protocol):
    """A task that reads a text and writes another."""

    @property
    def model(self) -> Transformer | Rnn:
        """The model, on its device."""

    def reads_target(self, text: str) -> tuple[str, list[Read]]:
        """The pieces of a text to be written, and their characters."""


AnyTask = TypeVar("AnyTask", bound=Task)


class PreparedData(Protocol):
    """Data ready to be learned from."""

    fingerprint: str
    left_out: dict[str, Any]
    mended: list[str]


class BatchedData(BatchSource, Protocol):
    """A feed that knows how long a pass over the data is."""

    @property
    def batches_per_epoch(self) -> float:
        """About how many batches a pass has."""


class TrainingTask(Objective, Protocol):
    """A training task: objective and data, and the card lines at the end."""

    @property
    def task(self) -> Task:
        """The task, its model in training."""

    @property
    def prepared(self) -> PreparedData:
        """The data."""

    @property
    def batches(self) -> BatchedData:
        """The training batches."""

    @property
    def epochs(self) -> int:
        """Default passes over the data."""

    @property
    def paths(self) -> ProductPaths:
        """How products are computed."""

    def use(self, paths: ProductPaths) -> None:
        """Compute products by these paths from now on."""

    def data_lines(self) -> list[str]:
        """The data in a line or two, for the card."""

    def final_seconds(self, loss: float, text: float) -> float:
        """About how long :meth:`finish` takes, by the seconds of a validation without and with what takes long."""

    def finish(self, task: Task, should_stop: ShouldStop) -> list[str]:
        """Card lines with the saved model's scores on the validation data.

        It may fit values on that data, e.g. a threshold, and keep them in the assets.
        """


@dataclass(frozen=True)
class ProductPaths:
    """How products are computed while training, and while validating (``nn/ops.py``)."""

    training: ops.Path = "exact"
    exact: ops.Path = "exact"


class BaseTraining(ABC, Generic[AnyTask]):
    """What every training task has.

    Args:
        task: the model to train.
        prepared: the data.
        paths: how products are computed.
        size: of the data as the table of sizes counts it: texts, images or characters.
        criterion: the loss, if it computes products.
    """

    def __init__(
        self, task: AnyTask, prepared: Any, paths: ProductPaths, size: int, criterion: nn.Module | None = None
    ) -> None:
        self.task, self.prepared, self.size = task, prepared, size
        self._parts = [task.model] if criterion is None else [task.model, criterion]
        self.use(paths)

    def use(self, paths: ProductPaths) -> None:
        """Compute products by these paths from now on."""
        self.paths = paths
        for part in self._parts:
            ops.use(part, paths.training)

    @abstractmethod
    def predict_validation(self, done: Done = ignore_progress) -> Any:
        """The validation data through the model as it is, in full precision."""

    @property
    def model(self) -> Any:
        """The model to train."""
        return self.task.model

    @property
    def epochs(self) -> int:
        """By the table of sizes."""
        return epochs_for(self.task.recipe.task, self.size, self.task.recipe.model.family)

    def trial(self, generate: bool, done: Done) -> None:
        """The validation data through the model; nothing takes longer."""
        if not generate:
            self.predict_validation(done)

    def final_seconds(self, loss: float, text: float) -> float:
        """As a validation."""
        return loss


@dataclass(frozen=True)
class TrainingJob(ABC):
    """One task on its data, before there is a model.

    Args:
        recipe: of the run.
        pretrained: the model to initialise from.
    """

    recipe: Recipe
    pretrained: Pretrained | None = field(default=None, kw_only=True)
    task: ClassVar[type[Any]]
    training: ClassVar[type[Any]]
    """The class of its training task."""

    @abstractmethod
    def prepare(self, folder: Path, progress: Progress) -> Any:
        """The prepared data of the run, made or reused in ``folder``."""

    @abstractmethod
    def assets(self, prepared: Any) -> Any:
        """The assets of the model."""

    def teach(self, task: Task, prepared: Any, paths: ProductPaths) -> TrainingTask:
        """The training task for a freshly initialised model."""
        found: TrainingTask = self.training(task, prepared, paths)
        return found

    def begin(self, model: nn.Module) -> None:
        """Copy the weights of the pretrained model, if there is one, into a fresh model."""
        if self.pretrained:
            self.pretrained.give(model)

    def more(self) -> dict[str, str]:
        """What else the run rests on, by name: the fingerprint of the pretrained model."""
        return self.pretrained.fingerprint if self.pretrained else {}


def device_of(model: nn.Module) -> torch.device:
    """Where a model is."""
    return next(model.parameters()).device
