"""State of a model folder without loading its weights: recipe, assets, parameter count, its training run.

Nothing here needs torch, so the page can show it while torch is still loading.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

from regard.config import Recipe, recipe_values, saved_recipe
from regard.config.adapter import read_header
from regard.inspection import SHIPPED
from regard.inspection.folders.facts import NOTHING, examples, facts, is_demo, refuse_irregular
from regard.inspection.folders.training_curves import LOG
from regard.inspection.folders.walk import NO_WALK_STATE, classic_values, measurements, walk_path, walk_state
from regard.system import disk
from regard.system.errors import RegardError
from regard.tasks import model_class, model_path
from regard.tasks.model_folder import settled_weights
from regard.tasks.model_path import OWN, OWN_CLASS, model_folder
from regard.training.checkpoints.checkpoint import whole

LOCK = LOG.parent / "lock"
FRESH = 60.0
"""Seconds; a log written this recently is still being written."""
STALE = 3600.0
"""Seconds; a log untouched for longer is not being written, and its lock is not tried."""
Stamp = tuple[int, int, int]
"""Modification time, size and inode of a file; another stamp means another file."""
RECIPE, MODEL, MANIFEST, LABELS = "recipe.toml", "model.safetensors", "manifest.json", "labels.json"
PREPARING = "training has just begun and prepares its data; the model can be looked at after its first validation"
WAITING = "training has not validated yet, so it has saved no model to look at; wait for it"
STOPPED = "training stopped before its first validation, so there are no weights; go on with it by the same command"
UNBEGUN = "there is no recipe yet: its training stopped while it prepared the data; begin it again by the same command"
LOST = f"its {RECIPE} is missing; restore it, or rerun the training command, which rewrites it"
EMPTY = "is empty; put it back, or give the command that trained the model again, which writes it anew"
UNREADABLE = "this folder cannot be read"
UNNAMED = f"its {LABELS} is missing, and without it labels have no names; restore it, or train again"
UNKNOWN: dict[str, object] = {"parameters": None, "snapshots": [], "course": False, "running": False, "examples": []}
UNKNOWN |= {"without": False, **NO_WALK_STATE}
"""State of a folder of which nothing is known."""


def snapshots(folder: Path) -> dict[str, Path]:
    """The snapshots kept by the run in a folder, oldest first, by names such as ``step 1,000``."""
    return {f"step {int(place.name.partition('-')[2]):,}": place for place in whole(folder / "training" / "snapshots")}


def is_running(folder: Path) -> bool:
    """Whether a training is running in a folder: by its lock, or without locks by a recent log.

    The lock is tried for an instant, and only while the log is young, or not there: a training that begins in that very
    instant would take the folder for another's.
    """
    try:
        age = time.time() - (folder / LOG).stat().st_mtime
    except OSError:  # there is no log yet
        return bool(_is_locked(folder / LOCK))
    if age > STALE:
        return False
    held = _is_locked(folder / LOCK)
    return age <= FRESH if held is None else held


def is_preparing(folder: Path) -> bool:
    """Whether a training is running in a folder without a recipe yet; without locks, if it started recently."""
    if (held := _is_locked(folder / LOCK)) is not None:
        return held
    training = folder / LOG.parent
    try:
        return time.time() - training.stat().st_mtime <= STALE and not (training / "checkpoints").exists()
    except OSError:
        return False


def _is_locked(path: Path) -> bool | None:
    """Whether a lock is held; ``None`` if that cannot be determined."""
    try:
        import fcntl

        with disk.open_binary(path) as file:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
            return True
    except (ImportError, RegardError):
        return None


@dataclass(frozen=True)
class FolderAssets:
    """Recipe and assets of a model, without its weights.

    Args:
        recipe: of the model; ``assets``: as its task has them.
        stamps: of the files it was read from.
    """

    recipe: Recipe
    assets: Any
    stamps: tuple[Stamp | None, ...]


class Folder:
    """A model folder, possibly of a running training; its state can be read repeatedly from any thread.

    Args:
        path: of the folder; or of one with the model inside, as ``regard demo`` makes.

    Raises:
        RegardError: it is no model folder, and no training has just begun in it; or a file of it is damaged.
    """

    def __init__(self, path: Path | str) -> None:
        given = Path(path)
        self.given = str(path)
        with explain_os_errors(self.given):
            self.path = model_folder(given)
        self.weights = self.path / MODEL
        """The file of the best weights, which may not exist yet."""
        whole = Path(os.path.realpath(given))
        self.name = whole.parent.name if whole.name == "model" else whole.name
        self._examples: list[str] = []
        self._examined: tuple[Stamp | None, ...] | None = None
        self._counted: tuple[Stamp | None, int | None] = None, None
        self._walked: tuple[tuple[Stamp | None, ...], dict[str, object]] = (), NO_WALK_STATE
        self._last: FolderAssets | None = None
        self._lock = threading.Lock()
        self._open()

    def _open(self) -> FolderAssets | None:
        """Load recipe and assets, again if their files changed; ``None`` if a training has not written them yet.

        Raises:
            RegardError: they are not there, or damaged.
        """
        with self._lock, explain_os_errors(self.given):
            stamps = tuple(stamp_of(self.path / name) for name in (RECIPE, LABELS))
            if stamps[0] is None:
                if is_preparing(self.path):
                    return None
                raise RegardError(_missing(self.path, self._last is not None), self.given)
            refuse_irregular(self.path)
            if self._last is None or stamps != self._last.stamps:
                if not recipe_values(self.path / RECIPE):
                    raise RegardError(EMPTY, str(self.path / RECIPE))
                recipe = saved_recipe(self.path / RECIPE)
                with model_path.with_base(self.path) as whole:
                    assets = model_class(recipe.task).assets_class.load(whole)
                self._last = FolderAssets(recipe, assets, stamps)
            return self._last

    @property
    def recipe(self) -> Recipe:
        """The model's recipe, as last read.

        Raises:
            RegardError: its training has not written it yet.
        """
        if self._last is None:
            raise RegardError(PREPARING, self.given)
        return self._last.recipe

    @property
    def stamps(self) -> tuple[Stamp | None, ...]:
        """Stamps that change with the best weights: of the file, and of the manifest, which is written last."""
        return stamp_of(self.weights), stamp_of(self.path / MANIFEST)

    @property
    def why(self) -> str | None:
        """Why the model cannot be loaded yet; ``None`` if it can."""
        try:
            opened = self._open()
            if opened is None:
                return PREPARING
            with explain_os_errors(self.given):
                if not self.weights.exists():
                    return WAITING if is_running(self.path) else STOPPED
        except RegardError as error:
            return error.message if error.where == self.given else str(error)
        return UNNAMED if opened.recipe.info.has_labels and not opened.assets.labels else None

    def state(self, number: int) -> dict[str, object]:
        """The folder's state for the page; a folder that cannot be read reports its own error only."""
        why, last = self.why, self._last
        found = {
            "number": number,
            "name": self.name,
            "folder": self.given,
            "shipped": self.given in map(str, SHIPPED),
            **(NOTHING if last is None else facts(last.recipe, last.assets)),
            **UNKNOWN,
        }
        try:
            with explain_os_errors(self.given):
                found |= {
                    "parameters": self.parameters,
                    "snapshots": list(snapshots(self.path)),
                    "course": (self.path / LOG).exists(),
                    "without": measurements(self.path) is not None,
                    "running": is_running(self.path),
                    "examples": self.examples,
                    **self.walk,
                }
        except RegardError as error:
            why = why or error.message
        return {**found, "ready": why is None, "why": why, "weights": None if why else weights_name(self.stamps)}

    @property
    def parameters(self) -> int | None:
        """Number of parameters; counted again when the weights change."""
        stamp = stamp_of(self.weights)
        if stamp != self._counted[0]:
            self._counted = stamp, count_parameters(self.weights)
        return self._counted[1]

    @property
    def examples(self) -> list[str]:
        """Example texts; searched again in each new log until some are found."""
        stamp = stamp_of(self.path / RECIPE), stamp_of(self.path / LOG)
        if self._last is not None and not self._examples and stamp != self._examined:
            self._examples, self._examined = examples(self.path, self._last.recipe), stamp
        return self._examples

    @property
    def walk(self) -> dict[str, object]:
        """The guided walk of a demonstration, and why there is none; read again when its file or the weights change.

        The classic sentences are there before it: as soon as a demonstration's training has begun.
        """
        if self._last is None:
            return NO_WALK_STATE
        path, recipe = walk_path(self.path), self._last.recipe
        stamps = None if path is None else stamp_of(path), *self.stamps, *self._last.stamps
        if stamps != self._walked[0]:
            found = walk_state(path, recipe.model, settled_weights(self.path)) if path else NO_WALK_STATE
            classic = classic_values() if is_demo(self.path, recipe) else None
            self._walked = stamps, {**found, "classic": classic}
        return self._walked[1]


