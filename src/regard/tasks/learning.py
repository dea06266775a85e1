"""From raw sentence pairs to a translator, the main job: check, learn the vocabulary, train, keep the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from regard.config import Recipe
from regard.data.batches import Batches
from regard.data.corpora import Corpus
from regard.data.draws import refuse_weights
from regard.data.prepare import prepare
from regard.data.prepared import Prepared
from regard.errors import UsageError
from regard.keys import key
from regard.models.build import transformer
from regard.nn import ops
from regard.tasks import card
from regard.tasks.asked import (
    Files,
    Wishes,
    corpora,
    languages,
    longest_asked,
    recipe_asked,
    refuse_pipes,
    weights_asked,
)
from regard.tasks.bundle import load, placed
from regard.tasks.chosen import Chosen, choose, fingerprints, remembered
from regard.tasks.inspection import inspect
from regard.tasks.saver import Saver
from regard.tasks.sizing import refuse_too_large
from regard.tasks.teaching import Teaching
from regard.tasks.translation import Translation
from regard.training import budget, manifest, resolved
from regard.training.log import Quiet, Reporter
from regard.training.memory import keep_pages
from regard.training.output import Action, Resume, claimed, refuse_unusable
from regard.training.run import Hooks
from regard.training.trainer import fit


def _never() -> bool:
    return False


def train(
    source: Files | Path | str | None = None,
    target: Files | Path | str | None = None,
    output: Path | str = "model",
    *,
    valid_source: Path | str | None = None,
    valid_target: Path | str | None = None,
    pairs: Files | Path | str | None = None,
    columns: str | None = None,
    weights: Sequence[float] = (),
    source_language: str | None = None,
    target_language: str | None = None,
    recipe: Path | str | Mapping[str, Any] | None = None,
    preset: str | None = None,
    settings: Iterable[str] = (),
    minutes: float | None = None,
    steps: int | None = None,
    seed: int | None = None,
    resume: Resume = "auto",
    allow_mismatch: Iterable[str] = (),
    despite_check: bool = False,
    threads: int | None = None,
    device: str | None = None,
    tensorboard: bool = False,
    reporter: Reporter | None = None,
    should_stop: Callable[[], bool] = _never,
) -> Translation:
    """Train a translator from two files of sentences that are, line by line, each other's translation.

    Stopped or killed at any moment, the same call goes on and ends with the same bits.

    Args:
        source, target: one file or several each, plain or gz, xz, zst.
        output: the model folder to make, or to go on with.
        valid_source, valid_target: sentences to validate on; default: some split off from the data.
        pairs: one TSV or JSONL file that holds both sides, or several; ``columns`` says where.
        weights: how often to draw from each corpus; default: by size.
        source_language, target_language: codes; default: the recipe's, else from the files' extensions.
        recipe: a TOML file, or its values; ``preset``: a named size; ``settings``: ``section.key=value`` strings.
        minutes: be done after so many; ``steps``: make so many updates; default: the recipe's, else by corpus size.
        resume: ``auto``, ``must`` or ``never``; ``allow_mismatch``: fields that may differ from the run's, of
            ``regard.training.resolved.ALLOWED``; more ``training.steps`` make a finished run go on.
        despite_check: train although the check of the data judges that it would spoil the model.
        tensorboard: write TensorBoard files too, into ``training/tensorboard`` (needs the extra ``track``).
        reporter: shown what happens; ``should_stop``: asked before every step.

    Raises:
        UsageError: an option, a recipe key or a value does not fit.
        RegardError: the data cannot be used, or the output folder is somebody else's.
        Stopped: ``should_stop`` said so; all is saved.
    """
    if tensorboard and find_spec("tensorboard") is None:
        raise UsageError("is not installed; pip install 'regard[track]'", "tensorboard")
    resolved.refuse_others(allow_mismatch := tuple(allow_mismatch))
    reporter = reporter or Quiet()
    sources, targets, both = _several(source), _several(target), _several(pairs)
    learned = corpora(sources, targets, both, columns)
    refuse_pipes([*sources, *targets, *both, *(path for path in (valid_source, valid_target) if path)])
    validation = _validation(valid_source, valid_target)
    options = {
        "text.source_language": source_language or None,
        "text.target_language": target_language or None,
        "training.minutes": minutes,
        "training.steps": steps,
        "seed": seed,
        "data.weights": tuple(weights) or None,
    }
    wishes = Wishes(recipe, preset, tuple(settings), options, languages(sources, targets))
    longest, place = longest_asked(wishes), placed(device)
    refuse_weights(weights_asked(wishes), len(learned))
    refuse_unusable(Path(output), resume)  # all that can be wrong without the data, before that is read
    inspected = inspect(learned, validation, longest, reporter.on_event, despite_check)
    asked = recipe_asked(wishes, inspected.pairs)
    refuse_too_large(asked.model, place)
    hooks = Hooks(reporter, should_stop, track=tensorboard)
    work = Work(Path(output), asked, learned, validation, Machine(place, threads), hooks)
    with claimed(work.output, resolved.recipe_fields(asked), resume, allow_mismatch, reporter.on_event) as action:
        if action is Action.FINISHED and _complete(work.output):
            _same_data(work)
            manifest.settle(work.output, hooks.files)  # killed at its very last file operation
            reporter.on_event(f"{output} is finished already; nothing to do")
        else:
            learn(work, allow_mismatch)
    return load(work.output, device)


def _several(files: Files | Path | str | None) -> Files:
    if files is None:
        return ()
    return [files] if isinstance(files, Path | str) else list(files)


def _validation(source: Path | str | None, target: Path | str | None) -> Corpus | None:
    if source is None and target is None:
        return None
    return corpora([source] if source else [], [target] if target else [])[0]


@dataclass(frozen=True)
class Machine:
    """Where a run runs: the device, and threads asked for."""

    device: torch.device
    threads: int | None


@dataclass(frozen=True)
class Work:
    """A run as asked for."""

    output: Path
    recipe: Recipe
    corpora: list[Corpus]
    validation: Corpus | None
    machine: Machine
    hooks: Hooks


def learn(work: Work, allow: tuple[str, ...] = ()) -> None:
    """Prepare, choose what must be measured, train to the end; the output folder is held by the caller."""
    keep_pages()
    training, told = work.output / "training", work.hooks.reporter.on_event
    prepared = prepare(work.corpora, work.recipe, training / "data", work.validation, progress=_Told(told))
    for line in card.left_out(prepared):
        told(line)
    both = prepared.vocabularies
    refuse_too_large(work.recipe.model, work.machine.device, both.source.size, both.target.size)
    earlier = remembered(training, work.machine.device)
    chosen = earlier.asked(work.recipe, work.machine.threads) if earlier else None
    torch.set_num_threads(work.machine.threads or (chosen.threads if chosen else torch.get_num_threads()))
    exact = chosen.exact if chosen else ops.full(str(work.machine.device))
    teach = _teacher(prepared, work.machine.device, exact)
    if chosen is None:
        chosen = choose(work.recipe, teach, training, work.hooks, work.machine.device)
    recipe = chosen.applied(work.recipe)
    teaching = teach(recipe, chosen.product)
    fixed = _fix(work, chosen, teaching, allow)
    saver = Saver(work.output, teaching, work.hooks.files)
    saver.begin(told)
    hooks = replace(work.hooks, save_model=saver.best, resolved=fixed)
    summary = fit(teaching, teaching.batches, recipe, training, hooks)
    if late := budget.overrun(recipe.training.minutes, summary.seconds):
        told(late)
    saver.end(told, work.hooks.should_stop)


def _complete(output: Path) -> bool:
    """Whether a finished run's model folder is unharmed and says its final scores."""
    try:
        manifest.verify(output, extra=True)
    except manifest.Damaged:
        return False
    return card.final(output)


