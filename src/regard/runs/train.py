"""``train``: options → recipe → training run, for every task."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from regard import tasks
from regard.config import TASKS, Adapt, TaskInfo, recipe_from
from regard.config.adapter import BASE
from regard.models.build import outline
from regard.runs.options import (
    RecipeOptions,
    language_notes,
    languages,
    name_of,
    named_files,
    recipe_from_options,
    shell_line,
    task_option,
)
from regard.runs.run import Machine, TrainingRun, run
from regard.runs.train_options import TrainOptions, listed, taking
from regard.runs.workers.group import torchrun_process
from regard.system.errors import Option, RegardError, UsageError
from regard.system.forks import end_with
from regard.tasks.model_folder import choose_device
from regard.tasks.protocols import InputFiles
from regard.tasks.text.preparation import Pretrained
from regard.training.checkpoints import resolved
from regard.training.checkpoints.output_folder import refuse_unusable
from regard.training.checkpoints.provenance import RunInputs
from regard.training.log import Reporter
from regard.training.trainer import Hooks

UNNAMED = ("resume", "reporter", "quiet", "should_stop", "job_class")
"""Arguments that do not belong to the command on the card."""
DATA = ("source", "target", "pairs", "train", "valid_source", "valid_target", "valid", "alignment")
"""Arguments that name data files."""
LONGEST_LICENCE = 200
"""Characters."""
CHECKING = "checking the data"
"""Message before the first pass over the data."""


@taking(TrainOptions)
def train(asked: TrainOptions) -> Any:
    """Train a translator from two files of sentences, or a model of another task from one file.

    Progress goes to stderr: a bar on a terminal, a line in a notebook, lines elsewhere. After a stop or kill at
    any moment, the same call resumes and ends with the same bits.

    Returns:
        The model; ``None`` in all but the first of several processes that were started together.

    Raises:
        UsageError: an option, a recipe key or a value does not fit.
        RegardError: the data cannot be used, or the output folder belongs to something else.
        Stopped: ``should_stop`` returned true; all is saved.
    """
    beside = torchrun_process()
    if beside and asked.processes not in (None, beside.size):
        raise UsageError(f"torchrun started {beside.size}; leave it out", Option("processes"))
    if beside:
        end_with(os.getppid(), signal.SIGTERM)  # a torchrun that is killed does not end what it started
        beside.begin()
    if beside and beside.rank:
        from regard.runs.workers.worker import follow_torchrun

        follow_torchrun(beside, asked.should_stop)
        return None
    if asked.tensorboard and find_spec("tensorboard") is None:
        raise UsageError("is not installed; pip install 'regard[track]'", Option("tensorboard"))
    licence = asked.licence
    if licence is not None and not (licence.strip() and licence.isprintable() and len(licence) <= LONGEST_LICENCE):
        message = f"is to be one line of at most {LONGEST_LICENCE} characters, such as 'CC BY 4.0'"
        raise UsageError(message, Option("licence"))
    resolved.refuse_others(allow := tuple(asked.allow_mismatch))
    asked = replace(asked, settings=tuple(asked.settings), allow_mismatch=allow)  # they may be iterators
    options = {
        "task": asked.task,
        "text.source_language": asked.source_language or None,
        "text.target_language": asked.target_language or None,
        "text.extend_vocabulary": asked.extend_vocabulary,
        "training.minutes": asked.minutes,
        "training.steps": asked.steps,
        "seed": asked.seed,
        "data.weights": tuple(asked.weights) or None,
    }
    files = InputFiles(
        *(listed(asked.train), asked.valid, asked.columns),
        source=listed(asked.source),
        target=listed(asked.target),
        pairs=listed(asked.pairs),
        valid_source=listed(asked.valid_source),
        valid_target=listed(asked.valid_target),
        alignment=listed(asked.alignment),
    )
    output, guessed, earlier = Path(asked.output), languages(files.source, files.target), None
    with suppress(RegardError, OSError):  # where there is no run, or none that can be read, which is said later
        earlier = resolved.read_fields(output / "training") if asked.resume != "never" else None
    wishes = RecipeOptions(asked.recipe, asked.preset, tuple(asked.settings), options, guessed, earlier=earlier)
    word = task_option(wishes)
    info = TASKS[word]
    if info.learns_from == "pairs":
        instead = f"task = translation takes {Option('source')}; for other tasks give {Option('task')}"
        _refuse_elsewhere(asked, ("train", "valid"), instead)
    shows: AbstractContextManager[Reporter] = nullcontext(Reporter() if asked.reporter is None else asked.reporter)
    if asked.reporter is None and not asked.quiet:
        from regard.training.reporters import reporter

        shows = reporter()
    with shows as shown, beside.releasing() if beside else nullcontext():
        begun = Pretrained.load(asked.start_from) if asked.start_from is not None else None
        _, chosen, where = wishes.merged
        adapting = {"adapt": chosen.get("adapt", {})}
        section = recipe_from(adapting, Option("settings") if wishes.settings else where).adapt
        if begun:
            _refuse_another(begun, info)
            begun_values = begun.values(word, bool(section.rank))
            known = {name: code for name, code in guessed.items() if code}  # the languages that the files name
            wishes = replace(wishes, begun=begun_values, guessed={**begun.languages, **known})
        _refuse_adapting(begun, info, section)
        if wishes.merged[1].get("text", {}).get("extend_vocabulary"):
            _refuse_extending(begun, info)
        machine = Machine(choose_device(asked.device), asked.threads, asked.processes)
        if info.learns_from != "pairs":
            others = ("source", "target", "pairs", "valid_source", "alignment")
            _refuse_elsewhere(asked, others, f"task = {word} takes {Option('train')}")
            if chosen.get("data", {}).get("weights"):
                message = f"is for translation alone; task = {word} draws from all files by size"
                raise UsageError(message, Option("weights") if asked.weights else "data.weights")
        refuse_unusable(output, asked.resume)
        if info.learns_from == "pairs" and earlier is None:
            for note in language_notes(wishes):
                shown.on_event(note)
        shown.on_event(CHECKING)
        files = replace(files, begun=begun, processes=lambda: machine.preparing_processes)
        job_class, made_by = asked.job_class or tasks.job_class(word), partial(recipe_from_options, wishes)
        job = job_class.of_files(files, made_by, shown.on_event, asked.despite_check)
        hooks = Hooks(shown, asked.should_stop, track=asked.tensorboard)
        data = named_files(*(getattr(asked, name) for name in DATA))
        if begun:
            data += ((f"{name_of(begun.folder)}/model.safetensors", begun.folder / "model.safetensors"),)
        arguments = {name: value for name, value in vars(asked).items() if name not in UNNAMED}
        inputs = RunInputs(shell_line("train", arguments), data, licence)
        return run(TrainingRun(output, job, machine, hooks, inputs), asked.resume, allow)


def _refuse_another(begun: Pretrained, info: TaskInfo) -> None:
    """Raise a UsageError for a model that this task cannot go on with."""
    where, family = Option("start_from", begun.folder), begun.recipe.model.family
    if info.learns_from == "pairs" != begun.recipe.info.learns_from:
        raise UsageError(f"is {begun.recipe.info.noun}; a translator goes on from another translator", where)
    if family not in info.families:
        message = f"is a model of the family {family}; task = {info.name} needs {' or '.join(info.families)}"
        raise UsageError(message, where)


def _refuse_extending(begun: Pretrained | None, info: TaskInfo) -> None:
    """Raise a UsageError unless there is a translator whose vocabulary can be extended."""
    if begun is None or info.learns_from != "pairs":
        raise UsageError(f"is for a translator that {Option('start_from')} names", Option("extend_vocabulary"))
    if not begun.vocabularies.extensible:
        message = "adds to byte pairs of Regard and to SentencePiece; this model has neither, so leave it out"
        raise UsageError(message, Option("extend_vocabulary"))


def _refuse_adapting(begun: Pretrained | None, info: TaskInfo, section: Adapt) -> None:
    """Raise a RegardError for a section ``adapt`` that does not fit the model that a training begins with."""
    if not section.deciding():
        return
    if begun is None:
        raise UsageError(f"adapts a model: name it by {Option('start_from')}", f"adapt.{min(section.deciding())}")
    if section.rank and (begun.folder / BASE).exists():
        raise UsageError("is an adapter itself; regard merge it first", Option("start_from", begun.folder))
    from regard.models.low_rank import adapt  # few trainings need it

    with torch.device("meta"):
        pieces, target_pieces = begun.vocabularies.sizes
        adapt(outline(begun.recipe.model, pieces, 1, info.writes, target_pieces), section)


def _refuse_elsewhere(asked: TrainOptions, names: Iterable[str], instead: str) -> None:
    for name in names:
        if getattr(asked, name) is not None:
            raise UsageError(f"is not for this task: {instead}", Option(name))
