"""The models that are looked into: told without their weights, and loaded when somebody asks them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError, UsageError
from regard.explore.asked import Asked, Replaced
from regard.explore.course import Course
from regard.explore.folders import Folder, Stamp, named, readable, stamp_of
from regard.explore.gallery import Gallery
from regard.explore.kept import Kept
from regard.explore.regular import refuse_irregular
from regard.explore.runs import snapshots

LOADED = 4
"""Models in memory at once."""
TRIES = 3
"""How often a model is read that a training is just replacing."""
ROOM = 256 << 20
"""Bytes of passes that are kept."""
CUT = 32
"""Texts of which is kept how they are cut into windows."""

REPLACED = "newer weights are there than those that were looked at; look again"


@dataclass(frozen=True, eq=False)
class Loaded:
    """A task ready to use.

    Args:
        task: with its model.
        key: another key, other weights.
    """

    task: Any
    key: tuple[int, str | None, tuple[Stamp | None, ...]]

    @property
    def weights(self) -> str:
        """The name of its weights, as a folder's state tells that of the best ones."""
        return named(self.key[2])


class Models:
    """The models of some folders, in order; each is loaded at first need, and anew when its file is another one.

    Args:
        folders: model folders, or those of trainings that have not validated yet.
        images: a file of images to put before models of images.
        threads: that torch computes with, in whatever thread loads a model.

    Raises:
        RegardError: one of them is no model folder.
    """

    def __init__(self, folders: Sequence[Path | str], images: Path | str | None = None, threads: int = 1) -> None:
        self.threads = threads
        self.folders = [Folder(folder) for folder in folders]
        self.courses = [Course(folder.path) for folder in self.folders]
        self.gallery = Gallery(None if images is None else Path(images))
        self.passes: Kept[Any] = Kept(ROOM, lambda one: one.size)
        self.written: Kept[tuple[int, ...]] = Kept(1000)
        self.cut: Kept[Any] = Kept(CUT)
        self._tasks: dict[tuple[int, str | None], Loaded] = {}
        self._lock = threading.Lock()

    def states(self) -> list[dict[str, Any]]:
        """What a page has to know of each."""
        found = [folder.state(number) for number, folder in enumerate(self.folders)]
        names = Counter(one["name"] for one in found)
        return [{**one, "name": one["folder"] if names[one["name"]] > 1 else one["name"]} for one in found]

    def folder(self, number: int) -> Folder:
        """The folder of a model.

        Raises:
            UsageError: there is no such model.
        """
        if not 0 <= number < len(self.folders):
            raise UsageError(f"there is no model {number}; they count from 0 to {len(self.folders) - 1}", "model")
        return self.folders[number]

    def asked(self, asked: Asked) -> Loaded:
        """The model that a question is about; as :meth:`loaded`."""
        return self.loaded(asked.model, asked.snapshot, asked.weights)

    def loaded(self, number: int, snapshot: str | None = None, weights: str | None = None) -> Loaded:
        """A model with its best weights, or with those that its run kept at some step.

        Args:
            number: of the model.
            snapshot: what its run kept; ``None``: the best.
            weights: the name of those that are meant; they answer as long as they are in memory, though there are
                others. ``None``: those that are there now.

        Raises:
            UsageError: there is no such model, or nothing was kept by that name.
            Replaced: the weights that are meant are there no more.
            RegardError: it has no weights yet, or they are damaged.
        """
        folder = self.folder(number)
        with self._lock:
            found = self._tasks.get((number, snapshot))
            if found is None or found.weights != weights:
                place = _kept(folder, snapshot)
                stamps = _stamps(folder, place)
                refuse_others(weights, named(stamps))
                if found is None or found.key != (number, snapshot, stamps):
                    self._tasks.pop((number, snapshot), None)
                    del found  # the old weights leave before there are new ones
                    self._thread()
                    found = _read(folder, place, number, snapshot)
                    refuse_others(weights, found.weights)
            self._tasks.pop((number, snapshot), None)
            self._tasks[number, snapshot] = found
            while len(self._tasks) > LOADED:
                self._tasks.pop(next(iter(self._tasks)))
        return found

    def _thread(self) -> None:
        import torch

        torch.set_num_threads(self.threads)


def refuse_others(wanted: str | None, there: str) -> None:
    """Raise a Replaced where other weights are there than are meant."""
    if wanted not in (None, there):
        raise Replaced(REPLACED)


def _kept(folder: Folder, snapshot: str | None) -> Path | None:
    """Where kept weights lie."""
    if snapshot is None:
        return None
    with readable(folder.given):
        there = snapshots(folder.path)
    if snapshot not in there:
        names = f"there are {', '.join(there)}" if there else "the run has kept none"
        raise UsageError(f"nothing was kept as {snapshot[:40]!r}; {names}", "snapshot")
    return there[snapshot]


def _stamps(folder: Folder, place: Path | None) -> tuple[Stamp | None, ...]:
    """What changes when weights do."""
    if place is not None:
        return (stamp_of(place / "weights.safetensors"),)
    return folder.stamps


def _read(folder: Folder, place: Path | None, number: int, snapshot: str | None) -> Loaded:
    """Load a model, once more where a training replaced it meanwhile: weights must have the name of no others."""
    for left in reversed(range(TRIES)):
        if place is None and (why := folder.why):
            raise RegardError(why, folder.given)
        before = _stamps(folder, place)
        for read in (folder.path, place):
            if read is not None:
                refuse_irregular(read)
        try:
            task = _task(folder.path, place)
        except RegardError:
            if not left or before == _stamps(folder, place):
                raise
            continue
        behind = _stamps(folder, place)
        if before == behind:
            return Loaded(task, (number, snapshot, before))
        if left:
            del task  # it leaves before there is another
    return Loaded(task, (number, snapshot, (*before, *behind)))


def _task(folder: Path, place: Path | None) -> Any:
    """The task of a folder, with the best weights, or with those kept at a place."""
    from regard.models import store
    from regard.tasks.bundle import TASKS, load, opened, ready
    from regard.training import manifest

    if place is None:
        return load(folder)
    manifest.verify(place)
    recipe, assets = opened(folder)
    model = TASKS[recipe.task].build(recipe, assets.sizes)
    store.read(place / "weights.safetensors", model)
    return ready(recipe, assets, model)
