"""A model's packed weights beside it: written by ``regard pack``, mapped by every start, rebuilt where not believed.

They lie in the model's folder, or in the user's cache where that cannot be written. They are no part of the model: the
manifest does not name them, and without them an engine packs the weights itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.fast.packed_file import MappedPacker, RecordingPacker, StalePack
from regard.kernels.packing import Packer, Precision
from regard.system.errors import RegardError
from regard.system.user_cache import user_cache
from regard.tasks.model_path import weights_sha256
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.manifest import NEXT

FILE = "packed.safetensors"


def built(folder: Path, precision: Precision, build: Callable[[Packer], Any]) -> Any:
    """An engine with the matrices of the folder's file, where that holds them, else with those it packs.

    A file of this precision that is damaged, or of other weights, is written anew.

    Args:
        build: makes the engine, whose matrices it lets the packer pack.
    """
    weights = weights_sha256(folder)
    path = next((path for path in _places(folder, weights) if path.is_file()), None)
    if path is None or (folder / NEXT).exists():  # then the manifest may be of the weights before
        return build(Packer(precision))
    try:
        mapped = MappedPacker(path, weights)
        if mapped.precision != precision:
            return build(Packer(precision))
        engine = build(mapped)
        mapped.refuse_surplus()
    except StalePack:
        kept = RecordingPacker(precision)
        engine = build(kept)
        with suppress(RegardError, OSError):  # it is only for speed
            Files().replace(path, kept.content(weights))
    return engine


def write(folder: Path, precision: Precision, build: Callable[[Packer], Any]) -> Path:
    """Write the packed weights of a model, in the place of those of another precision; where they are.

    Raises:
        RegardError: neither the folder nor the cache can be written.
    """
    weights, kept = weights_sha256(folder), RecordingPacker(precision)
    build(kept)
    beside, cached = _places(folder, weights)
    path = beside if os.access(folder, os.W_OK) else cached
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Files().replace(path, kept.content(weights))
        if path != cached:
            cached.unlink(missing_ok=True)  # of an earlier time
    except OSError as error:
        raise RegardError(f"cannot be written: {error.strerror}", str(path)) from None
    return path


def _places(folder: Path, weights: str) -> tuple[Path, Path]:
    return folder / FILE, user_cache() / "packed" / f"{weights}.safetensors"
