"""A training run for any task: prepare or reuse data, resolve settings, train, keep the best model."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from regard.data.corpora.corpus import Progress
from regard.data.prepare.folder import DataMismatch, discard
from regard.runs.convert.hub import odd_label
from regard.runs.convert.layouts import exports
from regard.runs.plan import (
    LENGTH,
    ResolvedSettings,
    Teacher,
    choose,
    fingerprints,
    load_settings,
    processor,
    shards_of,
    with_training,
)
from regard.runs.workers.group import WorkerGroup, plain, torchrun_process, worker_group
from regard.runs.workers.processes import torch_threads, useful_processes
from regard.system import VERSION
from regard.system.errors import Damaged, Option, RegardError, UsageError
from regard.system.processor import keep_pages, usable_cores
from regard.tasks.model_folder import load
from regard.tasks.training import model_writer
from regard.tasks.training.base import PreparedData, TrainingJob, TrainingTask
from regard.tasks.training.defaults import FEWEST, refuse_too_large
from regard.tasks.training.model_writer import ModelFolderWriter
from regard.training.budget import Costs, time_summary
from regard.training.checkpoints import manifest, provenance, resolved
from regard.training.checkpoints.output_folder import Action, Resume, claim_output
from regard.training.checkpoints.provenance import Provenance, RunInputs
from regard.training.trainer import Hooks, fit
from regard.training.world import refuse_division

CORE_TRIES = 5
"""Measurements at most of how many cores a training can use."""
NAME = "data"
_FRESH = "data.fresh"
"""Folder for rebuilt data, renamed once it is verified to be the same."""

WORKER = "regard.runs.workers.worker"
"""What a process that divides the shards is started with: ``python -m``."""
STAGES = {
    "read": "reading the data",
    "encode": "turning examples into ids",
    "segment": "drawing segmentations",
    "fit": "fitting a linear classifier of n-grams",
}
"""What preparing does, for people, besides learning (:func:`learning_line`)."""


def prepare_data(
    job: TrainingJob, training: Path, tell: Callable[[str], None], processes: Callable[[], int] = lambda: 1
) -> PreparedData:
    """The prepared data in ``training/data``.

    After a kill at any moment the next call finds the old data, the new data, or none.

    Args:
        job: knows the corpora and how to prepare them.
        training: the private folder of the run, locked by the caller.
        tell: called with each stage, and why data is rebuilt.
        processes: how many prepare it, asked where it is not there.

    Raises:
        RegardError: the corpora cannot be used, are not those of this run, or a newer Regard prepared them.
    """
    folder, fresh = training / NAME, training / _FRESH
    expected = resolved.known_fields(training)[0].get("fingerprint.data")
    if not folder.exists() and (count := processes()) > 1:
        job = replace(job, processes=count)
    try:
        if folder.exists() or expected is None:
            prepared = job.prepare(folder, _stages(job, tell))
            _sweep(training)
            return prepared
        tell(f"{folder} is missing; preparing the data again")
    except Damaged as damage:
        tell(f"{damage}; preparing the data again")
    except DataMismatch as other:
        if expected is not None:
            raise
        tell(f"{folder}: {other.message.partition(';')[0]}, but nothing was trained on it; preparing the data again")
    discard(fresh)
    made = job.prepare(fresh, _stages(job, tell))
    if expected not in (None, made.fingerprint):
        discard(fresh)
        changed = "is damaged or lost, and the files it was made from have changed since this run began"
        raise RegardError(f"{changed}; give those files, or start again with {Option('resume', 'never')}", str(folder))
    del made
    discard(folder)
    os.rename(fresh, folder)
    _sweep(training)
    return job.prepare(folder, _stages(job, lambda text: None))


def _sweep(training: Path) -> None:
    """Remove leftovers of kills and damage beside valid data; older versions kept damaged data."""
    for left in (*training.glob(f"{NAME}.partial"), *training.glob(f"{NAME}.damaged-*"), *training.glob(f"{_FRESH}*")):
        with suppress(RegardError):  # what others put there stays
            discard(left)


def _stages(job: TrainingJob, tell: Callable[[str], None]) -> Progress:
    """Progress of preparing, a line for each stage."""
    last = ""

    def progress(stage: str, pairs: int) -> None:
        nonlocal last
        if stage != last:
            last = stage
            tell(learning_line(job) if stage == "learn" else STAGES.get(stage, stage))

    return progress


def learning_line(job: TrainingJob) -> str:
    """What is learned before examples are turned into ids, for people: a vocabulary, and the labels or tags if any."""
    info, learned = job.recipe.info, list[str]()
    if info.reads != "image" and (job.pretrained is None or job.recipe.text.extend_vocabulary):
        learned.append("the vocabulary")
    if info.writes == "tags":
        learned.append("the tags")
    if info.writes == "classes" and job.recipe.classification.kind != "regression":
        learned.append("the labels")
    return f"learning {' and '.join(learned)}" if learned else STAGES["read"]


def _fewer_pieces(wanted: int, known: Sequence[int], extended: Sequence[int]) -> str | None:
    """That vocabularies of these sizes grew by fewer pieces than were asked for; ``None`` where they did not."""
    added = dict.fromkeys(new - old for new, old in zip(extended, known, strict=True))
    if min(added) >= wanted:
        return None
    count = " and ".join(f"{one:,}" for one in added)
    return f"{count} pieces are added, not {wanted:,}: no further pair of pieces occurs twice in the new text"


@dataclass(frozen=True)
class Machine:
    """The device, threads and processes of a run; ``None``: as the machine has."""

    device: torch.device
    threads: int | None
    processes: int | None = None

    def threads_for(self, shards: int, chosen: int | None) -> int:
        """Threads of each process: one, so that shards are computed alike by any number of processes.

        A step without shards may be given more; whether they are worth it is measured at its first start.

        Args:
            shards: of a step.
            chosen: threads of the run, if it began before.

        Raises:
            UsageError: more are asked for.
        """
        if shards == 1:
            return self.threads or chosen or (1 if self.device.type == "cpu" else torch.get_num_threads())
        if self.threads not in (None, 1):
            message = f"a run of {shards} shards has one thread in each process; give processes instead"
            raise UsageError(message, "threads")
        return 1

    def refuse_division(self, shards: int) -> None:
        """Refuse what was asked for before anything is prepared.

        Raises:
            UsageError: the device cannot be divided, or so many processes cannot divide the shards.
        """
        if self.device.type != "cpu" and self.processes not in (None, 1):
            raise UsageError(f"several processes are for the cpu, not for {self.device.type}", "processes")
        others = torchrun_process()
        size = others.size if others else self.processes
        if size is not None:
            refuse_division(shards, size)

    def processes_for(self, shards: int) -> int:
        """How many processes divide the shards of a run; one where threads are asked for instead."""
        if self.device.type != "cpu" or shards == 1 or (self.threads and not self.processes):
            return 1
        return self.processes or useful_processes(shards, CORE_TRIES)

    @cached_property
    def preparing_processes(self) -> int:
        """How many processes read and prepare the data; measured once, though asked for in each pass."""
        return self.processes or useful_processes(usable_cores(), CORE_TRIES)


@dataclass(frozen=True)
class TrainingRun:
    """A run to do.

    Args:
        output: the model folder.
        job: the task on its data, with its recipe.
        machine: where it runs.
        hooks: reporter and stop flag.
        inputs: what the card says of the data and of the command.
    """

    output: Path
    job: TrainingJob
    machine: Machine
    hooks: Hooks
    inputs: RunInputs = field(default_factory=RunInputs)


def run(work: TrainingRun, resume: Resume = "auto", allow: tuple[str, ...] = ()) -> Any:
    """Start a run, resume it, or report it finished; then load its model.

    Args:
        work: the run.
        resume: ``auto``, ``must`` or ``never``; ``allow``: fields that may differ from an existing run's.

    Raises:
        RegardError: the model does not fit into memory, the data cannot be used, or the folder is in other use.
    """
    recipe, told = work.job.recipe, work.hooks.reporter.on_event
    machine, training = work.machine, work.output / "training"
    refuse_too_large(recipe.model, partial(work.job.task.build, recipe, (FEWEST, FEWEST)), machine.device)
    if resume == "never" or not training.exists():  # else the run knows its shards
        shards = shards_of(recipe, machine.device, machine.threads)
        machine.threads_for(shards, None)
        machine.refuse_division(shards)
    more = {name: value for name, value in work.job.more().items() if not name.startswith("fingerprint.")}
    with claim_output(work.output, {**resolved.recipe_fields(recipe), **more}, resume, allow, told) as action:
        if action is Action.FINISHED and _complete(work.output):
            if (training / "data").exists():  # a finished run of other data is refused
                prepare_data(work.job, training, told)
            manifest.settle(work.output, work.hooks.files)  # killed at its very last file operation
            told(f"{work.output} is finished already; nothing to do")
            if work.inputs.licence:
                told("a licence changes nothing of a finished run's card")
        else:
            learn(work, allow)
    return load(work.output, str(machine.device))


def learn(work: TrainingRun, allow: tuple[str, ...] = ()) -> None:
    """Prepare data, resolve settings, train to the end; the caller holds the output folder's lock."""
    keep_pages()
    training, told, job, machine = work.output / "training", work.hooks.reporter.on_event, work.job, work.machine
    recipe, begun = job.recipe, job.pretrained
    told(exports(recipe, begun.vocabularies.source if begun else None).line)
    earlier = load_settings(training, machine.device)
    chosen = earlier.override(recipe, machine.threads) if earlier else None
    shards = chosen.shards if chosen else shards_of(recipe, machine.device, machine.threads)
    threads = machine.threads_for(shards, chosen.threads if chosen else None)
    machine.refuse_division(shards)
    prepared = prepare_data(job, training, told, lambda: machine.preparing_processes)
    for line in model_writer.left_out(prepared):
        told(line)
    running = recipe.info.learns_from == "documents" or recipe.text_to_text.spans
    for line in prepared.mended if running else ():  # else the check said it
        told(line)
    assets, wanted = job.assets(prepared), recipe.text.extend_vocabulary
    if begun and wanted and (few := _fewer_pieces(wanted, begun.vocabularies.sizes, assets.sizes)):
        told(few)
    if odd := odd_label(recipe.task, recipe.classification.kind, getattr(assets, "labels", ())):
        told(f"the label {odd[0]} {odd[1]}: a model that has it cannot be exported")
    refuse_too_large(recipe.model, partial(job.task.build, recipe, assets.sizes), machine.device)
    free = shards == 1 and machine.threads is None and machine.device.type == "cpu"
    most = torch.get_num_threads() if free else 1  # where more than one, it is measured whether they are worth it
    with torch_threads(threads):
        with worker_group(shards, machine.processes_for(shards), told, WORKER) as group:
            costs, saver, seconds = _learn_together(work, prepared, chosen, shards, group, allow, most)
        began = work.hooks.clock()
        saver.end(told, work.hooks.should_stop, seconds)
    final = work.hooks.clock() - began
    if costs and (took := time_summary(saver.recipe.training.minutes, costs.spent, seconds, final)):
        told(took)


