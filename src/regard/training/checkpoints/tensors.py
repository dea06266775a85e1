"""Tensors of checkpoints: loading, and the mean of several checkpoints' weights.

The mean is cheaper than an ensemble and nearly as good [Vaswani17 §6.1].
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from regard.config.checksum import refuse_newer_text
from regard.system import disk
from regard.system.errors import Damaged, RegardError, UsageError
from regard.training.checkpoints import checkpoint, manifest


def load(path: Path) -> dict[str, torch.Tensor]:
    """The named tensors of a safetensors file, on the CPU.

    Raises:
        Damaged: it is not a whole safetensors file.
        RegardError: a newer Regard wrote it.
    """
    disk.refuse_irregular(path, error=Damaged)
    try:
        with safe_open(path, "pt") as file:
            written = (file.metadata() or {}).get("format", "")
            if written.isdecimal():  # others write words, as "pt"
                refuse_newer_text(written, path)
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise Damaged(f"is not a whole safetensors file ({error})", str(path)) from None


def average(places: Sequence[Path]) -> dict[str, torch.Tensor]:
    """The mean of each tensor over checkpoints, snapshots or safetensors files, summed in float64.

    Raises:
        UsageError: nothing to average.
        Damaged: a folder is not as it was written.
        RegardError: two places hold different names or shapes.
    """
    if not places:
        raise UsageError("there is nothing to average", "checkpoints")
    first = weights(places[0])
    sums = {name: tensor.double() for name, tensor in first.items()}
    for place in places[1:]:
        found = weights(place)
        odd = set(found) ^ set(sums) or {name for name in sums if sums[name].shape != found[name].shape}
        if odd:
            raise RegardError(f"{min(odd)!r} is not the same as in {places[0]}; average weights of one run", str(place))
        for name, tensor in found.items():
            sums[name] += tensor.double()
    return {name: (total / len(places)).to(first[name].dtype) for name, total in sums.items()}


def weights(place: Path) -> dict[str, torch.Tensor]:
    """The weights a checkpoint or snapshot would be validated with (averaged ones where it has them), or of a file."""
    if not place.exists():
        raise UsageError("no such checkpoint or file", str(place))
    if not place.is_dir():
        return load(place)
    manifest.verify(place)
    found = load(place / "weights.safetensors")
    averages = place / "ema.safetensors"
    return {**found, **load(averages)} if averages.exists() else found


def newest(training: Path, count: int) -> list[Path]:
    """The newest whole checkpoints of a run, oldest first.

    Raises:
        UsageError: there are fewer.
    """
    found = checkpoint.whole(training / "checkpoints")
    if len(found) < count:
        raise UsageError(
            f"{count} checkpoints requested, but there are {len(found)}; snapshots/ holds more", str(training)
        )
    return found[-count:]
