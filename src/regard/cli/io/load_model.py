"""Opens a model folder for a command; checks of paths, threads and tasks."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from regard.system import kernels
from regard.system.errors import RegardError, UsageError, option_name
from regard.system.processor import usable_cores

if TYPE_CHECKING:
    from regard.config import TaskInfo
    from regard.tasks.protocols import Task
    from regard.tasks.text.precisions import Wanted

BY_ENGINE = ("translate", "ask", "classify", "tag", "fill", "generate", "encode", "evaluate", "align", "score")
"""Commands that do not look inside a model, so that its engine computes where there is one."""
MOST_THREADS = 1024
"""An upper bound above any machine's; far larger numbers crash torch."""


def example(info: TaskInfo, folder: Path) -> str:
    """A command that uses a model for a task."""
    command = f"regard {info.command} {folder}"
    if info.reads == "gapped":
        return f'echo "The [MASK] sleeps." | {command}'
    if info.writes == "continuation":  # a prompt may be empty
        return command
    if info.learns_from == "prefixed":
        from regard.tasks.assets import read_prefixes

        if prefix := next(filter(None, read_prefixes(folder)), ""):
            command += f" --prefix {quote(prefix)}"
    return f"{command} < {'images.csv' if info.reads == 'image' else 'texts.txt'}"


def explore_command(folder: Path) -> str:
    """The command that opens the attention page of a folder."""
    return f"regard explore {quote(str(folder))}"


def check_threads(threads: int | None, option: str = "--threads") -> None:
    """Refuse an impossible number of threads, or of processes.

    Raises:
        UsageError: it is not in 1 ... ``MOST_THREADS``.
    """
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        what = option.removeprefix("--")
        raise UsageError(f"{threads} {what} cannot work; give 1 or more, at most {MOST_THREADS}", option)


def refuse_no_file(path: Path) -> None:
    """Refuse an input path that is no file.

    Raises:
        UsageError: it does not exist, or is a folder.
    """
    if not path.exists():
        raise UsageError("no such file", str(path))
    if path.is_dir():
        raise UsageError("is a folder; a file is needed", str(path))


def refuse_unwritable(path: Path, option: str) -> None:
    """Refuse an unwritable output file before computing anything.

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
    plain = not path.exists() or path.is_file()  # a regular file is replaced by renaming; a pipe is written directly
    if not all(os.access(one, os.W_OK) for one in (path, folder) if one.exists() and (plain or one == path)):
        raise UsageError("cannot be written: this is not allowed here", str(path))


def write(path: Path, content: bytes | memoryview) -> None:
    """Write a file atomically; a pipe or device is written directly.

    Raises:
        RegardError: the disk is full, or it cannot be written.
    """
    from regard.training.checkpoints.files import Files

    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            Files().replace(path.resolve(), [content])
    except OSError as error:
        raise RegardError(f"cannot be written: {error.strerror}", str(path)) from None


def open_model(
    folder: Path,
    device: str | None = None,
    threads: int | None = None,
    command: str | None = None,
    precision: Wanted = "auto",
) -> Task:
    """Load the task of a model folder.

    Args:
        folder: the model folder.
        device: cpu, cuda ...; default: the best there is.
        threads: of the processor; default: as many as there are cores for the engine, as torch decides for torch.
        command: that the model is for; default: one for all.
        precision: of the engine; ``auto``: for translate and ask as measured by regard pack, else fp32.

    Raises:
        UsageError: the model is for another task, or torch computes it and has no such precision.
    """
    check_threads(threads)
    if command in BY_ENGINE:
        from regard.tasks.model_folder import open_without_torch
        from regard.tasks.text.precisions import PACKED

        precision = "fp32" if precision == "auto" and command not in PACKED else precision
        if (task := open_without_torch(folder, device, precision)) is not None:
            refuse_other_tasks(folder, task.info, command)
            kernels.use_threads(threads or usable_cores())
            return task
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    from regard.tasks.model_folder import load

    task = load(folder, device=device)
    refuse_other_tasks(folder, task.info, command)
    if precision not in ("auto", "fp32"):
        from regard.tasks.engine import why_torch
        from regard.tasks.text.precisions import refuse_where_torch_computes

        refuse_where_torch_computes(precision, why_torch(task.recipe))
    return task


def refuse_other_tasks(folder: Path, info: TaskInfo, command: str | None) -> None:
    """Refuse a model whose task the command does not serve.

    Raises:
        UsageError: the command does not serve its task.
    """
    if command is not None and command not in info.commands:
        raise UsageError(f"is {info.noun}; use regard {info.command}", str(folder))


def refuse_given(options: object, why: str, *names: str) -> None:
    """Raise a UsageError for the first of these options that was given."""
    for name in names:
        if (given := getattr(options, name)) is not None and given is not False:
            raise UsageError(why, option_name(name))
