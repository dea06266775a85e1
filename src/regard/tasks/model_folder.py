"""Which model folder a path means: itself, or the one inside a folder such as ``regard demo`` makes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from regard.errors import RegardError
from regard.training.manifest import NAME, NEXT

RECIPE = "recipe.toml"
INSIDE = "model"
"""Where the demonstration's model lies in its folder."""
SHOWN = 5
"""Models named in a sentence."""


def model_folder(path: Path | str) -> Path:
    """The model folder meant by a path: itself; else ``model`` inside; else the only model inside; else itself again.

    What is made of a path that is no model folder at all is left to who opens it.

    Raises:
        RegardError: several models lie inside; the sentence lists them.
    """
    path = Path(path)
    if begun(path) or not path.is_dir():
        return path
    if begun(path / INSIDE):
        return path / INSIDE
    inside = sorted(inner for inner in path.iterdir() if (inner / RECIPE).exists())
    if len(inside) > 1:
        names = ", ".join(str(inner) for inner in inside[:SHOWN])
        more = f" and {len(inside) - SHOWN} more" if len(inside) > SHOWN else ""
        raise RegardError(f"holds {len(inside)} models; name one of them: {names}{more}", str(path))
    return inside[0] if inside else path


def begun(path: Path) -> bool:
    """Whether a folder is that of a model, or will be: its training has begun."""
    return (path / RECIPE).exists() or (path / "training").is_dir()


def fingerprint(path: Path | str) -> str | None:
    """The sha256 of a model folder's manifest, which names that of every file; ``None`` where there is none."""
    folder, digest = model_folder(path), hashlib.sha256()
    there = [folder / name for name in (NAME, NEXT) if (folder / name).is_file()]
    for manifest in there:
        digest.update(manifest.read_bytes())
    return digest.hexdigest() if there else None
