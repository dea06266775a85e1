"""Files made from a model's weights, and the one of precisions: those that keep its score, and the one to use.

Such a file is in the model's folder, or in the user's cache where that cannot be written, named by the sha256 of the
weights. It is no part of the model: the manifest does not name it.

``precisions.json``, measured by ``regard pack``, ends with its own sha256 and names that of the weights it is about: a
damaged file, or one of other weights, is not believed.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from regard.config import FORMAT, checksum
from regard.system import disk
from regard.system.errors import Damaged, RegardError, UsageError
from regard.system.kernels.packing import Precision
from regard.tasks.model_path import weights_sha256
from regard.training.checkpoints.files import Files

FILE = "precisions.json"
Wanted = Literal["auto", "fp32", "bf16", "int8"]
"""What is asked for; ``auto`` is fp32 for a model that was not packed, else the fastest that keeps the score."""
GUARD = 0.2
"""BLEU that a precision may lose against fp32 on the validation data."""
TIE = 0.03
"""Share of a speed within which the precision with more bits wins."""
PACKED = {"translate", "ask"}
"""Commands that use what was measured: what it was measured with is what they write."""
Line = Annotated[str, Field(pattern="^[ -~]*$", max_length=1000)]
"""Text that can be shown."""
LARGEST = 1 << 16
"""Bytes such a file may have."""


def derived_files(folder: Path, weights: str, name: str) -> list[Path]:
    """The files of this name that may be of a model, the newest first.

    Args:
        weights: sha256 of the model's weights.
        name: of the file in the folder.
    """
    found = [path for path in (folder / name, *_cache_files(weights, name)) if path.is_file()]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def write_derived(
    folder: Path, weights: str, name: str, content: Iterable[bytes | memoryview], files: Files | None = None
) -> Path:
    """Write such a file in the place of an earlier one; where it is.

    Raises:
        RegardError: neither the folder nor the cache can be written.
    """
    beside, cached, pieces = folder / name, _cache_files(weights, name), list(content)
    path, fault = beside, "cannot be written"
    for path in (beside, *cached):
        if path == beside and not os.access(folder, os.W_OK):
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            (files or Files()).replace(path, pieces)
        except OSError as error:
            fault = f"cannot be written: {error.strerror}"
            continue
        for earlier in cached if path == beside else ():
            with suppress(OSError):
                earlier.unlink(missing_ok=True)
        return path
    raise RegardError(fault, str(path))


def refuse_unwritable(folder: Path, weights: str, name: str) -> None:
    """Refuse, before such a file is made, where neither the folder nor the cache can be written.

    Raises:
        RegardError: it names both.
    """
    tried = [folder]
    for path in _cache_files(weights, name):
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
        tried.append(path.parent)
    if not any(os.access(place, os.W_OK) for place in tried):
        raise RegardError(f"cannot be written, nor can {tried[-1]}" if tried[1:] else "cannot be written", str(folder))


def _cache_files(weights: str, name: str) -> list[Path]:
    """Below ``XDG_CACHE_HOME``, else ``~/.cache``; none where the user has no home."""
    cache, path = Path(os.environ.get("XDG_CACHE_HOME", "")), Path(name)
    if not cache.is_absolute():
        try:
            cache = Path.home() / ".cache"
        except RuntimeError:
            return []
    return [cache / "regard" / path.stem / f"{weights}{path.suffix}"]


class Measured(BaseModel):
    """One precision: its BLEU, and sentences a second of processor time."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    score: float = Field(allow_inf_nan=False)
    speed: float = Field(gt=0, allow_inf_nan=False)


