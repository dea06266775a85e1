"""A run from data to model, whatever the task: prepare, choose what must be measured, train, keep the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.config import Recipe
from regard.convert import exports
from regard.convert.labels import odd_label
from regard.errors import Damaged
from regard.keys import key
from regard.nn import ops
from regard.tasks import card
from regard.tasks.bundle import load
from regard.tasks.chosen import LENGTH, Chosen, choose, fingerprints, remembered
from regard.tasks.prepared_data import prepare_data
from regard.tasks.saver import Saver
from regard.tasks.sizing import FEWEST, refuse_too_large
from regard.tasks.teaching import Job, Paths, Teaching
from regard.text.vocabulary import AnyTokenizer
from regard.training import manifest, resolved
from regard.training.budget import Costs, ended
from regard.training.measuring import timed
from regard.training.memory import keep_pages
from regard.training.output import Action, Resume, claimed
from regard.training.run import Hooks
from regard.training.trainer import fit


@dataclass(frozen=True)
class Machine:
    """Where a run runs: the device, and threads asked for."""

    device: torch.device
    threads: int | None


@dataclass(frozen=True)
class Work:
    """A run as asked for.

    Args:
        output: the model folder.
        recipe: what the run is made by.
        job: the task on its data.
        machine: where it runs.
        hooks: shown what happens, and asked whether to stop.
        tokenizer: of the model that is begun from.
    """

    output: Path
    recipe: Recipe
    job: Job
    machine: Machine
    hooks: Hooks
    tokenizer: AnyTokenizer | None = None


def run(work: Work, resume: Resume = "auto", allow: tuple[str, ...] = ()) -> Any:
    """Begin a run, go on with it, or say that it is finished; then load what it made.

    Args:
        work: what is asked for.
        resume: ``auto``, ``must`` or ``never``; ``allow``: fields that may differ from those of a run that is there.

    Raises:
        RegardError: the model does not fit into memory, the data cannot be used, or the folder is somebody else's.
    """
    recipe, told = work.recipe, work.hooks.reporter.on_event
    refuse_too_large(recipe.model, _maker(work, (FEWEST, FEWEST)), work.machine.device)
    with claimed(work.output, resolved.recipe_fields(recipe), resume, allow, told) as action:
        if action is Action.FINISHED and _complete(work.output):
            _same_data(work)
            manifest.settle(work.output, work.hooks.files)  # killed at its very last file operation
            told(f"{work.output} is finished already; nothing to do")
        else:
            learn(work, allow)
    return load(work.output, str(work.machine.device))


def _maker(work: Work, sizes: tuple[int, int]) -> Callable[[], nn.Module]:
    return lambda: work.job.task.build(work.recipe, sizes)


def learn(work: Work, allow: tuple[str, ...] = ()) -> None:
    """Prepare, choose what must be measured, train to the end; the output folder is held by the caller."""
    keep_pages()
    training, told = work.output / "training", work.hooks.reporter.on_event
    told(exports(work.recipe, work.tokenizer).line)
    prepared = prepare_data(work.job, work.recipe, training, told)
    for line in card.left_out(prepared):
        told(line)
    assets = work.job.assets(prepared)
    if odd := odd_label(work.recipe.task, work.recipe.classification.kind, getattr(assets, "labels", ())):
        told(f"the label {odd[0]} {odd[1]}: a model that has it cannot be exported")
    refuse_too_large(work.recipe.model, _maker(work, assets.sizes), work.machine.device)
    earlier = remembered(training, work.machine.device)
    chosen = earlier.asked(work.recipe, work.machine.threads) if earlier else None
    torch.set_num_threads(work.machine.threads or (chosen.threads if chosen else torch.get_num_threads()))
    exact = chosen.exact if chosen else ops.full(str(work.machine.device))
    teach = _teacher(work, prepared, exact)
    kept = None
    if chosen is None:
        chosen, kept = choose(work.recipe, teach, training, work.hooks, work.machine.device)
    recipe = chosen.applied(work.recipe)
    teaching = teach(recipe, chosen.product)
    fixed = _fix(work, chosen, teaching, allow)
    saver = Saver(work.output, teaching, work.hooks.files)
    saver.begin(told)
    costs = Costs(*chosen.costs) if chosen.costs else None
    hooks = replace(
        work.hooks,
        save_model=saver.best,
        resolved=fixed,
        costs=costs,
        review=chosen.review,
        kept=kept,
        planned=saver.planned,
    )
    summary = fit(teaching, teaching.batches, recipe, training, hooks)
    final = timed(lambda: saver.end(told, work.hooks.should_stop), hooks)
    if costs and (took := ended(recipe.training.minutes, costs.spent, summary.seconds, final)):
        told(took)


def _complete(output: Path) -> bool:
    """Whether a finished run's model folder is unharmed and says its final scores."""
    try:
        manifest.verify(output, extra=True)
    except Damaged:
        return False
    return card.final(output)


def _same_data(work: Work) -> None:
    """Raise a RegardError if a finished run was made from other data, as far as its prepared data is still there."""
    training = work.output / "training"
    if (training / "data").exists():
        prepare_data(work.job, work.recipe, training, work.hooks.reporter.on_event)


def _teacher(work: Work, prepared: Any, exact: ops.Path) -> Callable[[Recipe, ops.Path], Teaching]:
    """Makes the teaching of a recipe on this data, its weights drawn from the seed, or begun from another model's."""
    job, assets = work.job, work.job.assets(prepared)

    def teach(recipe: Recipe, product: ops.Path) -> Teaching:
        model = job.task.build(recipe, assets.sizes, key(recipe.seed, "weights"))
        job.begin(model)
        return job.teach(job.task(recipe, assets, model.to(work.machine.device)), prepared, Paths(product, exact))

    return teach


def _fix(work: Work, chosen: Chosen, teaching: Teaching, allow: tuple[str, ...]) -> resolved.Fields:
    """Write down what the run is at its first start; hold it to that afterwards, but for what is allowed to differ."""
    training = work.output / "training"
    fields = {**chosen.fields(), **fingerprints(teaching, work.machine.device), **work.job.more()}
    before = resolved.read(training) if (training / resolved.NAME).exists() else {}
    if before:
        held = {name: fields[name] for name in fields if name not in LENGTH}
        resolved.check({"chosen.exact": chosen.exact, **before}, held, allow, work.hooks.reporter.on_event)
    whole = {**resolved.recipe_fields(work.recipe), **fields}
    whole = {name: value for name, value in whole.items() if value is not None}
    resolved.write(training, whole, work.hooks.files)
    return whole
