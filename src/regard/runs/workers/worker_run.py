"""What a process does of a run that another one leads: the same steps on its own shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.config import import_name, recipe_from
from regard.nn import ops
from regard.runs.plan import ResolvedSettings, Teacher, fingerprints
from regard.system.errors import RegardError
from regard.system.processor import keep_pages
from regard.tasks.text.preparation import Pretrained
from regard.tasks.training.base import ProductPaths
from regard.training.measure import measure as make_first_steps
from regard.training.trainer import Hooks, fit
from regard.training.update import MeasuredSteps
from regard.training.world import World


@dataclass
class WorkerRun:
    """The part of a run that this process has.

    Args:
        world: of the run.
        should_stop: asked before every step.
        teach: recipe and paths of products → training task.
        training: the private folder of the run, which the first process writes.
    """

    world: World
    should_stop: Callable[[], bool]
    teach: Teacher
    training: Path
    kept: MeasuredSteps | None = None

    @staticmethod
    def of(
        world: World,
        should_stop: Callable[[], bool],
        *,
        recipe: Mapping[str, object],
        job: str,
        start_from: str | None,
        training: str,
    ) -> WorkerRun:
        """Open the data that the first process has prepared.

        Args:
            world, should_stop: as of the class.
            recipe: its values.
            job: ``module:class`` of the training job.
            start_from: the folder of the model to initialise from.
            training: the private folder of the run.
        """
        keep_pages()
        torch.set_num_threads(1)
        read, folder = recipe_from(recipe), Path(training)
        whole = import_name(job).of_prepared(read, Pretrained.load(start_from) if start_from else None)
        try:
            prepared = whole.open(folder / "data")
        except OSError as error:
            message = f"process {world.rank} cannot read it ({error.strerror}); every host needs the same output folder"
            raise RegardError(message, str(folder)) from None
        return WorkerRun(world, should_stop, Teacher(whole, prepared, torch.device("cpu")), folder)

    def measure(self, *, recipe: Mapping[str, object], paths: Mapping[str, ops.Path], most: int) -> None:
        """Make the first steps with the first process, which times them."""
        whole = recipe_from(recipe)
        teaching = self.teach(whole, ProductPaths(**paths))
        _, self.kept = make_first_steps(
            teaching, teaching.batches, whole, self.training, Hooks(), 0.0, most, self.world
        )

    def fit(self, *, recipe: Mapping[str, object], settings: Mapping[str, object], kept: bool) -> None:
        """Train to the end."""
        chosen = ResolvedSettings.of(settings)
        whole = chosen.apply(recipe_from(recipe))
        teaching = self.teach(whole, chosen.paths)
        self.world.agree(fingerprints(teaching, torch.device("cpu")))
        hooks = Hooks(
            should_stop=self.should_stop,
            costs=chosen.parts,
            review=chosen.review,
            kept=self.kept if kept else None,
        )
        self.kept = None
        fit(teaching, teaching.batches, whole, self.training, hooks, self.world)
