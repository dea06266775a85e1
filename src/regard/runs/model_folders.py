"""Model folders made of others: the mean of a run's checkpoints [Vaswani17 §6.1], a merged adapter, a slim one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from regard.config import Adapt, recipe_toml
from regard.config.adapter import Base
from regard.models import store
from regard.system import disk
from regard.system.errors import Option, RegardError, UsageError
from regard.tasks.model_folder import MODEL, RECIPE, load, load_recipe_and_assets, outline
from regard.tasks.model_path import CARD, finished_folder, model_folder
from regard.tasks.training.model_writer import final
from regard.text.confidence import CONFIDENCE
from regard.training.checkpoints import checkpoint, manifest, provenance
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.output_folder import (
    foreign_files,
    fresh_folder,
    hold_lock,
    is_finished,
    left_behind,
    refuse_other,
)

if TYPE_CHECKING:
    from torch import Tensor

    from regard.tasks.protocols import Task


def average(
    folder: Path | str, output: Path | str, last: int | None = None, checkpoints: Sequence[Path | str] = ()
) -> Task:
    """Average checkpoints of the run in ``folder`` into a new model folder ``output``, and load that.

    Args:
        folder: the model folder of a run.
        output: must not exist, be empty, or hold this very model already.
        last: the newest n checkpoints; default: all that are kept.
        checkpoints: these checkpoint or snapshot folders instead.

    Raises:
        RegardError: too few checkpoints, a damaged one, one of another model, or an output that holds something.
    """
    folder, output = model_folder(folder), Path(output)
    recipe, assets = load_recipe_and_assets(folder)
    if recipe.adapt.rank:
        raise RegardError("is an adapter: the mean of factors is no mean of models", str(folder))
    refuse_other(output)
    chosen = [Path(path) for path in checkpoints] or select_checkpoints(folder, last)
    weights = mean_of_weights(chosen)
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    if shapes != {name: tuple(part.shape) for name, part in store.named_tensors(outline(recipe, assets)).items()}:
        message = "is a checkpoint of another model: names or shapes differ from the recipe's"
        raise RegardError(message, str(chosen[0]))
    lines = [f"# The mean of {len(chosen)} checkpoints", "", *(f"* {path.name}" for path in chosen)]
    lines += ["", "Not scored yet: `regard evaluate`."]
    if (made := provenance.load(folder / "training")) is not None:  # what the card of the run whose they are says
        lines += ["", "## Their run", *made.data_lines(), *made.training_lines()]
    contents = {
        RECIPE: recipe_toml(recipe).encode(),
        MODEL: store.to_bytes(weights),
        CARD: "\n".join([*lines, ""]).encode(),
        **{name: content for name, content in assets.contents.items() if name != CONFIDENCE},  # fitted to others
    }
    with fresh_folder(output) as fresh:
        manifest.replace(fresh, {name: [content] for name, content in contents.items()}, Files())
    return load(output)


def merge(folder: Path | str, output: Path | str) -> Task:
    """Make of an adapter and its base a model folder that needs neither, and load it.

    Args:
        folder: of the adapter.
        output: must not exist, be empty, or hold this very model already.

    Raises:
        RegardError: it is no adapter, its base is not there or has other weights, or a file is damaged.
    """
    folder, output = finished_folder(folder), Path(output)
    if (base := Base.of(folder)) is None:
        raise RegardError("is no adapter: there is nothing to merge", str(folder))
    refuse_other(output)
    task = load(folder, "cpu")
    card = disk.content(folder / CARD, kind="card").decode("utf-8", "replace") if (folder / CARD).exists() else ""
    card = card.replace("\nAn adapter of ", "\nIt was an adapter of ")
    contents = {
        **task.assets.contents,
        RECIPE: recipe_toml(task.recipe.model_copy(update={"adapt": Adapt()})).encode(),
        MODEL: store.to_bytes(store.weights(task.model)),
        CARD: f"{card.rstrip()}\n\nMerged with its base, `{base.folder.resolve().name}`.\n".encode(),
    }
    with fresh_folder(output) as fresh:
        manifest.replace(fresh, {name: [content] for name, content in contents.items()}, Files())
    return load(output)


def mean_of_weights(places: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of each tensor over one or more checkpoints, snapshots or safetensors files, summed in float64.

    Raises:
        Damaged: a folder is not as it was written.
        RegardError: two places hold different names or shapes.
    """
    first = checkpoint.weights(places[0])
    sums = {name: tensor.double() for name, tensor in first.items()}
    for place in places[1:]:
        found = checkpoint.weights(place)
        odd = set(found) ^ set(sums) or {name for name in sums if sums[name].shape != found[name].shape}
        if odd:
            raise RegardError(f"{min(odd)!r} is not the same as in {places[0]}; average weights of one run", str(place))
        for name, tensor in found.items():
            sums[name] += tensor.double()
    return {name: (total / len(places)).to(first[name].dtype) for name, total in sums.items()}


