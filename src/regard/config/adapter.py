"""Adapters: model folders that hold what differs from another one, their base, which they name by its sha256."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import checksum
from regard.config.weights import MANIFEST, WEIGHTS, read_header_and_metadata, weights_sha256
from regard.system import disk
from regard.system.errors import RegardError

BASE = "base.json"
"""The file of an adapter that names its base."""
LORA_A, LORA_B = ".lora_a", ".lora_b"
"""What the names of the factors end in: A (r × inputs) and B (outputs × r), times alpha / r [Hu21 §4.1]."""
LARGEST = 1 << 16
"""Bytes of a file that names a base."""
SHOWN = 240
"""Characters of a path in a sentence."""


def base_content(folder: Path, base: Path, digest: str, files: Iterable[str]) -> bytes:
    """What names a base.

    Args:
        folder: of the adapter.
        base: the model folder; ``digest``: the sha256 of its weights.
        files: of the base that are the adapter's too.
    """
    place = Path(os.path.relpath(base.absolute(), folder.absolute())).as_posix()
    return checksum.dump_json({"folder": place, "weights": digest, "files": sorted(files)})


@dataclass(frozen=True)
class Base:
    """The model folder that an adapter changes.

    Args:
        folder: where it lies.
        sha256: of its weights.
        files: of it that are the adapter's too.
    """

    folder: Path
    sha256: str
    files: tuple[str, ...]

    @classmethod
    def of(cls, adapter: Path) -> Base | None:
        """The base of an adapter, where it was, seen from there, or beside it; ``None`` of any other model folder.

        Raises:
            RegardError: it is in neither place, or has other weights now, or is an adapter itself.
        """
        path = adapter / BASE
        if not path.exists():
            return None
        match checksum.load_json(disk.content(path, LARGEST, "file"), path, required=True):
            case {"folder": str(name), "weights": str(digest), "files": [*files]} if "\0" not in name:
                places = [Path(os.path.normpath(one)) for one in (adapter / name, adapter.parent / Path(name).name)]
            case _:
                raise RegardError("is damaged: it does not name a folder, its weights and files", str(path))
        if outside := [one for one in files if not disk.is_plain(one)]:
            raise RegardError(f"is damaged: it names {outside[0]!r:.80}, which lies outside of the folder", str(path))
        return cls(_base_folder(adapter, places, digest), digest, tuple(files))


def _base_folder(adapter: Path, places: Sequence[Path], digest: str) -> Path:
    """The first of these places that holds a base with these weights."""
    there = [place for place in places if all(os.path.isfile(place / name) for name in (WEIGHTS, MANIFEST))]
    for place in there:
        if weights_sha256(place) == digest:
            if (place / BASE).exists():
                message = f"is an adapter of an adapter, {_shorten(place)}; regard merge that one first"
                raise RegardError(message, str(adapter))
            return place
    wanted = f"weights with the sha256 {digest[:16]}"
    if there:
        other = _shorten(there[0])
        raise RegardError(f"is an adapter of {wanted}, but {other} has others; put its base back", str(adapter))
    where = " or ".join(dict.fromkeys(map(_shorten, places)))
    raise RegardError(f"is an adapter, but its base ({wanted}) is not there; put it at {where}", str(adapter))


def _shorten(path: Path) -> str:
    """A path for a sentence; of a long one, which only a crafted file names, its beginning and its end."""
    text = str(path)
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} … {text[-SHOWN // 2 :]}"


@dataclass(frozen=True)
class AdapterFile:
    """The weights of an adapter, read as those of the model that it makes of its base.

    Args:
        own: the header of its own file.
        base: the base's file.
        header: of the model: tensors of the base, and in their place those that the adapter has whole.
    """

    own: Mapping[str, Any]
    base: Path
    header: Mapping[str, Any]

    def factors(self, name: str) -> tuple[str, str] | None:
        """The names of the factors that change a tensor, A and B; ``None`` where it is the base's."""
        stem = name.removesuffix(".weight")
        return (stem + LORA_A, stem + LORA_B) if stem + LORA_A in self.own else None

    @classmethod
    def of(cls, path: Path) -> AdapterFile | None:
        """The file of an adapter; ``None`` where a file holds all of a model.

        Raises:
            RegardError: its base is not there, or other factors than its tensors can have.
        """
        own, metadata = read_header_and_metadata(path)
        if "base" not in metadata:
            return None
        base = Base.of(path.parent)
        if base is None or metadata["base"] != base.sha256:
            raise RegardError(f"is of another base than {BASE} names", str(path))
        header, _ = read_header_and_metadata(base.folder / WEIGHTS)
        for name in str(metadata.get("without", "")).split():
            header.pop(name, None)
        for name, entry in own.items():
            if name.endswith((LORA_A, LORA_B)):
                _refuse_unfit(own, header, name[: -len(LORA_A)], path)
            else:
                header[name] = entry
        return cls(own, base.folder / WEIGHTS, header)


def read_header(path: Path) -> Mapping[str, Any]:
    """The entries of a file's tensors, of an adapter those of the model that it makes of its base.

    Raises:
        RegardError: the file is missing, broken or newer than this Regard; or its base is not there.
    """
    found = AdapterFile.of(path)
    return read_header_and_metadata(path)[0] if found is None else found.header


def _refuse_unfit(own: Mapping[str, Any], base: Mapping[str, Any], stem: str, path: Path) -> None:
    """Raise a RegardError for factors whose product has not the shape of the base's weight."""
    entries = [own.get(stem + LORA_A), own.get(stem + LORA_B), base.get(f"{stem}.weight")]
    match [(entry or {}).get("shape") for entry in entries]:
        case [[rank, inputs], [outputs, same], [rows, columns]] if (rank, inputs, outputs) == (same, columns, rows):
            if all(entry.get("dtype") == "F32" for entry in entries if entry):
                return
    raise RegardError(f"{stem + LORA_A!r} and {stem + LORA_B!r} do not fit the base's weight", str(path))
