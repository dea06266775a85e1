"""Crash-safe checkpoints that detect every flipped bit; loading of tensors, and the mean of several checkpoints.

Order of a save: everything into ``step-000500.partial-<uuid>/``, each file synced to disk, the manifest
last, then one rename, then ``latest`` (only a hint), and only then are surplus checkpoints deleted.

What a checkpoint holds, ``training.trainer.save`` says.

The mean of several checkpoints' weights is cheaper than an ensemble and nearly as good [Vaswani17 §6.1].
"""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from regard.config import checksum
from regard.system import disk
from regard.system.errors import Damaged, NoValidCheckpoint, Option, UsageError
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files

if TYPE_CHECKING:
    from torch import Tensor

Contents = Mapping[str, Iterable[bytes | memoryview]]
"""File name to its bytes."""

STATE = "state.json"
_WHOLE = re.compile(r"step-(\d{6,})")
REMAINS = re.compile(r"step-\d{6,}\.(partial|removing)-.*")
"""Names of folders half written or half removed."""


@dataclass
class Checkpoints:
    """The checkpoints ``step-000500/`` of a run in one folder."""

    folder: Path
    files: Files
    keep: int = 3
    report: Callable[[str], None] = lambda text: None
    resumed_from: Path | None = None

    def newest(self) -> Path | None:
        """The newest undamaged checkpoint, or ``None`` if there never was one; damaged ones are renamed.

        Raises:
            NoValidCheckpoint: there are checkpoints, but none is valid.
        """
        for path in reversed(whole(self.folder)):
            try:
                verified_state(path)
            except Damaged as error:
                with contextlib.suppress(OSError):  # where nothing can be renamed it is passed over again next time
                    self._set_aside(path, error)
                continue
            self.resumed_from = path
            return path
        if self.folder.exists() and any(".corrupt-" in path.name for path in self.folder.iterdir()):
            raise NoValidCheckpoint(
                "no checkpoint is whole; put a good one there, "
                f"or start again with {Option('resume', 'never')} (nothing is deleted)",
                str(self.folder),
            )
        return None

    def save(self, step: int, contents: Contents, best: int | None = None, finished: bool = False) -> Path:
        """Write a checkpoint, then delete surplus ones; see :meth:`settle`.

        Raises:
            OSError: the disk is full or broken; earlier checkpoints are untouched.
        """
        final = self.folder / name(step)
        if final.exists():
            try:
                manifest.verify(final)
            except Damaged as error:
                self._set_aside(final, error)
        if not final.exists():
            write_folder(final, contents, self.files)
        self.settle(final, best, finished)
        return final

    def settle(self, path: Path, best: int | None = None, finished: bool = False) -> None:
        """Point ``latest`` to the newest checkpoint and delete surplus ones; also finishes a save killed before this.

        Args:
            path: the newest.
            best: step of the best checkpoint so far, which is kept.
            finished: whether the run is over; then no other is kept than if it had never been resumed.
        """
        latest, hint = self.folder / "latest", f"{path.name}\n".encode()
        if not disk.holds(latest, hint):
            self.files.replace(latest, [hint])
        if finished:
            self.resumed_from = None
        paths = whole(self.folder)
        kept = {*paths[-self.keep :], self.resumed_from, None if best is None else self.folder / name(best)}
        for surplus in paths:
            if surplus not in kept:
                discard(surplus, self.files)

    def sweep(self) -> None:
        """Remove files left half-written or half-removed by a kill."""
        for path in sorted(self.folder.iterdir()):
            if REMAINS.fullmatch(path.name) or path.name.startswith(".latest.partial-"):
                self.files.remove(path)

    def _set_aside(self, path: Path, error: Damaged) -> None:
        self.report(f"checkpoint {path.name} is damaged and set aside: {error}")
        self.files.rename(path, dated(path.with_name(f"{path.name}.corrupt-")))


def verified_state(path: Path) -> dict[str, object]:
    """The plain values of a checkpoint, after every file of it is verified.

    Raises:
        Damaged: a file is not as it was written, or holds something else.
        RegardError: a newer Regard wrote it.
    """
    manifest.verify(path)
    return checksum.load_json(disk.content(path / STATE, error=Damaged), path / STATE)


def dated(start: Path) -> Path:
    """A new path: this one's name, followed by the time."""
    path = start.with_name(f"{start.name}{time.strftime('%Y%m%dT%H%M%S')}")
    while path.exists():
        path = path.with_name(path.name + "-again")
    return path


def name(step: int) -> str:
    """``step-000500``."""
    return f"step-{step:06d}"


def whole(folder: Path) -> list[Path]:
    """The completely written ``step-…`` folders, oldest first; none if there is no folder."""
    try:
        inner = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = [(int(match[1]), path) for path in inner if (match := _WHOLE.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def write_folder(final: Path, contents: Contents, files: Files) -> None:
    """Write a folder of files with its manifest so that it is there whole or not at all."""
    partial = final.with_name(f"{final.name}.partial-{uuid.uuid4().hex}")
    try:
        files.mkdir(partial)
        entries = {name: files.write(partial / name, chunks) for name, chunks in contents.items()}
        files.replace(partial / manifest.NAME, [manifest.render(entries)])  # every file is already safe on the disk
        files.rename(partial, final)
    except OSError:
        with contextlib.suppress(OSError):
            files.remove(partial)
        raise
    files.fsync_folder(final.parent)


def discard(path: Path, files: Files) -> None:
    """Remove a whole checkpoint or snapshot; a kill meanwhile must not leave half of one by its name."""
    remains = path.with_name(f"{path.name}.removing-{uuid.uuid4().hex}")
    files.rename(path, remains)
    files.remove(remains)


def load(path: Path) -> dict[str, Tensor]:
    """The named tensors of a safetensors file, on the CPU.

    Raises:
        Damaged: it is not a whole safetensors file.
        RegardError: a newer Regard wrote it.
    """
    disk.refuse_irregular(path, error=Damaged)
    try:
        with safe_open(path, "pt") as file:
            written = (file.metadata() or {}).get("format", "")
            if written.isdecimal():  # others write words, as "pt"
                checksum.refuse_newer_text(written, path)
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise Damaged(f"is not a whole safetensors file ({error})", str(path)) from None


def weights(place: Path) -> dict[str, Tensor]:
    """The weights a checkpoint or snapshot would be validated with (averaged ones where it has them), or of a file."""
    if not place.exists():
        raise UsageError("no such checkpoint or file", str(place))
    if not place.is_dir():
        return load(place)
    manifest.verify(place)
    found = load(place / "weights.safetensors")
    averages = place / "ema.safetensors"
    return {**found, **load(averages)} if averages.exists() else found
