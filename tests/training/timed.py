"""The toy on a clock of its own, on which only work takes time; and its runs of so many minutes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.data.batches.batch import PairBatch
from regard.training.budget import Costs, Replanning, length
from regard.training.checkpoints import resolved
from regard.training.log import Summary
from regard.training.measure import measure
from regard.training.objective import Done, Loss, Validation
from regard.training.trainer import Hooks
from regard.training.world import ALONE, World
from tests.training.toy import Corpus, Fast, Play, StopAt, Toy


class Clock:
    """Time passes only by work, so that every measure is exact; on a slower machine by more."""

    def __init__(self, slower: float = 1.0) -> None:
        self.now, self.slower = 0.0, slower

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds * self.slower


class Timed(Toy):
    """A toy whose losses and validations take a known time; the first losses, where it is cold, are slow.

    Unlearned it writes so many times what it should, in the time that it takes to write what it should.
    """

    def __init__(self, clock: Clock, unlearned: float = 1.0, cold: int = 5, step: float = 0.5) -> None:
        super().__init__()
        self.clock, self.calls, self.unlearned, self.cold, self.step = clock, 0, unlearned, cold, step

    def loss(self, batch: PairBatch) -> Loss:
        self.calls += 1
        self.clock.work(5.0 if self.calls <= self.cold else self.step)
        return super().loss(batch)

    def validate(self, generate: bool, world: World = ALONE) -> Validation:
        self.clock.work(14.0 if generate else 2.0)
        return super().validate(generate, world)

    def trial(self, generate: bool, done: Done) -> None:
        for part in range(0 if generate else 1, 101):
            self.clock.work((0.12 if generate else 0.02) if part else 0.0)
            done(min(1.0, part / 100 * self.unlearned) if generate else part / 100)


class SlowDisk(Fast):
    """Where a save takes a quarter of a second."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def mkdir(self, path: Path) -> None:
        self.clock.work(0.25)
        super().mkdir(path)


@dataclass
class Minutes(Play):
    """A run of so many minutes, measured and planned at its first start; what is written down is gone on with."""

    step: float = 0.5
    told: list[int] = field(default_factory=list)

    def planned(self, clock: Clock) -> None:
        """Measure, as a first start does, and plan."""
        self.output.mkdir()
        hooks = Hooks(clock=clock, files=SlowDisk(clock))
        costs, _ = measure(Timed(clock, step=self.step), Corpus(), self.recipe, self.output, hooks, 1e9)
        self.begun(length(self.recipe.training.minutes, costs, self.recipe.training).steps, costs)

    def begun(self, steps: int, costs: Costs | None) -> None:
        """A run that was planned so."""
        self.costs = costs
        training = self.recipe.training.model_copy(update={"steps": steps})
        self.recipe = self.recipe.model_copy(update={"training": training})

    @property
    def review(self) -> Replanning | None:
        """What is written down."""
        folder = self.output / "training"
        found: dict[str, Any] = resolved.read_fields(folder) if (folder / resolved.NAME).exists() else {}
        names = ("chosen.reviewed", "chosen.planned", "chosen.steps")
        return Replanning(*(found[name] for name in names)) if names[0] in found else None

    def go(self, clock: Clock, files: Fast | None = None, stop: StopAt | None = None) -> Summary:
        """Train, or go on, at the speed of this clock."""
        hooks = {"clock": clock, "costs": self.costs, "review": self.review, "planned": self.told.append}
        return self.fit(files, stop, Timed(clock, cold=0, step=self.step), **hooks)
