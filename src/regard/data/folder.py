"""A folder of prepared data: made aside and renamed when it is whole, described by an index, checked when opened."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard import checksum, disk
from regard.config import FORMAT
from regard.errors import Damaged, RegardError

INDEX = "index.json"


@contextmanager
def making(folder: Path) -> Iterator[Path]:
    """Within, a folder beside ``folder`` to write into; behind, it has become ``folder``."""
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # only ever ours, cut off half-way
    partial.mkdir(parents=True)
    yield partial
    os.rename(partial, folder)


def finish(folder: Path, index: Mapping[str, Any], files: Mapping[str, Any]) -> None:
    """Write the index, the last of a folder's files.

    Args:
        folder: what is being made.
        index: everything but format, fingerprint and files; the fingerprint is over its ``rests``.
        files: entries of files whose sums were kept up while they were written; the others are read and flushed.
    """
    entries = dict(files)
    for path in sorted(folder.iterdir()):
        if path.name not in entries:
            _flush(path)
            entries[path.name] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    rests = json.dumps(index["rests"], sort_keys=True)
    whole = {"format": FORMAT, **index, "fingerprint": hashlib.sha256(rests.encode()).hexdigest(), "files": entries}
    with disk.naming(folder / INDEX):
        (folder / INDEX).write_bytes(checksum.dump_json(whole))
    _flush(folder / INDEX)


def verified(folder: Path) -> dict[str, Any]:
    """The index of a folder, its own sha256 and that of every file checked; an earlier Regard's has none of its own.

    Raises:
        Damaged: the index or a file is missing or not as it was written.
        RegardError: a newer Regard wrote it.
    """
    where = folder / INDEX
    try:
        index = checksum.load_json(disk.content(where, kind="index", error=Damaged), where)
        files = {name: (entry["bytes"], entry["sha256"]) for name, entry in index["files"].items()}
        if not isinstance(index["inputs"], dict):
            raise TypeError("its inputs have no names")
    except (KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"is missing or damaged ({error})", str(where)) from None
    for name, (size, digest) in files.items():
        if not disk.is_plain(name):
            raise Damaged(f"names {name!r:.80}, which lies outside of the folder", str(where))
        path = folder / name
        if not path.is_file() or path.stat().st_size != size or sha256_of(path) != digest:
            raise Damaged("is missing or damaged", str(path))
    return index


def reusable(folder: Path, inputs: Mapping[str, Any]) -> bool:
    """Whether ``folder`` is there and was made from the same.

    Raises:
        Damaged: it is not as it was written.
        RegardError: it was made from something else (names what differs), or by a newer Regard.
    """
    if not folder.exists():
        return False
    before = verified(folder)["inputs"]
    for name in sorted(before.keys() | inputs.keys()):
        if before.get(name) != inputs.get(name):
            what = "other data" if name in ("data", "validation") else f"another {name}"
            raise RegardError(f"was prepared from {what}; choose another output folder", str(folder))
    return True


def sha256_of(path: Path) -> str:
    """The sha256 of a file's content."""
    with disk.opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _flush(path: Path) -> None:
    with disk.naming(path), path.open("rb") as stream:
        os.fsync(stream.fileno())
