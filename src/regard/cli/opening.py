"""A model folder opened for a command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import UsageError

KINDS = {
    "translation": ("a translator", "regard translate"),
    "classification": ("a classifier", "regard classify"),
    "image-classification": ("a classifier of images", "regard classify"),
    "tagging": ("a tagger", "regard tag"),
    "language-model": ("a language model", "regard generate"),
    "masked-lm": ("a model of masked words", "regard fill"),
    "encoding": ("an encoder of texts", "regard encode"),
    "span-corruption": ("a model of missing spans", "regard train --from"),
}
"""What a task's model is, and what is done with it."""
MOST_THREADS = 1024
"""More than any machine has; far more make torch crash."""


def check_threads(threads: int | None) -> None:
    """Refuse a number of threads that no processor has.

    Raises:
        UsageError: it is not in 1 ... ``MOST_THREADS``.
    """
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise UsageError(f"{threads} threads cannot work; give 1 or more, at most {MOST_THREADS}", "--threads")


def opened(
    folder: Path, device: str | None = None, threads: int | None = None, tasks: Sequence[str] | None = None
) -> Any:
    """The task of a model folder, on a device, with so many processor threads.

    Args:
        folder: the model folder.
        device: cpu, cuda ...; default: the best there is.
        threads: of the processor.
        tasks: those the command is for; default: all.

    Raises:
        UsageError: the model is for another task.
    """
    check_threads(threads)
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    from regard.tasks.bundle import load

    task = load(folder, device=device)
    refuse_other_tasks(folder, task.name, tasks)
    return task


def refuse_other_tasks(folder: Path, name: str, tasks: Sequence[str] | None) -> None:
    """Say what a model is for that this command cannot use.

    Raises:
        UsageError: its task is none of ``tasks``.
    """
    if tasks is not None and name not in tasks:
        what, command = KINDS.get(name, (f"a model for {name}", "another command"))
        raise UsageError(f"is {what}; use {command}", str(folder))
