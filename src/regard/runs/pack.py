"""Measures the engine's precisions on a model: the score that each keeps and its speed, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from regard.config import Recipe
from regard.data.prepare.folder import INDEX, VALIDATION
from regard.system import disk, kernels, processor
from regard.system.errors import Option, RegardError, UsageError
from regard.system.kernels.packing import Precision
from regard.tasks.engine import has_engine, why_torch
from regard.tasks.metrics.bleu import score
from regard.tasks.model_folder import load_recipe_and_assets, open_without_torch, write_packed
from regard.tasks.model_path import model_folder, weights_sha256
from regard.tasks.text.precisions import PACKED, Measured, PrecisionFile, refuse_before, write
from regard.tasks.translation.languages import between_files
from regard.text.counts import counted
from regard.text.lines import InvalidLines, matching_lines

Name = TypeVar("Name")
BLOCK = 32
"""Sentences that a precision answers before the next one's turn."""
FEW = 100
"""Below so many sentences the result is said to be uncertain."""


def pack(
    folder: Path | str,
    source: Path | None = None,
    reference: Path | None = None,
    told: Callable[[str], None] = lambda text: None,
) -> tuple[PrecisionFile, Path]:
    """Measure every precision on validation data, and keep the result beside the weights, or in the user's cache.

    The weights are kept there too, packed in the precision that is now used where none is asked for.

    Args:
        folder: of a model that the engine computes.
        source, reference: the data, line by line; default: what the run of the folder validated on.
        told: called before a turn, with what is done.

    Returns:
        What was measured, and the file that holds it.

    Raises:
        UsageError: the model writes nothing that BLEU is for, torch computes it, or there is no data.
        RegardError: the folder is damaged, or the files do not match.
    """
    folder = model_folder(folder)
    recipe, _ = load_recipe_and_assets(folder)
    if not PACKED & {*recipe.info.commands}:
        message = f"is {recipe.info.noun}; BLEU measures what translate and ask write; else give {Option('precision')}"
        raise UsageError(message, str(folder))
    _refuse_without_engine(folder, recipe)
    tasks: dict[Precision, Any] = {one: open_without_torch(folder, "cpu", one) for one in get_args(Precision)}
    refuse_before(folder)
    tasks, sources, references, target = validation_data(folder, tasks, source, reference, told)
    if len(sources) < FEW:
        told(f"{counted(len(sources), 'sentence')}: a score and a speed of so few say little")
    told(f"measuring {', '.join(tasks)} in turns on {counted(len(sources), 'sentence')}")
    found, seconds = _in_turns(tasks, sources)
    scores = {name: score(texts, references, target, samples=0) for name, texts in found.items()}
    measured = {
        name: Measured(score=one.bleu, speed=len(sources) / max(seconds[name], 1e-9)) for name, one in scores.items()
    }
    made = PrecisionFile(
        weights=weights_sha256(folder),
        sentences=len(sources),
        signature=scores["fp32"].bleu_signature,
        processor=f"{processor.kind()}, {kernels.in_use()}",
        measured=measured,
    )
    path = write(folder, made)
    try:
        packed = write_packed(folder, made.kept[0])
        told(f"wrote {packed} ({packed.stat().st_size / 1e6:,.1f} MB), with which the engine starts faster")
    except RegardError as error:
        told(f"{error}; weights are packed at every start")
    return made, path


def pack_weights(folder: Path | str, precision: Precision) -> Path:
    """Write the weights of a model of any task, packed in one precision, and measure nothing; where they are.

    Raises:
        UsageError: torch computes the model.
        RegardError: the folder is damaged, or neither it nor the user's cache can be written.
    """
    folder = model_folder(folder)
    recipe, _ = load_recipe_and_assets(folder)
    _refuse_without_engine(folder, recipe)
    return write_packed(folder, precision)


