"""Safe reading of user files: regular files of bounded size, with disk errors that name the file.

Opening a pipe waits for a writer, and a device may have no end: neither is opened where a file is needed. A link to a
file is as good as the file.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from regard.system.errors import RegardError

LARGEST = 64 << 20
"""Bytes a JSON file may have; more are not read."""
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""Kinds of paths that are not regular files."""


def refuse_irregular(path: Path | str, kind: str = "file", error: type[RegardError] = RegardError) -> os.stat_result:
    """Refuse anything but a regular file, before a library opens it; returns its stat.

    Args:
        path: of the file.
        kind: what it should be, for the sentence: ``"recipe file"``.
        error: raised with the file's name.

    Raises:
        RegardError: it is missing, or a folder, a pipe, a device ...
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise error(f"no such {kind}", str(path)) from None
    except (OSError, ValueError) as fault:
        raise error(f"cannot be read: {reason(fault)}", str(path)) from None
    if not stat.S_ISREG(found.st_mode):
        raise error(f"is {KINDS.get(stat.S_IFMT(found.st_mode), 'no file')}; a file is needed", str(path))
    return found


@contextmanager
def open_binary(
    path: Path | str, kind: str = "file", error: type[RegardError] = RegardError
) -> Iterator[BufferedReader]:
    """The bytes of a regular file; what fails while they are read names it too.

    Raises:
        RegardError: as :func:`refuse_irregular`, or it cannot be read.
    """
    refuse_irregular(path, kind, error)
    try:
        # If it becomes a pipe meanwhile, it is opened without waiting and then refused.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise error("is no file; a file is needed", str(path))
            yield stream
    except OSError as fault:
        raise error(f"cannot be read: {reason(fault)}", str(path)) from None


def content(path: Path | str, most: int = LARGEST, kind: str = "file", error: type[RegardError] = RegardError) -> bytes:
    """The content of a regular file.

    Args:
        path: of the file.
        most: largest size in bytes.
        kind: what it should be, for the sentence.
        error: raised with the file's name.

    Raises:
        RegardError: as :func:`open_binary`, or it is larger.
    """
    with open_binary(path, kind, error) as stream:
        found = stream.read(most + 1) if os.fstat(stream.fileno()).st_size <= most else None
    if found is None or len(found) > most:
        limit = f"{most >> 20} MB" if most >> 20 else f"{most >> 10} KB"
        raise error(f"is larger than {limit}: too large for a {Path(path).name if kind == 'file' else kind}", str(path))
    return found


def holds(path: Path, content: bytes) -> bool:
    """Whether there is a regular file with this content; one of another size is not read.

    Raises:
        RegardError: it cannot be read.
    """
    if not path.is_file() or path.stat().st_size != len(content):
        return False
    with open_binary(path) as stream:
        return stream.read(len(content) + 1) == content


def json_of(path: Path | str, kind: str = "file", error: type[RegardError] = RegardError) -> Any:
    """The value of a JSON file.

    Raises:
        RegardError: as :func:`content`, or it is not JSON in UTF-8.
    """
    raw = content(path, kind=kind, error=error)
    try:
        return json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as fault:
        why = fault if isinstance(fault, ValueError) else "brackets within brackets without end"
        raise error(f"cannot be read as JSON, the file is damaged: {why}", str(path)) from None


def is_plain(name: object) -> bool:
    """Whether a value is the name of a file inside the folder whose description holds it, and of nothing else."""
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or os.sep in name or "\0" in name:
        return False
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Within, a fault of the disk that names no file, as that of a full one, names this one."""
    try:
        yield
    except OSError as fault:
        if fault.filename is None and fault.errno is not None:
            fault.filename = str(path)
        raise


def replace(path: Path, content: bytes) -> None:
    """Write a file beside another and put it in its place at once."""
    partial = path.with_name(path.name + ".partial")
    with naming(path):
        partial.write_bytes(content)
        os.replace(partial, path)


def fault_of(error: OSError) -> str:
    """The path of a disk error, if known, and what went wrong."""
    return ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)


def reason(fault: Exception) -> str:
    """What went wrong, without the number and the name that the system adds."""
    return fault.strerror or str(fault) if isinstance(fault, OSError) else str(fault)
