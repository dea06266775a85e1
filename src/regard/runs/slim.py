"""Removes from a model folder what only its training needed; what remains loads, is explored and exported as before."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

from regard.system.errors import RegardError
from regard.tasks.model_folder import load
from regard.tasks.model_path import model_folder
from regard.tasks.training.model_writer import final
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.output_folder import foreign_files, hold_lock, is_finished, left_behind

UNFINISHED = "its training is not finished; the same regard train command finishes it"


def slim(
    folder: Path | str,
    told: Callable[[str], None] = lambda text: None,
    dry_run: bool = False,
    files: Files | None = None,
) -> Mapping[str, int]:
    """Leave only recipe, weights, assets, card and manifest of a model folder, and foreign files.

    The model is loaded before anything is removed. The training goes by one rename: killed at any moment, the run is
    whole or the folder is slim, the model loads, and the next call removes the rest.

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
            raise RegardError(UNFINISHED, str(folder))
        if foreign := foreign_files(training):
            message = f"holds {foreign[0]!r}, which no training wrote; move it elsewhere, and rerun the command"
            raise RegardError(message, str(training))
        if not dry_run:
            manifest.settle(folder, files)
        parts = left_behind(folder)
        sizes = {str(part.relative_to(folder)): size_of(part) for path in parts for part in _shown(path)}
        for name, size in sizes.items():
            told(f"{'would remove' if dry_run else 'removing'} {name}: {size / 1e6:,.1f} MB")
        if not dry_run:
            _remove(folder, parts, files)
    return sizes


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; a link counts as itself."""
    if path.is_dir() and not path.is_symlink():
        return sum(size_of(inner) for inner in path.iterdir())
    return path.lstat().st_size


def _shown(path: Path) -> list[Path]:
    """The parts of the training by themselves; anything else as one."""
    if path.name != "training" or path.is_symlink():
        return [path]
    return [inner for inner in sorted(path.iterdir()) if inner.name != "lock"]


def _remove(folder: Path, paths: list[Path], files: Files) -> None:
    """Rename all, so that none is there by half under its name, and remove them then."""
    doomed = []
    for path in paths:
        doomed.append(path.with_name(f".{path.name.removeprefix('.')}.partial-{uuid.uuid4().hex}"))
        files.rename(path, doomed[-1])
    files.fsync_folder(folder)
    for path in doomed:
        files.remove(path)
