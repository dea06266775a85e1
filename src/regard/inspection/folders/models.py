"""The explored models and images: loaded on first use, cached, reloaded when a training replaces weights."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.inspection.folders.facts import refuse_irregular
from regard.inspection.folders.folder import Folder, Stamp, explain_os_errors, snapshots, stamp_of, weights_name
from regard.inspection.folders.training_curves import TrainingCurves
from regard.inspection.requests import ModelRequest, WeightsReplaced
from regard.system.errors import RegardError, UsageError
from regard.tasks.kinds import translates

if TYPE_CHECKING:
    from regard.tasks.images.classifier import ImageClassification
    from regard.tasks.protocols import Task

Value = TypeVar("Value")
MOST = 1000
"""Most images of a file to show, from its start."""
LOADED = 4
"""Models kept in memory."""
TRIES = 3
"""Attempts at loading a model that a training is replacing."""
ROOM, PASSES = 256 << 20, 128
"""Bytes of cached passes, and how many at most: small ones would fill the room long after they were asked for."""
CUT = 32
"""Texts whose windows are cached."""
REPLACED = "newer weights are there than those that were looked at; look again"


class LruCache(Generic[Value]):
    """A thread-safe LRU cache.

    Args:
        room: total size of all values; a larger value is not stored.
        size: computes the size of a value, once.
    """

    def __init__(self, room: float, size: Callable[[Value], float] = lambda value: 1) -> None:
        self._room, self._size = room, size
        self._values: OrderedDict[Hashable, tuple[Value, float]] = OrderedDict()
        self._taken = 0.0
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, computed if missing."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        made = make()
        self.put(key, made)
        return made

    def put(self, key: Hashable, value: Value) -> None:
        """Store a value, and evict the least recently used ones."""
        size = self._size(value)
        if size > self._room:
            return
        with self._lock:
            _, before = self._values.pop(key, (None, 0.0))
            self._values[key] = value, size
            self._taken += size - before
            while self._taken > self._room:
                _, (_, left) = self._values.popitem(last=False)
                self._taken -= left


@dataclass(frozen=True)
class ImageBatch:
    """A batch of images.

    Args:
        pixels: images × height × width × channels.
        labels: of each; empty where it has none.
        total: how many there are altogether.
    """

    pixels: NDArray[np.int64]
    labels: tuple[str, ...]
    total: int


class Gallery:
    """Images for any model.

    Args:
        path: of a file of images: CSV, TSV or ``.npz``; or ``None``.
        most: images of the file that are read, its first.
    """

    def __init__(self, path: Path | None, most: int = MOST) -> None:
        self._path, self._most = path, most
        self._read: LruCache[ImageBatch] = LruCache(2)
        self.origin = "digits" if path is None else "file"
        """Where the images come from: a ``file``, or the ``digits`` of the demonstration."""

    def batch(self, task: ImageClassification, begin: int, count: int) -> ImageBatch:
        """The images from number ``begin`` on, counted from 0; empty if there are none for this model.

        Raises:
            RegardError: the file cannot be read, or its images are not of the size the model reads.
        """
        path = self._path
        if path is None:
            return _digit_images(task, begin, count)
        every = self._read.get(task.cut.shape, lambda: _read_images(task, path, self._most))
        part = slice(begin, begin + count)
        return ImageBatch(every.pixels[part], every.labels[part], every.total)

    def image(self, task: ImageClassification, number: int) -> NDArray[np.int64]:
        """The pixels of one image, counted from 0; messages count from 1.

        Raises:
            UsageError: there is no such image.
        """
        found = self.batch(task, number, 1)
        if not found.total:
            raise UsageError("there are no images here; draw one, or give a file of them by --images", "image")
        if not len(found.pixels):
            raise UsageError(f"there is no image {number + 1}; there are {found.total:,}", "image")
        return found.pixels[0]

    def label(self, task: ImageClassification, number: int) -> str | None:
        """The label of one image, if any."""
        labels = self.batch(task, number, 1).labels
        return labels[0] or None if labels else None


def _read_images(task: ImageClassification, path: Path, most: int) -> ImageBatch:
    from regard.tasks.images.classifier import some_images

    found = some_images(task, path, most)
    labels = tuple(label or "" for _, label in found)
    return ImageBatch(task.images([pixels for pixels, _ in found]), labels, len(found))


def _digit_images(task: ImageClassification, begin: int, count: int) -> ImageBatch:
    """Generated images of several digits: the demonstration's test set."""
    from regard.runs.demo.images import SIDE, TEST, TRAIN, VALID, corpus

    shape = task.cut.shape
    if (shape.height, shape.width, shape.channels) != (SIDE, SIDE, 1):
        nothing = np.zeros((0, shape.height, shape.width, shape.channels), np.int64)
        return ImageBatch(nothing, (), 0)
    begin = min(begin, TEST)
    pixels, labels = corpus(min(count, TEST - begin), task.recipe.seed, TRAIN + VALID + begin)
    return ImageBatch(pixels[..., None].astype(np.int64), tuple(map(str, labels.tolist())), TEST)


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A loaded task.

    Args:
        task: with its model.
        key: another key, other weights.
    """

    task: Task
    key: tuple[Any, ...]

    @property
    def weights(self) -> str:
        """The name of its weights, as in the folder's state for the best ones."""
        return weights_name(self.key[2])


