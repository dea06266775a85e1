"""Opens regular files only: refuses pipes and devices, which could block forever."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

from regard.system.errors import RegardError

READ = (".json", ".safetensors", ".toml")
"""Endings of the files of a model."""
IRREGULAR = "is no regular file"


def open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; anything else is refused without blocking.

    Raises:
        OSError: it is not there, cannot be read, or is no regular file.
    """
    _refuse(path, os.stat(path))  # opening a device may have side effects
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _refuse(path, os.fstat(number))
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def _refuse(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, IRREGULAR, str(path))


def refuse_irregular(folder: Path, endings: Collection[str] | None = READ) -> None:
    """Raise a RegardError if a file that would be read from a folder is not a regular one.

    Args:
        folder: that may not be there.
        endings: of the files that are read; ``None``: all are.
    """
    try:
        inner = sorted(folder.iterdir())
    except OSError:  # reported when it is read
        return
    for path in inner:
        if (endings is None or path.suffix in endings) and _is_odd(path):
            raise RegardError(IRREGULAR, str(path))


def _is_odd(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
