"""``manifest.json``: size and sha256 of every file of a folder and, last, of its own preceding bytes.

safetensors has no checksum: a flipped bit loads silently as a wrong number. The manifest detects it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from regard.config import checksum
from regard.system import disk
from regard.system.errors import Damaged
from regard.training.checkpoints.files import Entry, Files

NAME = "manifest.json"
NEXT = "manifest.next.json"
"""Exists only while files are being replaced; lists their new entries."""

LARGEST = 1 << 24
"""Bytes a manifest may have; more are not read."""
LARGEST_FILE, WEIGHTS = 1 << 30, ".safetensors"
"""Bytes that a file may have, unless its name ends so; it takes a second to read."""
_ENTRIES = TypeAdapter(dict[str, Entry])


def render(entries: Mapping[str, Entry]) -> bytes:
    """The bytes of a manifest."""
    listed = {name: {"size": e.size, "sha256": e.sha256} for name, e in sorted(entries.items())}
    return checksum.dump_json({"files": listed})


def read_manifest(path: Path) -> dict[str, Entry]:
    """The entries of a manifest, after its own sha256 is checked.

    Raises:
        Damaged: it is missing or differs from what was written.
        RegardError: a newer Regard wrote it.
    """
    values = checksum.load_json(disk.content(path, LARGEST, "manifest", Damaged), path, required=True)
    try:
        entries = _ENTRIES.validate_python(values.get("files"))
    except ValidationError:
        raise Damaged("is damaged: it does not give size and sha256 of each file", str(path)) from None
    if not entries:
        raise Damaged("is damaged: it names no file", str(path))
    if large := [name for name, e in entries.items() if e.size > LARGEST_FILE and not name.endswith(WEIGHTS)]:
        raise Damaged(
            f"names {large[0]!r:.80} of {entries[large[0]].size:,} bytes; only weights are so large", str(path)
        )
    if outside := [name for name in entries if not disk.is_plain(name)]:
        raise Damaged(f"names {outside[0]!r:.80}, which lies outside of the folder", str(path))
    return entries


def measure(path: Path) -> Entry:
    """Size and sha256 of a file as it is on the disk."""
    if not path.exists():
        raise Damaged("is missing", str(path))
    with disk.open_binary(path, error=Damaged) as handle:
        digest = hashlib.file_digest(handle, "sha256")
        return Entry(handle.tell(), digest.hexdigest())


def _is_one_of(entries: Sequence[Entry], path: Path) -> bool:
    """Whether a file is as one of these entries has it; one of another size is not read."""
    if not path.exists():
        raise Damaged("is missing", str(path))
    size = disk.refuse_irregular(path, error=Damaged).st_size
    return any(entry.size == size for entry in entries) and measure(path) in entries


def verify(folder: Path, *, extra: bool = False) -> None:
    """Check every file of a folder against its manifest: each flipped bit, cut, lost or added file is found.

    Args:
        folder: a checkpoint, a snapshot or a model folder.
        extra: whether other files may exist (true for model folders, which hold ``training/``).

    Raises:
        Damaged: the first file that differs.
    """
    listed = [folder / NAME]
    if extra and (folder / NEXT).exists():  # replacing was cut short: each file is the old or the new one
        listed = [path for path in (folder / NAME, folder / NEXT) if path.exists()]
    wanted = [read_manifest(path) for path in listed]
    for name in sorted(set().union(*wanted)):
        if not _is_one_of([entries[name] for entries in wanted if name in entries], folder / name):
            raise Damaged("is damaged: size or sha256 differs from the manifest", str(folder / name))
    if not extra:
        known = {NAME, *wanted[0]}
        for path in sorted(folder.iterdir()):
            if path.name not in known:
                raise Damaged("does not belong here: the manifest does not name it", str(path))


def replace(folder: Path, contents: Mapping[str, Iterable[bytes | memoryview]], files: Files) -> None:
    """Replace files of a model folder and its manifest; killed at any moment, ``verify(folder, extra=True)`` holds.

    Files the old manifest names and ``contents`` does not are kept, with their entries.
    """
    for left in sorted(folder.glob(".*.partial-*")):
        files.remove(left)
    settle(folder, files)
    entries = read_manifest(folder / NAME) if (folder / NAME).exists() else {}
    fresh = {name: folder / f".{name}.partial-next" for name in contents}
    for name, chunks in contents.items():
        entries[name] = files.write(fresh[name], chunks)
    files.replace(folder / NEXT, [render(entries)])
    for name, path in fresh.items():
        files.rename(path, folder / name)
    files.fsync_folder(folder)
    files.rename(folder / NEXT, folder / NAME)
    files.fsync_folder(folder)


def settle(folder: Path, files: Files) -> None:
    """One manifest again, of the files as they are, where replacing was cut short; else nothing."""
    if not (folder / NEXT).exists():
        return
    old = read_manifest(folder / NAME) if (folder / NAME).exists() else {}
    for name, entry in read_manifest(folder / NEXT).items():
        if (folder / name).exists() and _is_one_of([entry], folder / name):
            old[name] = entry
    if old:
        files.replace(folder / NAME, [render(old)])
    files.remove(folder / NEXT)