class Models:
    """The models of some folders, in order; loaded on first use, and again when their files change.

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
        self.courses = [TrainingCurves(folder.path) for folder in self.folders]
        self.gallery = Gallery(None if images is None else Path(images))
        self.passes, self.written = _pass_caches()
        self.cut: LruCache[Any] = LruCache(CUT)
        self._tasks: dict[tuple[int, str | None], LoadedModel] = {}
        self._lock = threading.Lock()

    @contextmanager
    def without_cache(self) -> Iterator[None]:
        """While the context is open, every pass is run anew, and none of them is kept for later."""
        kept = self.passes, self.written
        self.passes, self.written = _pass_caches()
        try:
            yield
        finally:
            self.passes, self.written = kept

    def states(self) -> list[dict[str, object]]:
        """The state of each folder, for the page."""
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

    def hold(self, task: Task) -> LoadedModel:
        """Answer for the first model by a task loaded already, where its weights are asked for by their name."""
        folder = self.folder(0)
        held = LoadedModel(task, (0, None, _stamps(folder, None)))
        with self._lock:
            self._tasks[0, None] = held
        return held

    def load_for(self, asked: ModelRequest) -> LoadedModel:
        """Load the model of a request, as :meth:`load`, for its languages."""
        found = self.load(asked.model, asked.snapshot, asked.weights)
        if not any(asked.between):
            return found
        if not translates(found.task):
            raise UsageError("this model is no translator", "between")
        return LoadedModel(found.task.between(*asked.between), (*found.key, asked.between))

    def load(self, number: int, snapshot: str | None = None, weights: str | None = None) -> LoadedModel:
        """Load a model with its best weights, or with a snapshot of its run.

        Args:
            number: of the model.
            snapshot: what its run kept; ``None``: the best.
            weights: the name of those that are meant; they answer as long as they are in memory, though there are
                others. ``None``: those that are there now.

        Raises:
            UsageError: there is no such model, or nothing was kept by that name.
            WeightsReplaced: the requested weights no longer exist.
            RegardError: it has no weights yet, or they are damaged.
        """
        folder = self.folder(number)
        with self._lock:
            found = self._tasks.get((number, snapshot))
            if found is None or found.weights != weights:
                place = _snapshot_path(folder, snapshot)
                stamps = _stamps(folder, place)
                refuse_replaced_weights(weights, weights_name(stamps))
                if found is None or found.key != (number, snapshot, stamps):
                    self._tasks.pop((number, snapshot), None)
                    del found  # release the old weights before loading new ones
                    import torch

                    torch.set_num_threads(self.threads)
                    found = _load_stable(folder, place, number, snapshot)
                    refuse_replaced_weights(weights, found.weights)
            self._tasks.pop((number, snapshot), None)
            self._tasks[number, snapshot] = found
            while len(self._tasks) > LOADED:
                self._tasks.pop(next(iter(self._tasks)))
        return found


def _pass_caches() -> tuple[LruCache[Any], LruCache[tuple[int, ...]]]:
    """Empty caches of passes, and of what a model writes by itself."""
    return LruCache(ROOM, lambda one: max(one.size, ROOM / PASSES)), LruCache(2 * PASSES)


def refuse_replaced_weights(wanted: str | None, there: str) -> None:
    """Raise a WeightsReplaced if the weights are not the requested ones."""
    if wanted not in (None, there):
        raise WeightsReplaced(REPLACED)


def _snapshot_path(folder: Folder, snapshot: str | None) -> Path | None:
    """The folder of a snapshot."""
    if snapshot is None:
        return None
    with explain_os_errors(folder.given):
        there = snapshots(folder.path)
    if snapshot not in there:
        names = f"there are {', '.join(there)}" if there else "the run kept none"
        raise UsageError(f"there is no snapshot {snapshot[:40]!r}; {names}", "snapshot")
    return there[snapshot]


def _stamps(folder: Folder, place: Path | None) -> tuple[Stamp | None, ...]:
    """Stamps that change with the weights."""
    if place is not None:
        return (stamp_of(place / "weights.safetensors"),)
    return folder.stamps


def _load_stable(folder: Folder, place: Path | None, number: int, snapshot: str | None) -> LoadedModel:
    """Load a model, and retry if a training replaced it meanwhile, so that weights and name match."""
    for left in reversed(range(TRIES)):
        if place is None and (why := folder.why):
            raise RegardError(why, folder.given)
        before = _stamps(folder, place)
        for read in (folder.path, place):
            if read is not None:
                refuse_irregular(read)
        try:
            task = _load_task(folder.path, place)
        except RegardError:
            if not left or before == _stamps(folder, place):
                raise
            continue
        behind = _stamps(folder, place)
        if before == behind:
            return LoadedModel(task, (number, snapshot, before))
        if left:
            del task  # release it before loading another
    return LoadedModel(task, (number, snapshot, (*before, *behind)))


def _load_task(folder: Path, place: Path | None) -> Task:
    """The task of a folder with its best weights, or with a snapshot's."""
    from regard.models import store
    from regard.models.low_rank import add_factors
    from regard.tasks import model_class
    from regard.tasks.model_folder import load, load_recipe_and_assets, ready
    from regard.training.checkpoints import manifest

    if place is None:
        return load(folder)
    manifest.verify(place)
    recipe, assets = load_recipe_and_assets(folder)
    model = model_class(recipe.task).build(recipe, assets.sizes)
    if recipe.adapt.rank:
        add_factors(model, recipe.adapt)
    store.load_weights(place / "weights.safetensors", model)
    return ready(recipe, assets, model)