@contextmanager
def explain_os_errors(where: str) -> Iterator[None]:
    """Turn an OSError about a folder into a readable RegardError.

    Raises:
        RegardError: it cannot be read.
    """
    try:
        yield
    except OSError as error:
        raise RegardError(f"{UNREADABLE}: {error.strerror or error}", where) from None


def _missing(path: Path, before: bool) -> str:
    """Message for a folder without a recipe, which it had before or never."""
    if not path.exists():
        return "this folder is not there any more" if before else "no such folder"
    if (path / OWN).is_file():
        return OWN_CLASS
    training = path / LOG.parent
    if not training.is_dir():
        return f"is no model folder: it has no {RECIPE}"
    return LOST if (path / MODEL).exists() or (training / "checkpoints").exists() else UNBEGUN


def count_parameters(path: Path) -> int | None:
    """Number of parameters in a weights file, from its header; ``None`` if there is no file yet."""
    if not path.is_file():
        return None
    try:
        return sum(prod(entry["shape"]) for entry in read_header(path).values())
    except (OSError, RegardError, TypeError, KeyError):
        return None


def weights_name(stamps: tuple[Stamp | None, ...]) -> str:
    """A short name for the weights with these stamps; other weights get another name."""
    return sha256(repr(stamps).encode()).hexdigest()[:12]


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; ``None`` if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
