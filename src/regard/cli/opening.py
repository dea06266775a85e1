"""A model folder opened for a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.translation import Translation


def opened(folder: Path, device: str | None = None, threads: int | None = None) -> Translation:
    """The task of a model folder, on a device, with so many processor threads."""
    if threads is not None and threads < 1:
        raise UsageError(f"{threads} threads cannot work; give 1 or more", "--threads")
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    from regard.tasks.bundle import load

    return load(folder, device=device)
