"""Atomic creation of output folders, and temporary folders."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.system.errors import RegardError
from regard.training.checkpoints import resolved
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.locks import partial_path

FIRST, LAST = ("model.safetensors", "model.bin"), ("config.json", "manifest.json")
"""Order of a model's files: the first marks a folder as in use; without the last, none loads."""


def refuse_other(output: Path) -> None:
    """Raise a RegardError if ``output`` cannot be a result of this command, or is not a folder."""
    if output.is_symlink() and not output.exists():
        raise RegardError("is a link to nothing; name a new folder", str(output))
    for above in output.absolute().parents:
        if (above / "training" / resolved.NAME).is_file():
            raise RegardError(
                f"lies in the folder of a run, {above}, which could not resume; choose another", str(output)
            )
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    if not any((output / name).is_file() for name in FIRST):
        raise _holding(output)


@contextmanager
def whole(output: Path) -> Iterator[Path]:
    """A temporary folder to fill, moved to ``output`` at the end; on any failure nothing is left.

    Where ``output`` holds the very same files already, or some of them because its maker was killed while they took
    their place, it is left or made whole: the same command may be run again whenever it was killed.

    Raises:
        RegardError: ``output`` holds something else, or it cannot be written.
    """
    refuse_other(output)
    place = output.resolve()
    Files().sweep(place)
    try:
        with partial_path(place, lambda path: path.mkdir(parents=True)) as fresh:
            try:
                yield fresh
                _refuse_difference(fresh, output)
                _move(fresh, place)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        why = error.strerror or error
        raise RegardError(f"cannot be written ({why}); nothing was left there", str(output)) from None


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for temporary files, removed at the end; what killed processes left of theirs is removed too."""
    place = Path(tempfile.gettempdir()) / "regard"
    Files().sweep(place)
    with partial_path(place, lambda path: path.mkdir(mode=0o700)) as fresh:
        try:
            yield fresh
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def _holding(output: Path) -> RegardError:
    return RegardError("holds something already; name a new folder", str(output))


def _refuse_difference(fresh: Path, output: Path) -> None:
    """Raise a RegardError for a file that is there and is not the same, or has no counterpart."""
    if not output.is_dir():
        return
    for path in output.rglob("*"):
        other = fresh / path.relative_to(output)
        if path.is_dir() != other.is_dir() or (not path.is_dir() and not _same(path, other)):
            raise _holding(output)


def _same(path: Path, other: Path) -> bool:
    return path.is_file() and other.is_file() and filecmp.cmp(path, other, shallow=False)


def _move(fresh: Path, place: Path) -> None:
    """Move the files into place; an existing folder is kept, for it may be a process's working directory."""
    if not place.exists():
        os.replace(fresh, place)
        return
    for path in sorted(fresh.iterdir(), key=lambda path: (path.name not in FIRST, path.name in LAST, path.name)):
        if not (place / path.name).exists():
            os.replace(path, place / path.name)