class PrecisionFile(BaseModel):
    """What was measured of a model.

    Args:
        weights: sha256 of the weights.
        sentences: of the data; ``signature``: of BLEU; ``processor``: where speeds were measured.
        measured: each precision.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    weights: Line
    sentences: int = Field(ge=1)
    signature: Line
    processor: Line
    measured: dict[Precision, Measured]

    @model_validator(mode="after")
    def _has_fp32(self) -> Self:
        if "fp32" not in self.measured:
            raise ValueError("lacks fp32, which the others are judged by")
        return self

    @property
    def kept(self) -> list[Precision]:
        """The precisions whose score is near enough to that of fp32, fastest first; of a tie the one of most bits."""
        least = self.measured["fp32"].score - GUARD
        near = [name for name in get_args(Precision) if name in self.measured and self.measured[name].score >= least]
        fastest = max(self.measured[name].speed for name in near)
        first = next(name for name in near if self.measured[name].speed >= (1 - TIE) * fastest)
        return [first, *sorted({*near} - {first}, key=lambda name: -self.measured[name].speed)]

    def lines(self) -> list[str]:
        """What people read of it: a row for each precision, and the one that is used."""
        rows = [f"{'precision':<10} {'BLEU':>6} {'sentences/s':>12}"]
        for name, one in self.measured.items():
            off = "" if name in self.kept else f"  more than {GUARD} below fp32: not used unless asked for"
            rows.append(f"{name:<10} {one.score:>6.2f} {one.speed:>12.1f}{off}")
        return [
            *rows,
            f"{self.kept[0]} is used where none is asked for ({self.sentences:,} sentences, {self.processor})",
        ]


def read(folder: Path) -> PrecisionFile | None:
    """What was measured of a model folder, if anything; a file that cannot be believed is told of, and left out."""
    weights = weights_sha256(folder)
    for path in derived_files(folder, weights, FILE):
        try:
            values = checksum.load_json(disk.content(path, LARGEST, "file of precisions", Damaged), path, required=True)
            found = PrecisionFile.model_validate({name: one for name, one in values.items() if name != "format"})
        except (RegardError, ValidationError) as error:
            why = error.message if isinstance(error, RegardError) else "is no file of precisions"
            warnings.warn(f"{path} {why}: not used; regard pack {folder} writes it anew", stacklevel=2)
            continue
        if found.weights == weights:
            return found
        warnings.warn(f"{path} is of other weights and not used; regard pack {folder} measures these", stacklevel=2)
    return None


def write(folder: Path, found: PrecisionFile, files: Files | None = None) -> Path:
    """Keep what was measured, beside the weights or in the cache; where it is.

    Raises:
        RegardError: it can be written in neither.
    """
    refuse_foreign(folder)
    content = checksum.dump_json({"format": FORMAT, **found.model_dump()})
    return write_derived(folder, found.weights, FILE, [content], files)


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder or a link in the place of the file.

    Raises:
        UsageError: there is one.
    """
    path = folder / FILE
    if path.is_dir() or path.is_symlink():
        raise UsageError("is not a file that Regard wrote; move it elsewhere", str(path))


def refuse_before(folder: Path) -> None:
    """Refuse, before anything is measured, where the result could not be kept.

    Raises:
        UsageError: something else is in the place of the file.
        RegardError: neither the folder nor the user's cache can be written.
    """
    refuse_foreign(folder)
    refuse_unwritable(folder, weights_sha256(folder), FILE)


def precision_of(folder: Path, wanted: Wanted) -> Precision:
    """The precision to compute in.

    Raises:
        UsageError: there is none of this name.
    """
    if wanted == "auto":
        found = read(folder)
        return found.kept[0] if found else "fp32"
    if wanted not in get_args(Precision):
        raise UsageError(f"{wanted!r} is no precision; give auto, fp32, bf16 or int8", "precision")
    return wanted


def refuse_where_torch_computes(wanted: Wanted, why: str) -> None:
    """Refuse a precision that only the engine has.

    Raises:
        UsageError: it is asked for.
    """
    if wanted not in ("auto", "fp32"):
        raise UsageError(
            f"{wanted} is a precision of the engine, but here torch computes ({why}); leave it out", "precision"
        )
