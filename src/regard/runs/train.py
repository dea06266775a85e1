"""``train``: options → recipe → training run, for every task."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from regard import tasks
from regard.config import TASKS
from regard.runs.options import (
    RecipeOptions,
    language_notes,
    languages,
    name_of,
    named_files,
    recipe_from_options,
    shell_line,
    task_option,
    weights_option,
)
from regard.runs.run import Machine, TrainingRun, run
from regard.runs.workers.group import torchrun_process
from regard.system.errors import Option, RegardError, UsageError
from regard.system.forks import end_with
from regard.tasks.model_folder import choose_device
from regard.tasks.protocols import Files, InputFiles
from regard.tasks.text.preparation import Pretrained
from regard.tasks.training.base import TrainingJob
from regard.training import reporters
from regard.training.checkpoints import resolved
from regard.training.checkpoints.output_folder import Resume, refuse_unusable
from regard.training.checkpoints.provenance import RunInputs
from regard.training.log import Reporter
from regard.training.trainer import Hooks

UNNAMED = ("resume", "reporter", "quiet", "should_stop", "job_class")
"""Arguments that do not belong to the command on the card."""
LONGEST_LICENCE = 200
"""Characters."""
CHECKING = "checking the data"
"""Message before the first pass over the data."""


def train(
    source: Files | Path | str | None = None,
    target: Files | Path | str | None = None,
    output: Path | str = "model",
    *,
    task: str | None = None,
    train: Files | Path | str | None = None,
    valid: Path | str | None = None,
    start_from: Path | str | None = None,
    valid_source: Path | str | None = None,
    valid_target: Path | str | None = None,
    pairs: Files | Path | str | None = None,
    columns: str | None = None,
    weights: Sequence[float] = (),
    source_language: str | None = None,
    target_language: str | None = None,
    recipe: Path | str | Mapping[str, object] | None = None,
    preset: str | None = None,
    settings: Iterable[str] = (),
    minutes: float | None = None,
    steps: int | None = None,
    seed: int | None = None,
    resume: Resume = "auto",
    allow_mismatch: Iterable[str] = (),
    despite_check: bool = False,
    threads: int | None = None,
    processes: int | None = None,
    device: str | None = None,
    tensorboard: bool = False,
    licence: str | None = None,
    reporter: Reporter | None = None,
    quiet: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    job_class: type[TrainingJob] | None = None,
) -> Any:
    """Train a translator from two files of sentences, or a model of another task from one file.

    Progress goes to stderr: a bar on a terminal, a line in a notebook, lines elsewhere. After a stop or kill at
    any moment, the same call resumes and ends with the same bits.

    Args:
        source, target: of a translator: one file or several each, line by line each other's translation; plain or gz,
            xz, zst.
        output: the model folder to make, or to resume.
        task: what the model is for; default: the recipe's, else translation.
        train: of any other task: training data, one file or several.
        valid: validation data; default: a tenth, at most ``data.validation``, split off by seed.
        start_from: a model folder to initialise weights, sizes and vocabulary from; not for translation.
        valid_source, valid_target: sentences to validate on; default: some split off from the data.
        pairs: one TSV or JSONL file that holds both sides, or several; ``columns`` says where.
        columns: of ``pairs``, or of ``train``: the columns of text and label.
        weights: of a translator: how often to draw from each corpus; default: by size.
        source_language, target_language: codes; default: the recipe's, else from the files' extensions.
        recipe: a TOML file, or its values; ``preset``: a named size; ``settings``: ``section.key=value`` strings.
        minutes: time budget; ``steps``: number of updates; default: the recipe's, else by corpus size.
        seed: of every random choice.
        resume: ``auto``, ``must`` or ``never``; ``allow_mismatch``: fields that may differ from the run's, of
            ``regard.training.checkpoints.resolved.ALLOWED``; more ``training.steps`` make a finished run continue.
        despite_check: train although the check of the data judges that it would spoil the model.
        threads: of the processor; ``device``: ``cpu``, ``cuda`` …
        processes: that divide the shards of every step (``training.shards``); the weights do not depend on how many
            there are. Default: as many as there are free cores, and two at least, at most the shards.
        tensorboard: write TensorBoard files too, into ``training/tensorboard`` (needs the extra ``track``).
        licence: of the data, e.g. ``"CC BY 4.0"``; it is named on the model's card, and nothing else depends on it.
        reporter: receives progress instead of stderr; ``quiet``: no output.
        should_stop: called before every step.
        job_class: instead of the task's own job, one that extends it.

    Returns:
        The model; ``None`` in all but the first of several processes that were started together.

    Raises:
        UsageError: an option, a recipe key or a value does not fit.
        RegardError: the data cannot be used, or the output folder belongs to something else.
        Stopped: ``should_stop`` returned true; all is saved.
    """
    given = {name: value for name, value in locals().items() if name not in UNNAMED}
    beside = torchrun_process()
    if beside and processes not in (None, beside.size):
        raise UsageError(f"torchrun started {beside.size}; leave it out", Option("processes"))
    if beside:
        end_with(os.getppid(), signal.SIGTERM)  # a torchrun that is killed does not end what it started
        beside.begin()
    if beside and beside.rank:
        from regard.runs.workers.worker import follow_torchrun

        follow_torchrun(beside, should_stop)
        return None
    if tensorboard and find_spec("tensorboard") is None:
        raise UsageError("is not installed; pip install 'regard[track]'", Option("tensorboard"))
    if licence is not None and not (licence.strip() and licence.isprintable() and len(licence) <= LONGEST_LICENCE):
        message = f"is to be one line of at most {LONGEST_LICENCE} characters, such as 'CC BY 4.0'"
        raise UsageError(message, Option("licence"))
    resolved.refuse_others(allow := tuple(allow_mismatch))
    options = {
        "task": task,
        "text.source_language": source_language or None,
        "text.target_language": target_language or None,
        "training.minutes": minutes,
        "training.steps": steps,
        "seed": seed,
        "data.weights": tuple(weights) or None,
    }
    files = InputFiles(
        *(_several(train), valid, columns),
        source=_several(source),
        target=_several(target),
        pairs=_several(pairs),
        valid_source=valid_source,
        valid_target=valid_target,
    )
    guessed = languages(files.source, files.target)
    earlier = None
    with suppress(RegardError, OSError):  # where there is no run, or none that can be read, which is said later
        earlier = resolved.read_fields(Path(output) / "training") if resume != "never" else None
    wishes = RecipeOptions(recipe, preset, tuple(settings), options, guessed, earlier=earlier)
    word = task_option(wishes)
    info = TASKS[word]
    if info.learns_from == "pairs":
        instead = f"task = translation takes {Option('source')}; for other tasks give {Option('task')}"
        _refuse_elsewhere({"train": train, "valid": valid}, instead)
        instead = f"a translator begins from nothing (to resume a run, name its {Option('output')})"
        _refuse_elsewhere({"start_from": start_from}, instead)
    told = reporter if reporter is not None else Reporter() if quiet else None
    shows = reporters.reporter() if told is None else nullcontext(told)
    with shows as shown, beside.releasing() if beside else nullcontext():
        begun = Pretrained.load(start_from) if start_from is not None else None
        wishes = replace(wishes, begun=begun.values(word)) if begun else wishes
        place = choose_device(device)
        if info.learns_from != "pairs":
            others = {"source": source, "target": target, "pairs": pairs, "valid_source": valid_source}
            _refuse_elsewhere(others, f"task = {word} takes {Option('train')}")
            weighs = {"weights" if weights else "data.weights": weights_option(wishes) or None}
            _refuse_elsewhere(weighs, f"task = {word} draws from all files by size; only translation weighs them")
            if begun and (family := begun.recipe.model.family) not in info.families:
                message = f"is a model of the family {family}; task = {word} needs {' or '.join(info.families)}"
                raise UsageError(message, Option("start_from", begun.folder))
        refuse_unusable(Path(output), resume)
        if info.learns_from == "pairs" and earlier is None:
            for note in language_notes(wishes):
                shown.on_event(note)
        shown.on_event(CHECKING)
        made_by = partial(recipe_from_options, wishes)
        machine = Machine(place, threads, processes)
        files = replace(files, begun=begun, processes=machine.preparing_processes)
        job = (job_class or tasks.job_class(word)).of_files(files, made_by, shown.on_event, despite_check)
        hooks = Hooks(shown, should_stop, track=tensorboard)
        data = named_files(source, target, pairs, train, valid_source, valid_target, valid)
        if begun:
            data += ((f"{name_of(begun.folder)}/model.safetensors", begun.folder / "model.safetensors"),)
        given |= {"settings": wishes.settings, "allow_mismatch": allow}  # which may have been given as iterators
        inputs = RunInputs(shell_line("train", given), data, licence)
        return run(TrainingRun(Path(output), job, machine, hooks, inputs), resume, allow)


def _refuse_elsewhere(options: Mapping[str, object], instead: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"is not for this task: {instead}", name if "." in name else Option(name))


def _several(files: Files | Path | str | None) -> Files:
    if files is None:
        return ()
    return [files] if isinstance(files, Path | str) else list(files)
