"""Chooses how a model searches, its beam and its length penalty, on validation data; and fits what it is sure of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from regard.config import recipe_toml
from regard.runs.pack import FEW, validation_data
from regard.system import kernels
from regard.system.errors import UsageError
from regard.system.processor import usable_cores
from regard.tasks.metrics.bleu import score
from regard.tasks.metrics.calibration import doubted_below
from regard.tasks.model_folder import RECIPE, load, load_recipe_and_assets, open_without_torch
from regard.tasks.model_path import model_folder
from regard.tasks.translation.calibration import calibrate
from regard.tasks.translation.guard import FEW as FITTED
from regard.tasks.translation.translator import Translation
from regard.text.confidence import CONFIDENCE, confidence_content
from regard.text.counts import counted
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files

BEAMS = (1, 2, 4, 8)
"""The beams that are tried beside that of the recipe."""
PENALTIES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6)
"""The length penalties that are tried beside that of the recipe."""
GAIN = 0.1
"""BLEU that a wider beam has to gain, since it takes longer."""


@dataclass(frozen=True)
class Setting:
    """A way to search, and what it scores.

    Args:
        beam, length_penalty: of the section ``decoding``.
        bleu: on the validation data.
        length: of the outputs over that of the references, in words.
    """

    beam: int
    length_penalty: float
    bleu: float
    length: float

    @property
    def line(self) -> str:
        """A row of the table."""
        return f"{self.beam:4}  {self.length_penalty:14.1f}  {self.bleu:6.2f}  {self.length:6.3f}"


HEAD = "beam  length penalty    BLEU  length"
"""The head of the table of settings."""


def tune(
    folder: Path | str,
    source: Path | None = None,
    reference: Path | None = None,
    dry_run: bool = False,
    told: Callable[[str], None] = lambda text: None,
) -> tuple[list[Setting], Setting]:
    """Try length penalties with the recipe's beam, then beams with the best of them, and write the best to the recipe.

    Of a translator and 100 pairs or more it also fits, as the end of a training does, below which confidence outputs
    are doubted, what the guard warns of, and confidences of words.

    Args:
        folder: of a model that translates or answers.
        source, reference: the validation data, line by line; default: what the run of the folder validated on.
        dry_run: leave the folder as it is.
        told: called with every row of the table.

    Returns:
        Every setting that was tried, and the chosen one.

    Raises:
        UsageError: the model writes no text that BLEU is for, or there is no data.
        RegardError: the folder is damaged, or the files do not match.
    """
    folder = model_folder(folder)
    recipe, _ = load_recipe_and_assets(folder)
    if recipe.info.writes != "text":
        raise UsageError(f"is {recipe.info.noun}; searches are tuned for what translate and ask write", str(folder))
    kernels.use_threads(usable_cores())
    task = open_without_torch(folder, "cpu") or load(folder)
    tasks, sources, references, target = validation_data(folder, {"": task}, source, reference, told)
    if len(sources) < FEW:
        told(f"{counted(len(sources), 'sentence')}: a choice by so few says little of other texts")
    told(HEAD)
    tried: list[Setting] = []

    def measure(beam: int, length_penalty: float) -> None:
        if any((one.beam, one.length_penalty) == (beam, length_penalty) for one in tried):
            return
        searched = tasks[""].with_settings([f"decoding.length_penalty={length_penalty}"])
        found = [best.text for best, *_ in searched.nbest(sources, 1, beam, scores=False)]
        words = sum(len(text.split()) for text in found) / max(1, sum(len(text.split()) for text in references))
        tried.append(Setting(beam, length_penalty, score(found, references, target, samples=0).bleu, words))
        told(tried[-1].line)

    own = recipe.decoding
    for penalty in sorted({own.length_penalty, *PENALTIES}):
        measure(own.beam, penalty)
    best = max(tried, key=lambda one: (one.bleu, -abs(one.length_penalty - own.length_penalty)))
    for beam in sorted({own.beam, *BEAMS}):
        measure(beam, best.length_penalty)
    chosen = choose([one for one in tried if one.length_penalty == best.length_penalty])
    changed = (chosen.beam, chosen.length_penalty) != (own.beam, own.length_penalty)
    decoding = own.model_copy(update={"beam": chosen.beam, "length_penalty": chosen.length_penalty})
    recipe = recipe.model_copy(update={"decoding": decoding})
    contents = {RECIPE: [recipe_toml(recipe).encode()]} if changed else {}
    if recipe.info.learns_from == "pairs" and len(sources) >= FITTED:
        told("fitting what the guard and confidences of words mean")
        settings = [f"decoding.length_penalty={chosen.length_penalty}", f"decoding.beam={chosen.beam}"]
        contents[CONFIDENCE] = [_fit_confidence(tasks[""].with_settings(settings), sources, references)]
    if contents and not dry_run:
        manifest.replace(folder, contents, Files())
    return tried, chosen


def _fit_confidence(task: Translation, sources: list[str], references: list[str]) -> bytes:
    """The file of what is usual of a model's translations, fitted to these pairs."""
    best = [one for one, *_ in task.nbest(sources)]
    right = [one.text.strip() == wanted.strip() for one, wanted in zip(best, references, strict=True)]
    found = calibrate(zip(repeat(task), sources, references, best, strict=False))
    return confidence_content(doubted_below([one.confidence for one in best], right), found)


def choose(settings: list[Setting]) -> Setting:
    """The narrowest beam that no wider one beats by :data:`GAIN`."""
    ordered = sorted(settings, key=lambda one: one.beam)
    best = [max(one.bleu for one in ordered[place:]) for place in range(len(ordered))]
    return next(one for one, wider in zip(ordered, best, strict=True) if wider < one.bleu + GAIN)