def select_checkpoints(folder: Path, last: int | None = None) -> list[Path]:
    """The newest ``last`` checkpoints of a run, oldest first; all of them if no number is given.

    Raises:
        UsageError: there are fewer.
        RegardError: there is none.
    """
    if last is not None and last < 1:
        raise UsageError(f"{last} checkpoints cannot be averaged; give 1 or more", Option("last"))
    found = checkpoint.whole(folder / "training" / "checkpoints")
    if not found:
        raise RegardError("has no checkpoints below training/; was it removed?", str(folder))
    if last is not None and len(found) < last:
        message = f"{last} checkpoints requested, but there are {len(found)} (training.keep); ask for fewer"
        raise UsageError(message, str(folder / "training"))
    return found if last is None else found[-last:]


def slim(
    folder: Path | str,
    told: Callable[[str], None] = lambda text: None,
    dry_run: bool = False,
    files: Files | None = None,
) -> Mapping[str, int]:
    """Leave only recipe, weights, assets, card and manifest of a model folder, and foreign files.

    The model is loaded before anything is removed, and loads, is explored and exported afterwards as before. The
    training goes by one rename: killed at any moment, the run is whole or the folder is slim, the model loads, and the
    next call removes the rest.

    Args:
        folder: a model folder; one with a model inside is refused, since what goes is not asked for again.
        told: called with each part and its size, before anything is removed.
        dry_run: remove nothing.
        files: what changes the disk.

    Returns:
        What goes by its path in the folder, in bytes.

    Raises:
        RegardError: it is no model folder, is damaged, its training is not finished, a process is at work in it, or its
            training holds files of others.
    """
    inside, folder, files = model_folder(folder), Path(folder), files or Files()
    if inside != folder:
        raise RegardError(f"is no model folder, but {inside} is one; to remove from that, name it", str(folder))
    load(folder, "cpu")
    training = folder / "training"
    with hold_lock(training) if training.is_dir() else nullcontext():
        if training.is_dir() and not (final(folder) and is_finished(training)):
            message = "its training is not finished; the same regard train command finishes it"
            raise RegardError(message, str(folder))
        if foreign := foreign_files(training):
            message = f"holds {foreign[0]!r}, which no training wrote; move it elsewhere, and rerun the command"
            raise RegardError(message, str(training))
        if not dry_run:
            manifest.settle(folder, files)
        sizes, doomed = dict[str, int](), list[Path]()
        parts = left_behind(folder)
        for path in parts:
            alone = path.name != "training" or path.is_symlink()  # else its parts are shown by themselves
            shown = [path] if alone else [inner for inner in sorted(path.iterdir()) if inner.name != "lock"]
            sizes |= {str(part.relative_to(folder)): size_of(part) for part in shown}
        for name, size in sizes.items():
            told(f"{'would remove' if dry_run else 'removing'} {name}: {size / 1e6:,.1f} MB")
        if dry_run:
            return sizes
        for path in parts:  # all are renamed, so that none is there by half under its name, and removed then
            doomed.append(path.with_name(f".{path.name.removeprefix('.')}.partial-{uuid.uuid4().hex}"))
            files.rename(path, doomed[-1])
        files.fsync_folder(folder)
        for path in doomed:
            files.remove(path)
    return sizes


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; a link counts as itself."""
    if path.is_dir() and not path.is_symlink():
        return sum(size_of(inner) for inner in path.iterdir())
    return path.lstat().st_size
