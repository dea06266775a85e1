"""A model folder opened for a command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from regard.errors import RegardError, UsageError

KINDS = {
    "translation": ("a translator", "regard translate"),
    "classification": ("a classifier", "regard classify"),
    "image-classification": ("a classifier of images", "regard classify"),
    "tagging": ("a tagger", "regard tag"),
    "language-model": ("a language model", "regard generate"),
    "masked-lm": ("a model of masked words", "regard fill"),
    "encoding": ("an encoder of texts", "regard encode"),
    "span-corruption": ("a model of missing spans", "regard fill"),
}
"""What a task's model is, and what is done with it."""
READING = tuple(name for name in KINDS if name != "image-classification")
"""Those whose models read texts."""
IMAGES = "image-classification"
SERVED = {
    "translate": ("translation",),
    "classify": ("classification", IMAGES),
    "tag": ("tagging",),
    "generate": ("language-model",),
    "fill": ("masked-lm", "span-corruption"),
    "encode": (*READING, IMAGES),
    "attend": (*READING, IMAGES),
    "evaluate": tuple(name for name in KINDS if name != "encoding"),
}
"""A command to the tasks whose models it is for; those that are not here are for all."""
MOST_THREADS = 1024
"""More than any machine has; far more make torch crash."""


def check_threads(threads: int | None) -> None:
    """Refuse a number of threads that no processor has.

    Raises:
        UsageError: it is not in 1 ... ``MOST_THREADS``.
    """
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise UsageError(f"{threads} threads cannot work; give 1 or more, at most {MOST_THREADS}", "--threads")


def refuse_no_file(path: Path) -> None:
    """Name what is to be read as a file, where it is none.

    Raises:
        UsageError: it is not there, or a folder.
    """
    if not path.exists():
        raise UsageError("no such file", str(path))
    if path.is_dir():
        raise UsageError("is a folder; a file is needed", str(path))


def refuse_unwritable(path: Path, option: str) -> None:
    """Say before anything is computed that a file cannot be written.

    Args:
        path: of the file, which is replaced where it is there.
        option: that names it.

    Raises:
        UsageError: it is a folder, or lies in none, or may not be written.
    """
    if path == Path():
        raise UsageError("name a file", option)
    if path.is_dir():
        raise UsageError("is a folder; name a file", str(path))
    folder = path.resolve().parent
    if not folder.is_dir():
        raise UsageError(f"cannot be written: there is no folder {folder}", str(path))
    plain = not path.exists() or path.is_file()  # a plain file is replaced by renaming, a pipe is written itself
    if not all(os.access(one, os.W_OK) for one in (path, folder) if one.exists() and (plain or one == path)):
        raise UsageError("cannot be written: this is not allowed here", str(path))


def write(path: Path, content: bytes | memoryview) -> None:
    """Write a file whole or not at all; what is no file, as a pipe, is written as it is.

    Raises:
        RegardError: the disk is full, or it cannot be written.
    """
    from regard.training.files import Files

    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            Files().replace(path.resolve(), [content])
    except OSError as error:
        raise RegardError(f"cannot be written: {error.strerror}", str(path)) from None


def opened(folder: Path, device: str | None = None, threads: int | None = None, command: str | None = None) -> Any:
    """The task of a model folder, on a device, with so many processor threads.

    Args:
        folder: the model folder.
        device: cpu, cuda ...; default: the best there is.
        threads: of the processor.
        command: that the model is for; default: one for all.

    Raises:
        UsageError: the model is for another task.
    """
    check_threads(threads)
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    from regard.tasks.bundle import load

    task = load(folder, device=device)
    refuse_other_tasks(folder, task.name, command)
    return task


def refuse_other_tasks(folder: Path, name: str, command: str | None) -> None:
    """Say what a model is for that this command cannot use.

    Raises:
        UsageError: its task is none that the command serves.
    """
    if name not in SERVED.get(command or "", (name,)):
        what, instead = KINDS.get(name, (f"a model for {name}", "another command"))
        raise UsageError(f"is {what}; use {instead}", str(folder))