def _learn_together(
    work: TrainingRun,
    prepared: PreparedData,
    chosen: ResolvedSettings | None,
    shards: int,
    group: WorkerGroup,
    allow: tuple[str, ...],
    most_threads: int,
) -> tuple[Costs | None, ModelFolderWriter, float]:
    """Resolve settings and train to the end, while the other processes do the same; what was measured, and seconds."""
    training, device, job = work.output / "training", work.machine.device, work.job
    kept = None
    begun = with_training(job.recipe, shards=shards)
    begun_from = job.pretrained.folder if job.pretrained else None
    start_from = str(begun_from) if begun_from else None
    made_by = f"{type(job).__module__}:{type(job).__qualname__}"
    group.say("prepare", recipe=plain(begun), job=made_by, start_from=start_from, training=str(training.absolute()))
    teach = Teacher(job, prepared, device)
    if chosen is None:
        chosen, kept = choose(begun, teach, training, work.hooks, device, group, most_threads)
    group.say("fit", recipe=plain(begun), settings=asdict(chosen), kept=kept is not None)
    recipe = chosen.apply(begun)
    teaching = teach(recipe, chosen.paths)
    group.world.agree(fingerprints(teaching, device))
    fixed, made = _fix(work, chosen, teaching, allow)
    saver = ModelFolderWriter(work.output, teaching, work.hooks.files, made, begun_from)
    saver.begin(work.hooks.reporter.on_event)
    hooks = replace(
        work.hooks,
        save_model=saver.best,
        resolved=fixed,
        costs=chosen.parts,
        review=chosen.review,
        kept=kept,
        planned=saver.set_steps,
    )
    return chosen.parts, saver, fit(teaching, teaching.batches, recipe, training, hooks, group.world).seconds


