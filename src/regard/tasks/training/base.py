"""What training adds to a task: protocols of prepared data and training tasks, and the bases of tasks and jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self

from torch import nn

from regard.config import Recipe
from regard.data.corpora.corpus import Progress
from regard.data.corpora.scan import DataScan
from regard.data.prepare.folder import PreparedExamples, sha256_of
from regard.decoding.hypotheses import Trace
from regard.nn import ops
from regard.system.errors import Stopped
from regard.system.keys import key
from regard.tasks.model_path import MODEL
from regard.tasks.protocols import AnyTask, InputFiles, ShouldStop, Task
from regard.tasks.training.defaults import SizeDefaults, size_for
from regard.training.objective import BatchSource, Done, Loss, Validation, ignore_progress
from regard.training.world import ALONE, World

if TYPE_CHECKING:
    from regard.tasks.text.preparation import Pretrained

Tell = Callable[[str], None]


class RecipeFor(Protocol):
    """The requested recipe."""

    def __call__(self, count: int, seems: Mapping[str, object] | None = None) -> Recipe:
        """The recipe for n examples and for what the data suggests (dotted keys)."""


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


@dataclass(frozen=True)
class ProductPaths:
    """How products are computed while training, and while validating (``nn/ops.py``)."""

    training: ops.Path = "exact"
    exact: ops.Path = "exact"


class BaseTraining(ABC, Generic[AnyTask]):
    """A training task: an :class:`~regard.training.objective.Objective`, its data, and the card lines at the end.

    Args:
        task: the model to train.
        prepared: the data.
        paths: how products are computed.
        size: of the data as the table of sizes counts it: texts, images or characters.
        criterion: the loss, if it computes products.
    """

    sizes: ClassVar[Sequence[SizeDefaults]]
    """The documented table (docs/recipes.md) of the task's defaults: the first row the data is below."""
    spans: ClassVar[Sequence[SizeDefaults]] = ()
    """The same of text to text from running text."""
    adapted: ClassVar[Sequence[SizeDefaults]] = ()
    """The same of what goes on from another model, where that has its own."""
    batches: BatchedData
    """The training batches."""

    def __init__(
        self, task: AnyTask, prepared: Any, paths: ProductPaths, size: int, criterion: nn.Module | None = None
    ) -> None:
        self.task, self.prepared, self.size = task, prepared, size
        self.model: Any = task.model
        self._parts = [task.model] if criterion is None else [task.model, criterion]
        self.use(paths)

    def use(self, paths: ProductPaths) -> None:
        """Compute products by these paths from now on."""
        self.paths = paths
        for part in self._parts:
            ops.use(part, paths.training)

    @abstractmethod
    def loss(self, batch: Any) -> Loss:
        """The loss of a batch in training mode."""

    @abstractmethod
    def validate(self, generate: bool, world: World = ALONE) -> Validation:
        """Scores on the validation data; ``generate``: those too that take long."""

    @abstractmethod
    def predict_validation(self, done: Done = ignore_progress, world: World = ALONE) -> Any:
        """The validation data through the model as it is, in full precision; processes divide its batches."""

    @property
    def epochs(self) -> int:
        """Default passes over the data, by the table of sizes."""
        return size_for(self.sizes, self.size).of(self.task.recipe.model.family).epochs

    def trial(self, generate: bool, done: Done) -> None:
        """The validation data through the model; nothing takes longer."""
        if not generate:
            self.predict_validation(done)

    @abstractmethod
    def data_lines(self) -> list[str]:
        """The data in a line or two, for the card."""

    def final_seconds(self, loss: float, text: float) -> float:
        """About how long :meth:`finish` takes, by the seconds of a validation without and with what takes long."""
        return loss

    @abstractmethod
    def finish(self, task: AnyTask, should_stop: ShouldStop) -> list[str]:
        """Card lines with the saved model's scores on the validation data.

        It may fit values on that data, e.g. a threshold, and keep them in the assets.
        """

    def finish_begun(self, read: Callable[[], Task], should_stop: ShouldStop) -> list[str]:
        """The same of the model that the training began from, if its task is the same; ``read`` opens that."""
        return []


