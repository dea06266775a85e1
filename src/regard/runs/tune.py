"""What is chosen of a finished model, and written to its folder: a search, the heads that align words.

A search is chosen by beam, length and coverage penalty on validation data; what the model is sure of is fitted, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np

from regard.config import recipe_toml
from regard.data.prepare.folder import PreparedPairs
from regard.runs.pack import FEW, validation_data
from regard.system import disk, kernels
from regard.system.errors import UsageError
from regard.system.processor import usable_cores
from regard.tasks.kinds import translates
from regard.tasks.metrics.bleu import score
from regard.tasks.metrics.calibration import doubted_below
from regard.tasks.model_folder import RECIPE, load, load_recipe_and_assets, open_without_torch
from regard.tasks.model_path import CARD, model_folder
from regard.tasks.translation.align import Heads, choose_heads
from regard.tasks.translation.calibration import calibrate
from regard.tasks.translation.guard import FEW as FITTED
from regard.tasks.translation.translator import Translation
from regard.text.confidence import CONFIDENCE, confidence_content
from regard.text.counts import counted
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files

BEAMS = (1, 2, 4, 8)
"""The beams that are tried beside that of the recipe."""
WIDE = 4
"""The beam that length penalties are tried with where that of the recipe is one."""
PENALTIES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6)
"""The length penalties that are tried beside that of the recipe."""
COVERAGES = (0.0, 0.1, 0.2)
"""The coverage penalties that are tried beside that of the recipe."""
GAIN = 0.1
"""BLEU that a wider beam or a coverage penalty has to gain, since it takes longer."""
TAKEN = 10_000
"""Pairs of a training by which heads are chosen: with more the choice is the same (docs/lab/2026-11.md)."""


@dataclass(frozen=True)
class Setting:
    """A way to search, and what it scores.

    Args:
        beam, length_penalty, coverage_penalty: of the section ``decoding``.
        bleu: on the validation data.
        length: of the outputs over that of the references, in words.
    """

    beam: int
    length_penalty: float
    bleu: float
    length: float
    coverage_penalty: float = 0.0

    @property
    def line(self) -> str:
        """A row of the table."""
        penalties = f"{self.length_penalty:14.1f}  {self.coverage_penalty:8.1f}"
        return f"{self.beam:4}  {penalties}  {self.bleu:6.2f}  {self.length:6.3f}"


SEARCH = "Searches tried on the validation data"
"""Title of the card's section of them, its last."""
HEAD = "beam  length penalty  coverage    BLEU  length"
"""The head of the table of settings."""


def tune(
    folder: Path | str,
    source: Path | None = None,
    reference: Path | None = None,
    dry_run: bool = False,
    told: Callable[[str], None] = lambda text: None,
) -> tuple[list[Setting], Setting]:
    """Try length penalties with the recipe's beam, beams with the best, then coverage penalties; write what is chosen.

    The card gets the table of all that were tried.

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

    own = recipe.decoding

    def measure(beam: int, length_penalty: float, coverage: float = own.coverage_penalty) -> None:
        asked = beam, length_penalty, coverage
        if any((one.beam, one.length_penalty, one.coverage_penalty) == asked for one in tried):
            return
        settings = [f"decoding.length_penalty={length_penalty}", f"decoding.coverage_penalty={coverage}"]
        searched = tasks[""].with_settings(settings)
        found = searched.best(sources, beam)
        words = sum(len(text.split()) for text in found) / max(1, sum(len(text.split()) for text in references))
        tried.append(Setting(beam, length_penalty, score(found, references, target, samples=0).bleu, words, coverage))
        told(tried[-1].line)

    wide = own.beam if own.beam > 1 else WIDE  # to a beam of one a length penalty is nothing
    for penalty in sorted({own.length_penalty, *PENALTIES}):
        measure(wide, penalty)
    best = max(tried, key=lambda one: (one.bleu, -abs(one.length_penalty - own.length_penalty)))
    for beam in sorted({own.beam, *BEAMS}):
        measure(beam, best.length_penalty)
    chosen = choose([one for one in tried if one.length_penalty == best.length_penalty])
    if chosen.beam > 1:
        with suppress(UsageError):  # a model without attention, or whose search goes with no such penalty
            for coverage in COVERAGES:
                measure(chosen.beam, chosen.length_penalty, coverage)
        chosen = choose([one for one in tried if one.length_penalty == best.length_penalty])
    found = {name: getattr(chosen, name) for name in ("beam", "length_penalty", "coverage_penalty")}
    decoding = own.model_copy(update=found)
    changed = decoding != own
    recipe = recipe.model_copy(update={"decoding": decoding})
    contents = {RECIPE: [recipe_toml(recipe).encode()]} if changed else {}
    if recipe.info.learns_from == "pairs" and len(sources) >= FITTED:
        told("fitting what the guard and confidences of words mean")
        settings = [f"decoding.{name}={value}" for name, value in found.items()]
        contents[CONFIDENCE] = [_fit_confidence(tasks[""].with_settings(settings), sources, references)]
    if not dry_run:
        contents[CARD] = [_with_table(folder / CARD, [one.line for one in tried]).encode()]
        manifest.replace(folder, contents, Files())
    return tried, chosen


def _with_table(card: Path, lines: list[str]) -> str:
    """The card with the table that a search was chosen from, in the place of an earlier one."""
    text = disk.content(card, kind="card").decode("utf-8", "replace") if card.exists() else ""
    table = "\n".join([f"## {SEARCH}", "", *(f"    {line}" for line in (HEAD, *lines))])
    return f"{text.partition(f'## {SEARCH}')[0].rstrip()}\n\n{table}\n"


def _fit_confidence(task: Translation, sources: list[str], references: list[str]) -> bytes:
    """The file of what is usual of a model's translations, fitted to these pairs."""
    best = [one for one, *_ in task.nbest(sources)]
    right = [one.text.strip() == wanted.strip() for one, wanted in zip(best, references, strict=True)]
    found = calibrate(zip(repeat(task), sources, references, best, strict=False))
    return confidence_content(doubted_below([one.confidence for one in best], right), found)


