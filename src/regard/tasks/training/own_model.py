"""``regard.fit`` trains a module of your own, and a folder keeps it: weights, and what its class is made with.

The folder holds ``model.safetensors``, ``own.json`` (the name of the class and the arguments of its constructor, plain
values) and ``training/`` (checkpoints, ``metrics.jsonl``). No code is in it, and none is run from it: who loads the
folder gives the class.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from regard.config import FORMAT, Recipe, Training, checksum
from regard.data.batches.batch import EVERY_BATCH, BatchRange, Position
from regard.models import store
from regard.nn.dropout import reseed
from regard.nn.hooks import name_parts
from regard.nn.init import refuse_undrawn, undrawn
from regard.system import disk
from regard.system.errors import RegardError, UsageError
from regard.system.keys import key
from regard.tasks.model_path import OWN
from regard.training import trainer
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files, alone
from regard.training.log import Reporter, Start, StepMetrics, Summary
from regard.training.objective import Done, Loss, Validation, Weights
from regard.training.progress import Best
from regard.training.reporters import reporter as progress
from regard.training.trainer import Hooks
from regard.training.update import never
from regard.training.world import ALONE, World

OwnModule = TypeVar("OwnModule", bound=nn.Module)
Batches = Iterable[object] | Callable[[int], Iterable[object]]
NAME, WEIGHTS, RUN = OWN, "model.safetensors", "fit.json"
_LARGEST = 1 << 20
"""Bytes that ``own.json`` may have."""


@dataclass(frozen=True)
class _OwnBatch:
    """A batch as it was given.

    Args:
        given: of any type.
        tokens: items, which are the entries of the first axis of its first tensor; 1 where there is no tensor.
        room: the same: own batches have no fixed shape.
    """

    given: object
    tokens: int
    room: int

    @classmethod
    def of(cls, given: object) -> _OwnBatch:
        """A batch with its items counted."""
        parts = given.values() if isinstance(given, Mapping) else given
        some = [given] if isinstance(given, Tensor) else parts if isinstance(parts, Iterable) else ()
        items = next((len(one) for one in some if isinstance(one, Tensor) and one.dim()), 1)
        return cls(given, items, items)


@dataclass(frozen=True)
class _OwnBatches:
    """Batches epoch after epoch; what torch draws at the start of an epoch depends on seed and epoch alone."""

    batches: Batches
    seed: int
    fingerprint: str = ""

    def iterate(self, position: Position, among: BatchRange = EVERY_BATCH) -> Iterator[tuple[_OwnBatch, Position]]:
        """The batches from a position on; one process reads them all."""
        while True:
            number, epoch = 0, position.epoch
            every = self.batches(epoch) if callable(self.batches) else self.batches
            reseed(key(self.seed, "batches", epoch))
            for number, batch in enumerate(every, 1):
                if number > position.batch:
                    position = Position(position.epoch, 0, number)
                    yield _OwnBatch.of(batch), position
            if not number:
                raise UsageError("there is no batch", "batches")
            position = Position(position.epoch + 1)


@dataclass(frozen=True)
class _OwnObjective:
    """A module and its loss, as training sees them."""

    model: nn.Module
    function: Callable[[Any, Any], Tensor] | None
    valid: Iterable[object] | None
    passed: list[float] = field(default_factory=lambda: [math.inf])
    """Where there are no batches for one, the last validation's loss and those of training since then.

    A loss that is not finite, whose update is skipped, is none of them.
    """

    def loss(self, batch: _OwnBatch) -> Loss:
        """The loss of a batch, a mean already."""
        total = self._value(batch.given)
        if not total.requires_grad:
            raise RegardError("the loss has no gradient; was it computed from the model, and not detached?", "loss")
        if self.valid is None and bool(total.isfinite()):
            self.passed.append(float(total.detach()))
        return Loss(total, total.detach(), 1)

    def validate(self, generate: bool, world: World = ALONE) -> Validation:
        """The mean loss of the validation batches; without them of the batches since the last time."""
        if self.valid is None:  # where every update was skipped, the loss of the last time
            losses = self.passed[1:] or self.passed
            self.passed[:] = [math.fsum(losses) / len(losses)]
            return Validation(self.passed[0])
        losses = [float(self._value(batch)) for batch in self.valid]
        if not losses:
            raise UsageError("there is no batch", "valid")
        return Validation(math.fsum(losses) / len(losses))

    def trial(self, generate: bool, done: Done) -> None:
        """Nothing is measured here."""

    def _value(self, batch: object) -> Tensor:
        """A loss with one entry and no axis."""
        found: object
        if self.function is not None:
            found = self.function(self.model, batch)
        elif isinstance(batch, Mapping):
            found = self.model(**batch)
        else:
            found = self.model(*batch) if isinstance(batch, tuple | list) else self.model(batch)
        if not isinstance(found, Tensor) or found.dim():
            what = f"a tensor of shape {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            hint = "" if self.function else "; give loss=, a function of model and batch"
            raise UsageError(f"expected one number as a tensor without axes, not {what}{hint}", "loss")
        return found


@dataclass(frozen=True)
class _OwnReporter(Reporter):
    """Shows the training of a module of one's own: without a number of tokens, and with what its losses are of.

    Args:
        inner: shows it.
        has_valid: whether there are batches to validate on; else their loss is that of training.
        is_kept: whether a folder keeps the best weights.
    """

    inner: Reporter
    has_valid: bool
    is_kept: bool

    def on_start(self, start: Start) -> None:
        self.inner.on_start(replace(start, tokens=0))

    def on_step(self, metrics: StepMetrics) -> None:
        self.inner.on_step(metrics)

    def on_validation(self, step: int, validation: Validation, best: bool) -> None:
        if self.has_valid:
            self.inner.on_validation(step, validation, best and self.is_kept)
        else:
            self.inner.on_event(f"step {step:,}: mean loss {validation.loss:.3f} since the last such line")

    def on_save(self, path: Path) -> None:
        self.inner.on_save(path)

    def on_event(self, text: str) -> None:
        self.inner.on_event(text)

    def on_end(self, summary: Summary) -> None:
        self.inner.on_end(summary)


def fit(
    model: OwnModule,
    batches: Batches,
    *,
    steps: int,
    loss: Callable[[OwnModule, Any], Tensor] | None = None,
    valid: Iterable[object] | None = None,
    out: Path | str | None = None,
    arguments: Mapping[str, object] | None = None,
    seed: int = 1,
    rate: float = 2e-3,
    warmup: int = 400,
    schedule: Literal["cosine", "linear", "inverse_square_root"] = "cosine",
    optimiser: Literal["adam", "adamw", "muon"] = "adam",
    weight_decay: float = 0.0,
    clip: float = 1.0,
    validate_every: int | None = None,
    quiet: bool = False,
    reporter: Reporter | None = None,
    should_stop: Callable[[], bool] = never,
) -> OwnModule:
    """Train a module of your own; the same call again continues a run that was stopped, at its last checkpoint.

    Args:
        model: any ``torch.nn.Module``, on the device where it is to train; in place.
        batches: what can be iterated again and again, once an epoch, such as a list or a ``DataLoader``, whose
            shuffling is then seeded too; or a function from the number of the epoch, from 0, to its batches. They must
            lie on the model's device.
        steps: updates, one a batch.
        loss: from model and batch to the mean loss, a tensor without axes; default: what the model itself gives
            of the batch (of a tuple or a list ``model(*batch)``, of a dictionary ``model(**batch)``).
        valid: batches of a validation: the weights of the best are kept. Without them, those of the last step.
        out: the folder; default: nothing is written.
        arguments: what ``type(model)`` was made with, by name, plain values that JSON has; with ``out`` only.
        seed: of dropout, and of what is drawn at the start of an epoch.
        rate, warmup, schedule, optimiser, weight_decay, clip: as in the section ``[training]`` of a recipe.
        validate_every: steps between validations, each with a checkpoint; default: a twentieth of the run.
        quiet: write no progress to stderr.
        reporter: shows the progress instead; ``should_stop``: called before every step, stops the run and saves all.

    Returns:
        ``model``, trained, in evaluation mode.

    Raises:
        UsageError: an option does not fit; the batches can be iterated only once; ``arguments`` do not make this model;
            or the folder holds something else.
        Diverged: loss or weights were not finite too often.
        Stopped: ``should_stop`` returned true.
    """
    refuse_undrawn(model)
    name_parts(model)
    if not callable(batches) and iter(batches) is batches:
        raise UsageError("can be iterated only once; give a list, a DataLoader, or a function of the epoch", "batches")
    if valid is not None and iter(valid) is valid:
        raise UsageError("can be iterated only once; give a list or a DataLoader", "valid")
    try:
        section = Training(
            steps=steps,
            rate=rate,
            warmup=warmup,
            schedule=schedule,
            optimiser=optimiser,
            weight_decay=weight_decay,
            clip=clip,
            validate_every=validate_every,
            select="last" if valid is None else "loss",
            precision="fp32",
        )
        recipe = Recipe(seed=seed, training=section)
    except ValidationError as error:
        first = error.errors()[0]
        said = first["msg"].removeprefix("Value error, ").replace("training.", "")
        raise UsageError(said, ".".join(map(str, first["loc"])) or None) from None
    if out is None and arguments is not None:
        raise UsageError("are kept in a folder; give out=", "arguments")
    description = None if out is None else _describe(model, arguments or {}, seed, recipe.training)
    with ExitStack() as stack:
        if out is None or description is None:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="regard-")))
        else:
            folder = Path(out)
            _claim(folder, description)
            stack.enter_context(alone(folder / ".lock", "another process trains into this folder", folder))
        silent = reporter or (Reporter() if quiet else None)
        shown: Reporter = stack.enter_context(nullcontext(silent) if silent else progress())
        told = _OwnReporter(shown, valid is not None, out is not None)

        def save_model(weights: Weights, best: Best, validation: Validation, seconds: float) -> None:
            described = {} if description is None else {NAME: [checksum.dump_json(description)]}
            manifest.replace(folder, {WEIGHTS: store.chunks(weights), **described}, Files())

        objective = _OwnObjective(model, loss, valid)
        hooks = Hooks(told, should_stop, save_model)
        trainer.fit(objective, _OwnBatches(batches, seed), recipe, folder / "training", hooks)
        store.load_weights(folder / WEIGHTS, model)
    model.zero_grad(set_to_none=True)
    return model.eval()


def load_own(folder: Path | str, model: type[OwnModule], device: str | None = None) -> OwnModule:
    """The module that :func:`fit` kept in a folder, in evaluation mode.

    Args:
        folder: as given to ``fit``.
        model: its class, which is made with the arguments that were kept.
        device: ``cpu``, ``cuda`` …; default: a GPU if there is one.

    Raises:
        RegardError: it is no such folder; a file of it is damaged; or the class makes other weights than were kept.
    """
    folder = Path(folder)
    if not (folder / NAME).is_file():
        raise RegardError("holds no model of your own class; regard.fit writes one, with out=", str(folder))
    manifest.verify(folder, extra=True)
    description = checksum.load_json(disk.content(folder / NAME, _LARGEST), folder / NAME, required=True)
    checksum.refuse_newer(description, folder / NAME)
    made = _made(model, description.get("arguments", {}))
    store.load_weights(folder / WEIGHTS, made)
    name_parts(made)
    return made.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()


def own_class(folder: Path | str) -> str | None:
    """The name of the class whose model a folder keeps; ``None`` if it is another folder."""
    path = Path(folder) / NAME
    if not path.is_file():
        return None
    return str(checksum.load_json(disk.content(path, _LARGEST), path, required=True).get("class"))


def _describe(model: nn.Module, arguments: Mapping[str, object], seed: int, section: Training) -> dict[str, Any]:
    """The contents of ``own.json``; its arguments make this very model."""
    kept = dict(arguments)
    try:
        plain = json.loads(json.dumps(kept, allow_nan=False)) == kept
    except (TypeError, ValueError):
        plain = False
    if not plain:
        raise UsageError("must be plain: texts, numbers, true, false, None, lists, and dictionaries", "arguments")
    again = {name: tensor.shape for name, tensor in store.named_tensors(_made(type(model), kept)).items()}
    here = {name: tensor.shape for name, tensor in store.named_tensors(model).items()}
    if odd := [name for name in {**here, **again} if here.get(name) != again.get(name)]:
        raise UsageError(f"make another {type(model).__name__} than this one: {odd[0]} differs", "arguments")
    told = section.model_dump(exclude_unset=True)
    return {"format": FORMAT, "class": type(model).__name__, "arguments": kept, "seed": seed, "training": told}


def _made(kind: type[OwnModule], arguments: Mapping[str, object]) -> OwnModule:
    """A module of a class, its weights not drawn."""
    try:
        with undrawn():
            return kind(**arguments)
    except TypeError as error:
        raise UsageError(f"do not make a {kind.__name__}: {error}", "arguments") from None


def _claim(folder: Path, description: Mapping[str, Any]) -> None:
    """Take a folder that is empty, or that holds a run of the same description; more steps may be wanted.

    Raises:
        UsageError: it holds something else, or another run; ``where`` names the folder or the field.
    """
    path = folder / "training" / RUN
    if not path.exists():
        if folder.exists() and any(islice(folder.iterdir(), 1)):
            raise UsageError("is not empty, and holds no run of this model; name another", str(folder))
        path.parent.mkdir(parents=True, exist_ok=True)
    else:
        before = checksum.load_json(disk.content(path, _LARGEST), path, required=True)
        flat = [{**one, **one["training"], "training": None} for one in (before, dict(description))]
        for name in flat[1]:
            if name not in ("steps", "checksum") and flat[0].get(name) != flat[1][name]:
                raise UsageError(f"was {flat[0].get(name)!r} in this folder's run; name another folder", name)
        if flat[0]["steps"] > flat[1]["steps"]:
            raise UsageError(f"the run in this folder has {flat[0]['steps']} planned already", "steps")
    Files().replace(path, [checksum.dump_json(description)])
