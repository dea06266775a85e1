"""A model's packed weights beside it: written by ``regard pack``, mapped by every start, rebuilt where not believed.

Without them (``derived_files``) an engine packs the weights itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.engine.packed_file import MappedPacker, RecordingPacker, StalePack
from regard.kernels.packing import Packer, Precision
from regard.system.errors import RegardError
from regard.system.threads import ended_threads
from regard.tasks.model_path import weights_sha256
from regard.tasks.text.derived_files import derived_files, write_derived
from regard.training.checkpoints.manifest import NEXT

FILE = "packed.safetensors"


def settled_weights(folder: Path) -> str | None:
    """The sha256 of a folder's weights; ``None`` while they are being replaced.

    Asked before the weights are opened and given back afterwards, it tells whether they are the same still: a training
    replaces first the weights and then the manifest.
    """
    if (folder / NEXT).exists():
        return None
    try:
        return weights_sha256(folder)
    except RegardError:
        return None


def build_engine(
    folder: Path,
    weights: str | None,
    precision: Precision,
    build: Callable[[Packer], Any],
    verified: Callable[[], None],
) -> Any:
    """An engine with the matrices of a packed file, where one holds them, else with those it packs.

    A file that names this precision, or none, and is damaged or of other weights is written anew.

    Args:
        weights: :func:`settled_weights` before they were opened.
        build: makes the engine, whose matrices it lets the packer pack.
        verified: waits until the weights are verified, and raises if they are damaged.
    """
    stale = False
    for path in derived_files(folder, weights, FILE) if weights else ():
        try:
            with ended_threads(1) as pool:
                mapped = MappedPacker(path, weights or "", precision, pool)
                engine = build(mapped)
                mapped.verify()
        except StalePack as wrong:
            stale = stale or wrong.precision in (None, precision)
            continue
        if settled_weights(folder) == weights:
            return engine
    kept = RecordingPacker(precision) if stale else Packer(precision)
    engine = build(kept)
    if isinstance(kept, RecordingPacker):
        verified()
        with suppress(RegardError):  # it is only for speed
            _keep(folder, weights, kept)
    return engine


def write(folder: Path, weights: str | None, precision: Precision, build: Callable[[Packer], Any]) -> Path:
    """Write the packed weights of a model, in the place of those of another precision; where they are.

    Args:
        weights: :func:`settled_weights` before they were opened.
        build: makes the engine.

    Raises:
        RegardError: the weights are being replaced, or neither the folder nor the cache can be written.
    """
    kept = RecordingPacker(precision)
    build(kept)
    return _keep(folder, weights, kept)


def _keep(folder: Path, weights: str | None, kept: RecordingPacker) -> Path:
    if weights is None or settled_weights(folder) != weights:
        raise RegardError("is being replaced; pack it again when the training is done", str(folder))
    return write_derived(folder, weights, FILE, kept.content(weights))