TrainingTask = BaseTraining[Task]
"""That of any task."""


@dataclass(frozen=True)
class TrainingJob(ABC):
    """One task on its data, before there is a model.

    Args:
        recipe: of the run.
        pretrained: the model to initialise from.
        processes: that prepare the data.
    """

    recipe: Recipe
    pretrained: Pretrained | None = field(default=None, kw_only=True)
    processes: int = field(default=1, kw_only=True)
    task: ClassVar[type[Any]]
    training: ClassVar[type[Any]]
    """The class of its training task."""
    opened: ClassVar[type[Any]] = PreparedExamples
    """The class of its prepared data, made of the folder it lies in."""
    unread: ClassVar[tuple[object, ...]] = (DataScan([]),)
    """What stands for the corpora in a process that does not read them."""

    @classmethod
    @abstractmethod
    def of_files(cls, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TrainingJob:
        """The job on files, which are opened and checked.

        Args:
            given: the files.
            asked: the requested recipe.
            tell: receives messages.
            despite_check: go on although the check finds that the data would spoil the model.

        Raises:
            UsageError: the files are not those of the task.
            RegardError: they cannot be read, or would spoil the model.
        """

    @classmethod
    def of_prepared(cls, recipe: Recipe, pretrained: Pretrained | None = None) -> Self:
        """The job in a process that reads only what another has prepared."""
        return cls(recipe, *cls.unread, pretrained=pretrained)

    def open(self, folder: Path) -> Any:
        """The data that was prepared in a folder."""
        return self.opened(folder)

    @abstractmethod
    def prepare(self, folder: Path, progress: Progress) -> Any:
        """The prepared data of the run, made or reused in ``folder``."""

    @abstractmethod
    def assets(self, prepared: Any) -> Any:
        """The assets of the model."""

    def teach(self, task: Task, prepared: Any, paths: ProductPaths) -> TrainingTask:
        """The training task for a freshly initialised model."""
        return self.training(task, prepared, paths)

    def begin(self, model: nn.Module, assets: Any) -> None:
        """Copy the weights of the pretrained model, if there is one, into a fresh model, and adapt it as it is to be.

        What :meth:`Pretrained.give` does not take from there is always trained: tables of more pieces, and the head of
        a model with labels: what they are is another matter in each data.
        """
        if not self.pretrained:
            return
        taken, own = self.pretrained.give(model, assets), self.recipe.info.has_labels
        if self.recipe.adapt.deciding():
            from regard.models.low_rank import adapt

            names = [name for name, _ in model.named_parameters()]
            fresh = {name for name in names if name not in taken or (own and name.startswith("head."))}
            adapt(model, self.recipe.adapt, fresh, key(self.recipe.seed, "factors"))

    def fit_fresh(self, task: Task, prepared: Any) -> None:  # noqa: B027  (nothing is what most need)
        """Fit what a pretrained model lacks to the data before it is trained; nothing, by default.

        Args:
            task: with the model, on the processor.
            prepared: the data.
        """

    def more(self) -> dict[str, str]:
        """What else the run rests on, by name: the fingerprint of the pretrained model."""
        return {"fingerprint.from": sha256_of(self.pretrained.folder / MODEL)} if self.pretrained else {}


def held_out(scanned: DataScan[Any], noun: str) -> dict[str, Any]:
    """The scan of the validation data, where there is some, by its name in a report."""
    return {f"the validation {noun}": scanned.validation} if scanned.validation else {}


class StoppableTrace(Trace):
    """Asks at every step of a search whether to stop, and notes nothing."""

    def __init__(self, should_stop: ShouldStop) -> None:
        super().__init__()
        self.should_stop = should_stop

    def record(self, *step: object) -> None:
        """Raise Stopped if requested: no training step is in progress."""
        if self.should_stop():
            raise Stopped("stopped before the final scores; all is saved, the same command makes them")
