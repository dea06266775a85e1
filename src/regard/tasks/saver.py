"""The model folder of a run: what stands in it from the start, then each best model, then the card with its scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.config import recipe_toml
from regard.decoding.trace import Trace
from regard.errors import Stopped
from regard.models import store
from regard.tasks import card
from regard.tasks.bundle import MODEL, RECIPE, load
from regard.tasks.teaching import Teaching
from regard.training import checkpoint, manifest
from regard.training.files import Files
from regard.training.objective import Validation, Weights
from regard.training.progress import Best


class Saver:
    """Writes the model folder: what stands from the start, then each best model, then its card."""

    def __init__(self, output: Path, teaching: Teaching, files: Files) -> None:
        self.output = output
        self.teaching = teaching
        self.files = files

    def begin(self) -> None:
        """Recipe and vocabularies, which exist from the start; beside a model its manifest knows of them at once."""
        translation = self.teaching.translation
        recipe = [recipe_toml(translation.recipe).encode()]
        if (self.output / manifest.NAME).exists():
            manifest.replace(self.output, {RECIPE: recipe}, self.files)
        else:
            for name, tokenizer in translation.vocabularies.files.items():
                self.files.replace(self.output / name, [tokenizer.content])
            self.files.replace(self.output / RECIPE, recipe)

    def best(self, weights: Weights, best: Best, validation: Validation) -> None:
        """The model folder with the best weights so far, replaced as one."""
        self._write({MODEL: store.chunks(weights)}, card.validated(best, validation))

    def end(self, told: Callable[[str], None], should_stop: Callable[[], bool]) -> None:
        """The card with the scores of the saved model on the validation pairs, searched as it will be used.

        Raises:
            Stopped: ``should_stop`` said so.
        """
        best = load(self.output, str(self.teaching.translation.device))
        told("translating the validation pairs with the best model")
        sources, references = zip(*self.teaching.prepared.validation_pairs(), strict=True)
        scores = best.evaluate(sources, references, trace=_Stoppable(should_stop))
        lines = card.scored(scores, best.recipe.decoding.beam)
        self._write({}, lines)
        for line in lines:
            told(line)

    def _write(self, contents: checkpoint.Contents, lines: list[str]) -> None:
        translation = self.teaching.translation
        count = sum(p.numel() for p in translation.model.parameters())
        text = card.card(translation.recipe, self.teaching.prepared, count, lines)
        tokenizers = {name: [tokenizer.content] for name, tokenizer in translation.vocabularies.files.items()}
        recipe = {RECIPE: [(self.output / RECIPE).read_bytes()]}
        manifest.replace(self.output, {**recipe, **tokenizers, **contents, card.CARD: [text.encode()]}, self.files)


class _Stoppable(Trace):
    """Asks at every step of a search whether to stop, and notes nothing."""

    def __init__(self, should_stop: Callable[[], bool]) -> None:
        super().__init__()
        self.should_stop = should_stop

    def record(self, *step: Any) -> None:
        """Raise Stopped if asked to: no step of training is open any more."""
        if self.should_stop():
            raise Stopped("stopped before the final scores; all is saved, the same command makes them")
