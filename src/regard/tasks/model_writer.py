"""Writes the model folder of a run: assets at the start, then each best model, then the card with its scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.config import recipe_toml
from regard.decoding.trace import Trace
from regard.models import store
from regard.system.errors import Damaged, NoValidCheckpoint, Stopped, UsageError
from regard.tasks import card
from regard.tasks.model_folder import MODEL, RECIPE, load
from regard.tasks.protocols import Task, TrainingTask, device_of
from regard.training.checkpoints import checkpoint, manifest
from regard.training.checkpoints.files import Files
from regard.training.objective import Validation, Weights
from regard.training.progress import Best, load_progress


class ModelFolderWriter:
    """Writes the model folder: recipe and assets, then each best model, then its card."""

    def __init__(self, output: Path, teaching: TrainingTask, files: Files) -> None:
        self.output = output
        self.teaching = teaching
        self.files = files
        self.recipe = teaching.task.recipe

    def begin(self, told: Callable[[str], None]) -> None:
        """Write recipe and vocabularies at the start; a damaged model folder is rewritten and reported.

        Raises:
            NoValidCheckpoint: it is damaged, and so is the checkpoint of its model.
        """
        try:
            manifest.verify(self.output, extra=True)
        except Damaged as damage:
            self._renew(damage, told)
        else:
            manifest.replace(self.output, {RECIPE: [recipe_toml(self.recipe).encode()]}, self.files)

    def set_steps(self, steps: int) -> None:
        """Set the number of steps of the recipe to be written."""
        training = self.recipe.training.model_copy(update={"steps": steps})
        self.recipe = self.recipe.model_copy(update={"training": training})

    def best(self, weights: Weights, best: Best, validation: Validation) -> None:
        """The model folder with the best weights so far, replaced as one."""
        self._write({MODEL: store.chunks(weights)}, card.validation_lines(best, validation))

    def end(self, told: Callable[[str], None], should_stop: Callable[[], bool]) -> None:
        """Write the card with the saved model's scores on the validation data.

        Raises:
            Stopped: ``should_stop`` returned true.
        """
        best = load(self.output, str(device_of(self.teaching.model)))
        told("scoring the best model on the validation data")
        lines = self.teaching.finish(best, should_stop)
        self._write(dict(self._assets(best)), lines)
        for line in lines:
            told(line)

    def _renew(self, damage: Damaged, told: Callable[[str], None]) -> None:
        """Rewrite the model folder from its model's checkpoint; before there is one, recipe and assets only."""
        progress = load_progress(self.output / "training")
        best = progress.best if progress else None
        if best is None:
            if (self.output / manifest.NAME).exists():
                told(f"{damage}; training rewrites the model folder")
            self._forget()
            for name, content in self._standing().items():
                self.files.replace(self.output / name, content)
            return
        place = self.output / "training" / "checkpoints" / checkpoint.name(best.step)
        try:
            weights = checkpoint.weights(place)
        except (UsageError, Damaged):
            message = f"is lost or damaged, and the model folder is damaged ({damage}); put a good one there, or start "
            raise NoValidCheckpoint(f"{message}again with --resume never", str(place)) from None
        told(f"{damage}; the model folder is rewritten from {place.name}")
        self._forget()
        self._write({MODEL: store.chunks(weights)}, card.best_lines(best))

    def _forget(self) -> None:
        """Remove the manifests; killed in between, the next start finds the folder damaged again."""
        for name in (manifest.NEXT, manifest.NAME):
            if (self.output / name).exists():
                self.files.remove(self.output / name)

    def _standing(self) -> dict[str, list[bytes]]:
        return {**self._assets(self.teaching.task), RECIPE: [recipe_toml(self.recipe).encode()]}

    @staticmethod
    def _assets(task: Task) -> dict[str, list[bytes]]:
        return {name: [content] for name, content in task.assets.contents.items()}

    def _write(self, contents: checkpoint.Contents, lines: list[str]) -> None:
        teaching = self.teaching
        data = [*teaching.data_lines(), *card.left_out(teaching.prepared)]
        count = sum(p.numel() for p in teaching.model.parameters())
        text = card.card(self.recipe, data, teaching.prepared.fingerprint, count, lines)
        manifest.replace(self.output, {**self._standing(), **contents, card.CARD: [text.encode()]}, self.files)


class StoppableTrace(Trace):
    """Asks at every step of a search whether to stop, and notes nothing."""

    def __init__(self, should_stop: Callable[[], bool]) -> None:
        super().__init__()
        self.should_stop = should_stop

    def record(self, *step: Any) -> None:
        """Raise Stopped if requested: no training step is in progress."""
        if self.should_stop():
            raise Stopped("stopped before the final scores; all is saved, the same command makes them")
