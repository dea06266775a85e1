"""What a run holds while it goes, and how it goes back to its newest whole checkpoint."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from regard.config import Recipe, Training
from regard.training import tensors
from regard.training.budget import Costs, Review
from regard.training.build import schedule
from regard.training.checkpoint import Checkpoints
from regard.training.files import Files
from regard.training.kept import Kept
from regard.training.log import Board, MetricsLog, Quiet, Reporter, Start
from regard.training.objective import Feed, Objective, Validation, Weights
from regard.training.optim import FlatOptimiser
from regard.training.progress import Best, Progress
from regard.training.resolved import Fields
from regard.training.update import Updates


def _dropout_reseed(key: int) -> None:
    from regard.nn.dropout import reseed

    reseed(key)


def _never() -> bool:
    return False


def _ignore(weights: Weights, best: Best, validation: Validation) -> None:
    """Where nobody wants the model folder."""


def _unheard(steps: int) -> None:
    """Where nobody wants to know."""


@dataclass(frozen=True)
class Hooks:
    """What a caller may give ``fit`` beside the work itself."""

    reporter: Reporter = field(default_factory=Quiet)
    should_stop: Callable[[], bool] = _never
    """Asked before every step; the command line turns SIGTERM and SIGINT into it."""
    save_model: Callable[[Weights, Best, Validation], None] = _ignore
    """Writes the model folder whenever a new best is found; must replace atomically (``manifest.replace``)."""
    reseed: Callable[[int], None] = _dropout_reseed
    clock: Callable[[], float] = time.monotonic
    files: Files = field(default_factory=Files)
    resolved: Fields = field(default_factory=dict)
    """What ``resolved.toml`` says; every checkpoint says it too."""
    costs: Costs | None = None
    """What the steps of a run of so many minutes were planned by; such a run is planned anew midway."""
    review: Review | None = None
    """What came of that, where an earlier process did it."""
    kept: Kept | None = None
    """The run's first steps, where they were made while it was measured; only a run at its start takes them."""
    planned: Callable[[int], None] = _unheard
    """Told how many steps there are to be, where they are planned anew."""
    track: bool = False
    """Write TensorBoard files too."""


class Run:
    """What a run holds while it goes; saved are ``progress``, the optimiser's tensors and what was ``resolved``."""

    def __init__(self, objective: Objective, feed: Feed, recipe: Recipe, folder: Path, hooks: Hooks) -> None:
        section = recipe.training
        self.objective, self.feed, self.recipe, self.folder, self.hooks = objective, feed, recipe, folder, hooks
        self.optimiser = FlatOptimiser(objective.model, section)
        self.resolved = hooks.resolved
        self.updates = Updates(objective, self.optimiser, recipe, schedule(section, recipe.model.d_model), hooks.reseed)
        self.review: Review | None = None
        self.first = self.last = section
        if hooks.review:
            self.follow(hooks.review)
        self.validate_every = section.validate_every or validation_interval(self.first.steps)
        self.save_every = section.save_every or self.validate_every
        for inner in (folder, folder / "checkpoints", folder / "snapshots"):
            inner.mkdir(parents=True, exist_ok=True)
        self.checkpoints = Checkpoints(folder / "checkpoints", hooks.files, section.keep, self.event)
        self.log = MetricsLog(folder / "metrics.jsonl", hooks.files)
        self.progress = Progress()
        self.failed_saves = 0
        self.started = hooks.clock()
        self.board: Board | None = None

    def follow(self, review: Review) -> None:
        """Make the steps that were planned first up to the review, and behind it those planned anew."""
        self.review = review
        self.first = self.first.model_copy(update={"steps": review.planned})
        self.last = self.first.model_copy(update={"steps": review.steps})
        self.updates.rate = schedule(self.first, self.recipe.model.d_model, review)

    @property
    def section(self) -> Training:
        """How weights are made; of so many steps as are planned where the run is, a function of its step alone."""
        return self.last if self.review and self.progress.step > self.review.at else self.first

    @property
    def seconds(self) -> float:
        """Seconds of training, those before a stop included."""
        return self.progress.seconds + self.hooks.clock() - self.started

    def event(self, text: str) -> None:
        """Say and log that something happened."""
        self.hooks.reporter.on_event(text)
        self.log.write("event", self.progress.step, text=text)


def validation_interval(steps: int | None) -> int:
    """Steps between validations where the recipe leaves them open: a twentieth of the run, a short run's hundred."""
    return 1000 if steps is None else max(1, steps // 20, min(steps, 100))


def resume(run: Run) -> None:
    """Go back to the newest whole checkpoint, if there is one; the log is cut back to its step."""
    run.checkpoints.sweep()
    for remains in (*run.folder.glob(".*.partial-*"), *(run.folder / "snapshots").glob("step-*.partial-*")):
        run.hooks.files.remove(remains)
    loaded = run.checkpoints.load()
    if loaded:
        run.progress = Progress.of(loaded.state, loaded.path)
        section = run.section
        run.progress.finished &= run.progress.over(section.steps, section.patience)  # more may be asked for than before
        with contextlib.suppress(OSError):  # the next save does it too
            run.checkpoints.settle(loaded.path, run.progress.best_step, run.progress.finished)
        averages = loaded.path / "ema.safetensors"
        run.optimiser.restore(
            tensors.load(loaded.path / "weights.safetensors"),
            tensors.load(loaded.path / "optimiser.safetensors"),
            tensors.load(averages) if averages.exists() else {},
        )
    run.log.truncate(run.progress.step)
    run.objective.model.train()
    if run.hooks.track:
        run.board = Board(run.folder / "tensorboard", run.progress.step)
    announce(run)
    run.started = run.hooks.clock()


def announce(run: Run) -> None:
    """Say and log from where the run goes to where."""
    start = beginning(run)
    run.hooks.reporter.on_start(start)
    run.log.write("start", **asdict(start), torch=torch.__version__)


def beginning(run: Run) -> Start:
    """What is known of the run where it is, and how many steps it is to make."""
    section = run.last
    count = sum(p.numel() for p in run.optimiser.parameters.values())
    return Start(run.progress.step, section.steps, count, section.tokens * section.accumulate, run.validate_every)