def _same_data(work: Work) -> None:
    """Raise a RegardError if a finished run was made from other data, as far as its prepared data is still there."""
    folder = work.output / "training" / "data"
    if folder.exists():
        prepare(work.corpora, work.recipe, folder, work.validation)


def _teacher(prepared: Prepared, device: torch.device, exact: ops.Path) -> Callable[[Recipe, ops.Path], Teaching]:
    """Makes the objective of a recipe on this data, its weights drawn from the seed."""

    def teach(recipe: Recipe, product: ops.Path) -> Teaching:
        both = prepared.vocabularies
        model = transformer(recipe.model, both.source.size, both.target.size, key(recipe.seed, "weights")).to(device)
        return Teaching(Translation(recipe, both, model), Batches(prepared, recipe), prepared, product, exact)

    return teach


def _fix(work: Work, chosen: Chosen, teaching: Teaching, allow: tuple[str, ...]) -> resolved.Fields:
    """Write down what the run is at its first start; hold it to that afterwards, but for what is allowed to differ."""
    training = work.output / "training"
    fields = {**chosen.fields(), **fingerprints(teaching, work.machine.device)}
    before = resolved.read(training) if (training / resolved.NAME).exists() else {}
    if before:
        held = {name: fields[name] for name in fields if name not in ("chosen.steps", "chosen.validate_every")}
        resolved.check({"chosen.exact": chosen.exact, **before}, held, allow, work.hooks.reporter.on_event)
    whole = {**resolved.recipe_fields(work.recipe), **fields}
    whole = {name: value for name, value in whole.items() if value is not None}
    if before != whole:
        resolved.write(training, whole, work.hooks.files)
    return whole


STAGES = {
    "read": "reading the data",
    "vocabulary": "learning the vocabulary",
    "encode": "turning text into ids",
    "segment": "drawing segmentations",
}
"""What preparing does, for people."""


class _Told:
    """Progress of preparing, a line for each stage."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self.told = told
        self.stage = ""

    def __call__(self, stage: str, pairs: int) -> None:
        if stage != self.stage:
            self.stage = stage
            self.told(STAGES.get(stage, stage))
