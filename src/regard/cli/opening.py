"""A model folder opened for a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.translation import Translation


MOST_THREADS = 1024
"""More than any machine has; far more make torch crash."""


def check_threads(threads: int | None) -> None:
    """Refuse a number of threads that no processor has.

    Raises:
        UsageError: it is not in 1 ... ``MOST_THREADS``.
    """
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise UsageError(f"{threads} threads cannot work; give 1 or more, at most {MOST_THREADS}", "--threads")


def opened(folder: Path, device: str | None = None, threads: int | None = None) -> Translation:
    """The task of a model folder, on a device, with so many processor threads."""
    check_threads(threads)
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    from regard.tasks.bundle import load

    return load(folder, device=device)
