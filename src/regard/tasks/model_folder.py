"""A model folder and its task: models opened for torch, or for the engine without it; the terms of a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from regard.config import Recipe, saved_recipe
from regard.config.adapter import Base
from regard.engine.weights import MappedPacker, RecordingPacker, SharedWeights, StalePack, WeightFile
from regard.system import processor
from regard.system.errors import Option, RegardError, UsageError
from regard.system.kernels.packing import Packer, Precision, SharingPacker
from regard.system.threads import ended_threads
from regard.tasks import model_class
from regard.tasks.assets import PROCESSORS, AnswerAssets, ProcessorFile, read_json
from regard.tasks.engine import build, has_engine
from regard.tasks.model_path import MODEL as MODEL
from regard.tasks.model_path import RECIPE as RECIPE
from regard.tasks.model_path import existing, finished_folder, model_folder, verifying, weights_sha256, with_base
from regard.tasks.protocols import Assets, Task, Unloaded
from regard.tasks.text.precisions import Wanted, derived_files, precision_of, write_derived
from regard.text.language_tokens import refuse_unknown
from regard.text.tokenizers.vocabulary import TERMS, Vocabularies
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files

if TYPE_CHECKING:
    import torch

    from regard.text.terms import TermList

PACKED_WEIGHTS = "packed.safetensors"
"""The matrices of a model as the engine packs them, a file made from its weights."""
GPUS = ("/dev/nvidiactl", "/dev/kfd")
"""Devices of the system that say that there may be a GPU, which is then the default."""


def load_recipe_and_assets(folder: Path) -> tuple[Recipe, Any]:
    """Recipe and assets of a model folder."""
    folder = existing(folder)
    recipe = saved_recipe(folder / RECIPE)
    with with_base(folder) as whole:
        assets = model_class(recipe.task).assets_class.load(whole)
    usual = recipe.text.source_language, recipe.text.target_language
    refuse_unknown(getattr(assets, "languages", None), usual, folder)
    return recipe, assets


def load(folder: Path | str, device: str | None = None) -> Task:
    """Load the task of a model folder, ready to use; the folder's manifest is verified first.

    Args:
        folder: what ``regard train`` wrote, or ``regard demo``.
        device: ``cpu``, ``cuda``, ``cuda:1`` …; default: a GPU if there is one.

    Raises:
        RegardError: it is no model folder, or a file of it is damaged.
    """
    return _load(finished_folder(folder), device)


def load_adapter(folder: Path | str, base: Task, weights: str) -> Task:
    """Load the task of an adapter whose base is in memory; both share the tensors that it leaves as they are.

    Args:
        folder: of the adapter.
        base: its base as it was loaded; ``weights``: the sha256 of its weights.

    Raises:
        RegardError: it is no adapter of this model, or a file of it is damaged.
    """
    folder = finished_folder(folder)
    named = Base.of(folder)
    if named is None or named.sha256 != weights:
        raise RegardError("is no adapter of this model", str(folder))
    return _load(folder, str(base.device), base.model)


def _load(folder: Path, device: str | None, base: torch.nn.Module | None = None) -> Task:
    from regard.models.store import check_weights, load_weights, refuse_infinite

    with verifying(folder):
        recipe, assets = load_recipe_and_assets(folder)
    check_weights(folder / MODEL, outline(recipe, assets))  # before memory is taken for what a recipe claims
    model = model_class(recipe.task).build(recipe, assets.sizes)
    load_weights(folder / MODEL, model, base)
    refuse_infinite(folder / MODEL, model)
    return ready(recipe, assets, model, device, validated_paths(folder).get(processor.kind()))


def outline(recipe: Recipe, assets: Assets) -> torch.nn.Module:
    """The model of a recipe without memory for its weights: to count and to check shapes."""
    import torch

    with torch.device("meta"):
        return model_class(recipe.task).build(recipe, assets.sizes)


def validated_paths(folder: Path) -> dict[str, str]:
    """The path of products by which a model was validated, by kind of processor; empty where nothing is recorded."""
    path = folder / PROCESSORS
    return dict(read_json(path, ProcessorFile).paths) if path.is_file() else {}


def ready(
    recipe: Recipe, assets: Assets, model: torch.nn.Module, device: str | None = None, path: str | None = None
) -> Task:
    """A model in evaluation mode on its device, its products computed in full precision.

    Args:
        recipe, assets, model: of the model.
        device: where it is to be.
        path: of products; where it is not given, or this machine lacks it, the processor's flags decide.
    """
    from regard.nn import ops

    chosen = choose_device(device)
    model.eval().requires_grad_(False).to(chosen)
    known = [full for full in ops.full_paths(str(chosen)) if full == path]
    ops.use(model, known[0] if known else ops.full(str(chosen)))
    return model_class(recipe.task)(recipe, assets, model)


def choose_device(device: str | None) -> torch.device:
    """The named device, else CUDA if available, else the CPU.

    Raises:
        UsageError: torch knows no such device here.
    """
    import torch

    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
        if chosen.type == "meta" or (chosen.type == "cpu" and chosen.index):  # torch takes these
            raise RuntimeError
    except (RuntimeError, AssertionError):
        raise UsageError(f"{device!r} is no device of this machine; try cpu", Option("device")) from None
    return chosen


def open_without_torch(
    given: Path | str, device: str | None, wanted: Wanted = "auto", shared: SharedWeights | None = None
) -> Any:
    """The task of a model folder, for the engine to compute; ``None`` where torch has to, and says what is wrong.

    Matrices are those of the packed file beside the weights, or in the cache, where one holds them (``regard pack``);
    else the engine packs them. A file that names this precision, or none, and is damaged or of other weights is
    written anew.

    Args:
        given: the model folder; its manifest is verified meanwhile.
        device: as asked for; default: a GPU, should there be one.
        wanted: the precision.
        shared: what models of one base have in common; they are packed together then, and no packed file is used.

    Raises:
        RegardError: a file of it is damaged, or the weights are not those of the recipe.
    """
    if device not in (None, "cpu") or (device is None and any(Path(gpu).exists() for gpu in GPUS)):
        return None
    recipe = model_folder(given) / RECIPE
    try:
        if not has_engine(saved_recipe(recipe)):
            return None
    except (RegardError, OSError):
        return None
    folder = finished_folder(given)
    with verifying(folder) as verified:
        task, weights, settled = _open_task(folder, shared)
        task.precision = precision_of(folder, wanted)
        if shared:
            engine = build(task, weights.take_finite, SharingPacker(task.precision, shared.packed))
        else:
            engine = _mapped_or_packed(folder, settled, task, weights, verified)
        weights.refuse_surplus()
    task.engine = lambda: engine
    return task


def open_by_engine(given: Path | str, wanted: Wanted, shared: SharedWeights | None = None) -> Any:
    """The same on a processor, for programs that never load torch.

    Raises:
        RegardError: there is no model, it is damaged, or torch would have to compute it.
    """
    folder = finished_folder(given)
    task = open_without_torch(folder, "cpu", wanted, shared)
    if task is None:
        raise RegardError("is computed by torch, which is not loaded here", str(folder))
    return task


class LazyEngine:
    """An engine that is opened when it is first used.

    Args:
        open: opens it.
    """

    def __init__(self, open: Callable[[], object]) -> None:
        self._open, self._lock = open, Lock()
        self._engine: object = None

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._engine is None:
                self._engine = self._open()
        return getattr(self._engine, name)

    def with_shortlist(self, pieces: object) -> LazyEngine:
        """The engine that keeps to a shortlist, opened as late."""
        return LazyEngine(lambda: self.__getattr__("with_shortlist")(pieces))


def open_with(given: Path | str, engine: object, wanted: Wanted) -> Task:
    """The task of a model folder for an engine that there is; its weights are not read."""
    folder = finished_folder(given)
    task = _task_of(folder)
    task.engine, task.precision = lambda: engine, precision_of(folder, wanted)
    return task


def write_packed(given: Path | str, precision: Precision) -> Path:
    """Write the packed weights of a model folder, in the place of those of another precision; where they are.

    Args:
        given: the folder of a model that the engine computes.

    Raises:
        RegardError: a file of the model is damaged, the weights are being replaced, or neither the folder nor the
            user's cache can be written.
    """
    folder, kept = finished_folder(given), RecordingPacker(precision)
    with verifying(folder) as verified:
        task, weights, settled = _open_task(folder)
        verified()
        build(task, weights.take_finite, kept)
        return _keep(folder, settled, kept)


def _open_task(folder: Path, shared: SharedWeights | None = None) -> tuple[Task, WeightFile, str | None]:
    """The task of a model folder without an engine yet, its weights, and which those were before."""
    task, settled = _task_of(folder), settled_weights(folder)
    return task, shared.file(folder / MODEL) if shared else WeightFile(folder / MODEL), settled


def _task_of(folder: Path) -> Task:
    recipe, assets = load_recipe_and_assets(folder)
    return model_class(recipe.task)(recipe, assets, Unloaded(lambda: load(folder, "cpu").model))


def settled_weights(folder: Path) -> str | None:
    """The sha256 of a folder's weights; ``None`` while they are being replaced.

    Asked before the weights are opened and given back afterwards, it tells whether they are the same still: a training
    replaces first the weights and then the manifest.
    """
    if (folder / manifest.NEXT).exists():
        return None
    try:
        return weights_sha256(folder)
    except RegardError:
        return None


def _mapped_or_packed(
    folder: Path, settled: str | None, task: Task, weights: WeightFile, verified: Callable[[], None]
) -> object:
    """The engine of a task, of a file's weights, which are finite: those packed before were seen to be so then.

    Args:
        settled: :func:`settled_weights` before they were opened.
        verified: waits until the weights are verified, and raises if they are damaged.
    """
    stale = False
    for path in derived_files(folder, settled, PACKED_WEIGHTS) if settled else ():
        try:
            with ended_threads(1) as pool:
                mapped = MappedPacker(path, settled or "", task.precision, pool)
                engine = build(task, weights.take, mapped)
                mapped.verify()
        except StalePack as wrong:
            stale = stale or wrong.precision in (None, task.precision)
            continue
        if settled_weights(folder) == settled:
            return engine
    kept = RecordingPacker(task.precision) if stale else Packer(task.precision)
    engine = build(task, weights.take_finite, kept)
    if isinstance(kept, RecordingPacker):
        verified()
        with suppress(RegardError):  # it is only for speed
            _keep(folder, settled, kept)
    return engine


def _keep(folder: Path, settled: str | None, kept: RecordingPacker) -> Path:
    if settled is None or settled_weights(folder) != settled:
        raise RegardError("is being replaced; pack it again when the training is done", str(folder))
    return write_derived(folder, settled, PACKED_WEIGHTS, kept.content(settled))


def edit_terms(folder: Path, add: Path | None = None, remove: Sequence[str] = ()) -> TermList:
    """The terms of a model folder, some removed and then those of a file added; the folder changes at once.

    Raises:
        UsageError: its model neither translates nor answers.
        RegardError: folder or file is damaged, or a term to remove is not there.
    """
    from regard.text.terms import NO_TERMS, TermList

    folder = model_folder(folder)
    recipe, assets = load_recipe_and_assets(folder)
    if not isinstance(assets, Vocabularies | AnswerAssets):
        raise UsageError(f"is {recipe.info.noun}; terms are kept by what translate and ask write", str(folder))
    before = assets.terms or NO_TERMS
    found = before.without(remove)
    if add is not None:
        found = found.with_lines(TermList.read(add))
    if found.lines != before.lines:
        manifest.replace(folder, {TERMS: [found.content]}, Files())
    return found
