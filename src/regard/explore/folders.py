"""A model folder told without its weights: recipe, assets, the header of the weights, and how its run goes.

Nothing here needs torch, so that a page has all this while torch is still being loaded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

from regard import disk
from regard.config import Recipe, recipe_from, recipe_values
from regard.errors import RegardError
from regard.explore.course import LOG
from regard.explore.examples import examples
from regard.explore.facts import NOTHING, facts, labelled
from regard.explore.regular import refuse_irregular
from regard.explore.runs import preparing, running, snapshots
from regard.tasks.model_folder import model_folder

Stamp = tuple[int, int, int]
"""When a file was written, its size, and which one it is: another stamp, another file."""

RECIPE, MODEL, MANIFEST, LABELS = "recipe.toml", "model.safetensors", "manifest.json", "labels.json"
PREPARING = "training has just begun and prepares its data; the model can be looked at after its first validation"
WAITING = "training has not validated yet, so it has saved no model to look at; wait for it"
STOPPED = "training stopped before its first validation, so there are no weights; go on with it by the same command"
UNBEGUN = "there is no recipe yet: its training stopped while it prepared the data; begin it again by the same command"
LOST = f"its {RECIPE} is lost; put it back, or give the command that trained it again, which writes it anew"
EMPTY = "is empty; put it back, or give the command that trained the model again, which writes it anew"
UNREADABLE = "this folder cannot be read"
UNNAMED = f"its {LABELS} is lost, and without it what it says has no names; put it back, or train it again"

UNKNOWN: dict[str, Any] = {"parameters": None, "snapshots": [], "course": False, "running": False, "examples": []}
"""What is told of a folder that cannot be read."""


@dataclass(frozen=True)
class Opened:
    """What a model is, beside its weights.

    Args:
        recipe: of the model; ``assets``: as its task has them.
        stamps: of the files it was read from.
    """

    recipe: Recipe
    assets: Any
    stamps: tuple[Stamp | None, ...]


class Folder:
    """A model folder, told again and again while a training may be at work in it, to any thread.

    Args:
        path: of the folder; or of one with the model inside, as ``regard demo`` makes.

    Raises:
        RegardError: it is no model folder, and no training has just begun in it; or a file of it is damaged.
    """

    def __init__(self, path: Path | str) -> None:
        given = Path(path)
        self.given = str(path)
        with readable(self.given):
            self.path = model_folder(given)
        whole = Path(os.path.realpath(given))
        self.name = whole.parent.name if whole.name == "model" else whole.name
        self._examples: list[str] = []
        self._examined: tuple[Stamp | None, ...] | None = None
        self._counted: tuple[Stamp | None, int | None] = None, None
        self._last: Opened | None = None
        self._lock = threading.Lock()
        self._open()

    def _open(self) -> Opened | None:
        """Recipe and assets, read anew where a file was written anew; ``None``: a training has not written them yet.

        Raises:
            RegardError: they are not there, or damaged.
        """
        with self._lock, readable(self.given):
            stamps = tuple(stamp_of(self.path / name) for name in (RECIPE, LABELS))
            if stamps[0] is None:
                if preparing(self.path):
                    return None
                raise RegardError(_missing(self.path, self._last is not None), self.given)
            refuse_irregular(self.path)
            if self._last is None or stamps != self._last.stamps:
                values = recipe_values(self.path / RECIPE)
                if not values:
                    raise RegardError(EMPTY, str(self.path / RECIPE))
                recipe = recipe_from(values, str(self.path / RECIPE))
                self._last = Opened(recipe, assets(self.path, recipe.task), stamps)
            return self._last

    @property
    def recipe(self) -> Recipe:
        """Of the model, as it was last read.

        Raises:
            RegardError: its training has not written it yet.
        """
        if self._last is None:
            raise RegardError(PREPARING, self.given)
        return self._last.recipe

    @property
    def weights(self) -> Path:
        """The file of the best weights, which may not be there yet."""
        return self.path / MODEL

    @property
    def stamps(self) -> tuple[Stamp | None, ...]:
        """What changes when the best weights do: the file itself, and the manifest, which is written last."""
        return stamp_of(self.weights), stamp_of(self.path / MANIFEST)

    @property
    def why(self) -> str | None:
        """Why the model cannot be looked at yet; ``None`` where it can."""
        try:
            return self._why()
        except RegardError as error:
            return error.message if error.where == self.given else str(error)

    def _why(self) -> str | None:
        opened = self._open()
        if opened is None:
            return PREPARING
        with readable(self.given):
            if not self.weights.exists():
                return WAITING if running(self.path) else STOPPED
        return UNNAMED if labelled(opened.recipe) and not opened.assets.labels else None

    def state(self, number: int) -> dict[str, Any]:
        """What a page has to know of it; what cannot be read of it is told of it alone."""
        why, last = self.why, self._last
        found = {
            "number": number,
            "name": self.name,
            "folder": self.given,
            **(NOTHING if last is None else facts(last.recipe, last.assets)),
            **UNKNOWN,
        }
        try:
            with readable(self.given):
                found |= self._told()
        except RegardError as error:
            why = why or error.message
        return {**found, "ready": why is None, "why": why, "weights": None if why else named(self.stamps)}

    def _told(self) -> dict[str, Any]:
        return {
            "parameters": self.parameters,
            "snapshots": list(snapshots(self.path)),
            "course": (self.path / LOG).exists(),
            "running": running(self.path),
            "examples": self.examples,
        }

    @property
    def parameters(self) -> int | None:
        """How many numbers the weights are; counted anew where they are others."""
        stamp = stamp_of(self.weights)
        if stamp != self._counted[0]:
            self._counted = stamp, parameters(self.weights)
        return self._counted[1]

    @property
    def examples(self) -> list[str]:
        """Texts to begin with; looked for in each new log until there are some."""
        if self._last is not None and not self._examples and (stamp := self._seen()) != self._examined:
            self._examples, self._examined = examples(self.path, self._last.recipe), stamp
        return self._examples

    def _seen(self) -> tuple[Stamp | None, ...]:
        """What changes when there may be other examples."""
        return stamp_of(self.path / RECIPE), stamp_of(self.path / LOG)


@contextmanager
def readable(where: str) -> Iterator[None]:
    """Say in a sentence what the system says of a folder.

    Raises:
        RegardError: it cannot be read.
    """
    try:
        yield
    except OSError as error:
        raise RegardError(f"{UNREADABLE}: {error.strerror or error}", where) from None


def _missing(path: Path, before: bool) -> str:
    """What is said of a folder without a recipe, which it had before or never."""
    if not path.exists():
        return "this folder is not there any more" if before else "no such folder"
    training = path / LOG.parent
    if not training.is_dir():
        return f"is no model folder: it has no {RECIPE}"
    return LOST if (path / MODEL).exists() or (training / "checkpoints").exists() else UNBEGUN


def assets(path: Path, task: str) -> Any:
    """What the model of a folder needs beside its weights; as its task has it, which would load torch."""
    from regard.tasks.image_assets import ImageAssets
    from regard.tasks.tag_assets import TagAssets
    from regard.tasks.text_assets import TextAssets
    from regard.text.vocabulary import Vocabularies

    kinds: dict[str, Any] = {"translation": Vocabularies, "tagging": TagAssets, "image-classification": ImageAssets}
    return kinds.get(task, TextAssets).load(path)


def parameters(path: Path) -> int | None:
    """How many numbers a file of weights holds, by its header; ``None`` where there is none yet."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        return None
    try:
        disk.refuse_irregular(path)
        with safe_open(path, "np") as file:
            return sum(prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except (OSError, RegardError, SafetensorError):
        return None


def named(stamps: tuple[Stamp | None, ...]) -> str:
    """A short name for the weights that have these stamps: another name, other weights."""
    return sha256(repr(stamps).encode()).hexdigest()[:12]


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; ``None`` where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