def choose(settings: list[Setting]) -> Setting:
    """The narrowest beam, and the smallest coverage penalty, that no wider or larger one beats by :data:`GAIN`."""
    ordered = sorted(settings, key=lambda one: (one.beam, one.coverage_penalty))
    best = [max(one.bleu for one in ordered[place:]) for place in range(len(ordered))]
    return next(one for one, dearer in zip(ordered, best, strict=True) if dearer < one.bleu + GAIN)


def tune_alignment(
    folder: Path | str, texts: Sequence[str] | None = None, translations: Sequence[str] = ()
) -> tuple[Heads, float, float]:
    """Choose the heads by these pairs, or by those that the model learned from, and write them to the recipe.

    Returns:
        The heads, and how many links agree with the lexical model: their own, and those of the usual choice.

    Raises:
        UsageError: the model translates nothing, or there are too few pairs, or none that it learned from.
    """
    folder = model_folder(folder)
    recipe, _ = load_recipe_and_assets(folder)
    if recipe.info.learns_from != "pairs":
        raise UsageError(f"is {recipe.info.noun}; words are aligned by models that translate", str(folder))
    task = open_without_torch(folder, "cpu") or load(folder)
    assert translates(task)
    if texts is None:
        texts, translations = learned_pairs(folder)
    heads, *agreement = choose_heads(task, texts, translations)
    decoding = recipe.decoding.model_copy(update={"alignment_heads": tuple(map(str, heads))})
    content = recipe_toml(recipe.model_copy(update={"decoding": decoding})).encode()
    manifest.replace(folder, {RECIPE: [content]}, Files())
    return heads, agreement[0], agreement[1]


def learned_pairs(folder: Path) -> tuple[list[str], list[str]]:
    """The pairs that a model learned from, of many :data:`TAKEN` at equal distances, as its training prepared them.

    Raises:
        UsageError: they are not there, or are of several directions.
    """
    data = folder / "training" / "data"
    if not data.is_dir():
        raise UsageError(
            "has no training data beside it; give --input and --target with some thousand pairs", str(folder)
        )
    prepared = PreparedPairs(data)
    if prepared.directions:
        raise UsageError("learned several directions; give --input and --target with pairs of one", str(folder))
    places = np.linspace(0, prepared.pairs - 1, min(prepared.pairs, TAKEN), dtype=np.int64)
    both, texts = prepared.vocabularies, list[list[str]]()
    for side, tokenizer in ((prepared.source, both.source), (prepared.target, both.target)):
        ids_T, lengths_B = side.gather(0, places)
        texts.append(tokenizer.decode_batch(np.split(ids_T, lengths_B.cumsum()[:-1])))
    return texts[0], texts[1]