def _refuse_without_engine(folder: Path, recipe: Recipe) -> None:
    if not has_engine(recipe):
        message = f"precisions are the engine's, but torch computes this model ({why_torch(recipe)})"
        raise UsageError(message, str(folder))


def _in_turns(
    tasks: Mapping[Precision, Any], sources: Sequence[str]
) -> tuple[dict[Precision, list[str]], dict[Precision, float]]:
    """The answers in each precision, and seconds of processor time; every block begins with another one."""
    names = list(tasks)
    found: dict[Precision, list[str]] = {name: [] for name in names}
    seconds = dict.fromkeys(names, 0.0)
    for name in names:  # what only a first call does is not measured
        tasks[name].nbest(sources[:1], scores=False)
    for turn, begin in enumerate(range(0, len(sources), BLOCK)):
        for name in [*names[turn % len(names) :], *names[: turn % len(names)]]:
            before = time.process_time()
            answers = tasks[name].nbest(sources[begin : begin + BLOCK], first=begin + 1, scores=False)
            seconds[name] += time.process_time() - before
            found[name] += [hypotheses[0].text for hypotheses in answers]
    return found, seconds


def validation_data(
    folder: Path, tasks: Mapping[Name, Any], source: Path | None, reference: Path | None, told: Callable[[str], None]
) -> tuple[dict[Name, Any], list[str], list[str], str]:
    """What models of a folder are measured on: the models for its languages, sources, references, the target's code.

    Args:
        folder: of the model.
        tasks: the model, perhaps in several precisions.
        source, reference: the data, line by line; default: what the run of the folder validated on, of several
            directions the usual one where it was validated on.
        told: called with what is to be known of the data.

    Raises:
        UsageError: one file alone is given, or none and the run keeps no data.
        RegardError: the files do not match, or are empty.
    """
    sources, references = _validation(folder, source, reference, told)
    recipe, assets = (one := next(iter(tasks.values()))).recipe, one.assets
    target = recipe.text.target_language
    if source and reference and recipe.info.learns_from == "pairs":
        tasks = {name: between_files(task, (source, reference)) for name, task in tasks.items()}
        target = next(iter(tasks.values())).direction[1]
    elif held := _held(folder):
        usual = next((pair for pair in held if pair[1] == target), held[0])
        told_of, target = assets.languages.frame, usual[1]
        kept = [place for place, pair in enumerate(held) if told_of(*pair) == told_of(*usual)]
        sources, references = ([texts[place] for place in kept] for texts in (sources, references))
        tasks = {name: task.in_direction(usual) for name, task in tasks.items()}
    return dict(tasks), sources, references, target


def _held(folder: Path) -> list[tuple[str, str]]:
    """The languages of each pair that a run of several directions validated on; nothing of other runs."""
    path = folder / "training" / "data" / INDEX
    held = disk.json_of(path).get("held", ()) if path.exists() else ()
    return [(source, target) for source, target, count in held for _ in range(count)]


def _validation(
    folder: Path, source: Path | None, reference: Path | None, told: Callable[[str], None]
) -> tuple[list[str], list[str]]:
    """Sources and references; those of the run unless they are given."""
    both = f"{Option('source', 'FILE')} and {Option('reference', 'FILE')}"
    if (source is None) != (reference is None):
        missing = Option("source" if source is None else "reference")
        raise UsageError(f"give both {both}; {missing} is missing", missing)
    if source is None or reference is None:
        source, reference = (folder / "training" / "data" / name for name in VALIDATION)
        if not (source.is_file() and reference.is_file()):
            message = f"keeps no validation data to measure on; give {both}"
            raise UsageError(message, str(folder))
    notes = InvalidLines(source), InvalidLines(reference)
    sources, references = matching_lines(source, reference, notes)
    for one in notes:
        if one.invalid:
            told(one.message)
    if not any(map(str.strip, sources)):
        raise RegardError("nothing to measure on: there are no sentences", str(source))
    return sources, references
