"""Files made from a model's weights: in its folder, or in the user's cache where that cannot be written.

They are no part of the model: the manifest does not name them. In the cache the sha256 of the weights names them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from regard.system.errors import RegardError
from regard.system.user_cache import user_cache
from regard.training.checkpoints.files import Files


def derived_files(folder: Path, weights: str, name: str) -> list[Path]:
    """The files of this name that may be of a model, the newest first.

    Args:
        weights: sha256 of the model's weights.
        name: of the file in the folder.
    """
    found = [path for path in (folder / name, *_cache_files(weights, name)) if path.is_file()]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def write_derived(
    folder: Path, weights: str, name: str, content: Iterable[bytes | memoryview], files: Files | None = None
) -> Path:
    """Write such a file in the place of an earlier one; where it is.

    Raises:
        RegardError: neither the folder nor the cache can be written.
    """
    beside, cached, pieces = folder / name, _cache_files(weights, name), list(content)
    path, fault = beside, "cannot be written"
    for path in (beside, *cached):
        if path == beside and not os.access(folder, os.W_OK):
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            (files or Files()).replace(path, pieces)
        except OSError as error:
            fault = f"cannot be written: {error.strerror}"
            continue
        for earlier in cached if path == beside else ():
            with suppress(OSError):
                earlier.unlink(missing_ok=True)
        return path
    raise RegardError(fault, str(path))


def refuse_unwritable(folder: Path, weights: str, name: str) -> None:
    """Refuse, before such a file is made, where neither the folder nor the cache can be written.

    Raises:
        RegardError: it names both.
    """
    tried = [folder]
    for path in _cache_files(weights, name):
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
        tried.append(path.parent)
    if not any(os.access(place, os.W_OK) for place in tried):
        raise RegardError(f"cannot be written, nor can {tried[-1]}" if tried[1:] else "cannot be written", str(folder))


def _cache_files(weights: str, name: str) -> list[Path]:
    cache, path = user_cache(), Path(name)
    return [cache / path.stem / f"{weights}{path.suffix}"] if cache else []