def _complete(output: Path) -> bool:
    """Whether a finished run's model folder is intact and has its final scores."""
    try:
        manifest.verify(output, extra=True)
    except Damaged:
        return False
    return model_writer.final(output)


def _fix(
    work: TrainingRun, chosen: ResolvedSettings, teaching: TrainingTask, allow: tuple[str, ...]
) -> tuple[resolved.Fields, Provenance]:
    """Write the run's fields at its first start; later require the same, except those allowed to differ.

    Also what is known of its making, which decides nothing.
    """
    training, device, told = work.output / "training", work.machine.device, work.hooks.reporter.on_event
    fields = {**chosen.fields(), **fingerprints(teaching, device), **work.job.more()}
    before = resolved.read_fields(training) if (training / resolved.NAME).exists() else {}
    if before:
        held = {name: fields[name] for name in fields if name not in LENGTH}
        resolved.check({"chosen.exact": chosen.exact, "chosen.shards": 1, **before}, held, allow, told)
    whole = {**resolved.recipe_fields(work.job.recipe), **fields}
    whole = {name: value for name, value in whole.items() if value is not None}
    now = Provenance((), (f"{VERSION}, torch {torch.__version__}",), (processor(device),))
    made = provenance.record(training, work.inputs, now, before, work.hooks.files, told)
    resolved.write(training, whole, work.hooks.files)
    return whole, made
