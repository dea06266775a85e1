"""Resolves a path to a model folder: itself, or the ``model`` folder inside it, such as ``regard demo`` makes.

Reads what is beside the weights; without torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from regard.config.adapter import Base
from regard.config.weights import weights_sha256 as weights_sha256
from regard.system import disk
from regard.system.errors import RegardError
from regard.system.threads import ended_threads
from regard.training.checkpoints.manifest import LARGEST, NAME, NEXT, verify

RECIPE, MODEL, CARD = "recipe.toml", "model.safetensors", "card.md"
OWN = "own.json"
"""In the folder of a module of one's own, which ``regard.fit`` writes."""
OWN_CLASS = "holds a model of your own class, which Python opens: regard.load(folder, model=ItsClass)"
INSIDE = "model"
"""Name of the demonstration's model folder."""
SHOWN = 5
"""Models named in a sentence."""


def model_folder(path: Path | str) -> Path:
    """The model folder meant by a path: itself; else ``model`` inside; else the only model inside; else itself again.

    A path that is not a model folder is returned; its opener refuses it.

    Raises:
        RegardError: there are several models inside; the message lists them.
    """
    path = Path(path)
    if is_model_folder(path) or not path.is_dir():
        return path
    if is_model_folder(path / INSIDE):
        return path / INSIDE
    inside = sorted(inner for inner in path.iterdir() if (inner / RECIPE).exists())
    if len(inside) > 1:
        names = ", ".join(str(inner) for inner in inside[:SHOWN])
        more = f" and {len(inside) - SHOWN} more" if len(inside) > SHOWN else ""
        raise RegardError(f"holds {len(inside)} models; name one of them: {names}{more}", str(path))
    return inside[0] if inside else path


def is_model_folder(path: Path) -> bool:
    """Whether a folder is that of a model, or will be: its training has begun."""
    return (path / RECIPE).exists() or (path / "training").is_dir()


def is_same(path: Path, other: Path) -> bool:
    """Whether two paths mean one model folder."""
    return model_folder(path).resolve() == model_folder(other).resolve()


def fingerprint(path: Path | str) -> str | None:
    """The sha256 of a model folder's manifest, which names that of every file; ``None`` where there is none."""
    folder, digest = model_folder(path), hashlib.sha256()
    there = [folder / name for name in (NAME, NEXT) if (folder / name).is_file()]
    for manifest in there:
        digest.update(disk.content(manifest, LARGEST, "manifest"))
    return digest.hexdigest() if there else None


def finished_folder(given: Path | str) -> Path:
    """The model folder meant by a path, which has weights.

    Raises:
        RegardError: it is no model folder, or has none yet.
    """
    folder = existing(given)
    if not (folder / MODEL).exists():
        unfinished = (folder / "training").is_dir()
        wait = "training has not validated yet, or it was lost; wait for it, or resume it by the same command"
        raise RegardError(f"has no {MODEL}: {wait if unfinished else 'is no model folder'}", str(folder))
    return folder


def verify_with_base(folder: Path) -> None:
    """Verify the manifest of a model folder, and of an adapter also that of its base.

    Raises:
        Damaged: a file differs from a manifest.
        RegardError: the base is not there, or has other weights.
    """
    verify(folder, extra=True)
    if base := Base.of(folder):
        verify(base.folder, extra=True)


@contextmanager
def with_base(folder: Path) -> Iterator[Path]:
    """The folder; of an adapter one for a while, with links to its files and to those that it has from its base.

    Raises:
        RegardError: the base is not there, or has other weights.
    """
    if (base := Base.of(folder)) is None:
        yield folder
        return
    if absent := [name for name in base.files if not (base.folder / name).is_file()]:
        raise RegardError(f"is an adapter of {base.folder}, which has no {absent[0]} any more", str(folder))
    with TemporaryDirectory(prefix="regard-") as place:
        own = {path.name: path for path in folder.iterdir() if path.is_file()}
        for name, path in {**own, **{name: base.folder / name for name in base.files}}.items():
            Path(place, name).symlink_to(path.absolute())
        yield Path(place)


@contextmanager
def verifying(folder: Path) -> Iterator[Callable[[], None]]:
    """Verify the manifest of a model folder in a thread while its files are opened.

    A damaged file may look like anything, so its error takes the place of any other.

    Yields:
        Waits for the result; call it before writing what was made of the files.

    Raises:
        Damaged: a file differs from the manifest.
    """
    with ended_threads(1) as pool:
        verified = pool.submit(verify_with_base, folder)
        try:
            yield verified.result
        finally:
            verified.result()


def existing(given: Path | str) -> Path:
    """The model folder meant by a path, even an unfinished one; a RegardError, if there is none."""
    folder = model_folder(given)
    if not folder.exists():
        raise RegardError("no such folder", str(folder))
    if (folder / OWN).is_file():
        raise RegardError(OWN_CLASS, str(folder))
    if not (folder / RECIPE).exists():
        raise RegardError(f"is no model folder: it has no {RECIPE}", str(folder))
    for path in folder.iterdir():  # reading a pipe waits for a writer, and a device may have no end
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise RegardError("is a pipe or a device; a model folder holds files", str(path))
    return folder
