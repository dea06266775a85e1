"""Mean of several checkpoints' weights: cheaper than an ensemble and nearly as good [Vaswani17 §6.1]."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from regard.system.errors import RegardError, UsageError
from regard.training.checkpoints import checkpoint, manifest, tensors


def average(places: Sequence[Path]) -> dict[str, torch.Tensor]:
    """The mean of each tensor over checkpoints, snapshots or safetensors files, summed in float64.

    Raises:
        UsageError: nothing to average.
        Damaged: a folder is not as it was written.
        RegardError: two places hold different names or shapes.
    """
    if not places:
        raise UsageError("there is nothing to average")
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
        return tensors.load(place)
    manifest.verify(place)
    found = tensors.load(place / "weights.safetensors")
    averages = place / "ema.safetensors"
    return {**found, **tensors.load(averages)} if averages.exists() else found


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
