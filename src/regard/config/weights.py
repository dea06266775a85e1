"""The header of a file of weights (safetensors): names, types, shapes and places of its tensors, which stay unread."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.config.checksum import load_json, refuse_newer_text
from regard.config.sections import FORMAT
from regard.system import disk
from regard.system.errors import Damaged, RegardError

WEIGHTS, MANIFEST = "model.safetensors", "manifest.json"
"""Files of a model folder."""
LARGEST_HEADER = 10_000_000
"""Bytes a file's header may have; a larger one is refused before it is parsed."""


def read_header_and_metadata(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries of a file's tensors, and what it says of itself.

    Raises:
        RegardError: the file is missing, broken or newer than this Regard.
    """
    with disk.open_binary(path, "model file") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > LARGEST_HEADER:
            raise RegardError(f"is broken: a header of {size} bytes", str(path))
        text = file.read(size)
    try:
        header = json.loads(text)
        metadata = header.pop("__metadata__", {})
    except (ValueError, RecursionError, AttributeError, TypeError):
        raise RegardError("is not a safetensors file", str(path)) from None
    refuse_newer_text(metadata.get("format", str(FORMAT)) if isinstance(metadata, dict) else None, path)
    return dict(header), dict(metadata)


def weights_sha256(folder: Path) -> str:
    """That of a model folder's weights, as its manifest has it.

    Raises:
        Damaged: the manifest is missing or damaged, or names no weights.
        RegardError: a newer Regard wrote it.
    """
    path = folder / MANIFEST
    match load_json(disk.content(path, kind="manifest", error=Damaged), path, required=True):
        case {"files": {"model.safetensors": {"sha256": str(found)}}}:
            return found
    raise Damaged(f"names no {WEIGHTS}", str(path))


def header_content(
    tensors: Iterable[tuple[str, str, Sequence[int], int]], metadata: Mapping[str, str], line: int = 8
) -> bytes:
    """The first bytes of a file of weights, behind which its tensors lie end to end.

    Args:
        tensors: name, type as safetensors writes it, shape and bytes of each, in the order in which they lie.
        metadata: what the file says of itself, beside its format.
        line: the first tensor begins at a multiple of so many bytes.
    """
    header: dict[str, object] = {"__metadata__": {**metadata, "format": str(FORMAT)}}
    end = 0
    for name, dtype, shape, size in tensors:
        begin, end = end, end + size
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % line)
    return len(text).to_bytes(8, "little") + text


def wrong_weights(header: Mapping[str, object], expected: Mapping[str, tuple[int, ...]]) -> str | None:
    """What is wrong with the names, types and shapes of a header, in a sentence; ``None``: nothing."""
    if missing := expected.keys() - header.keys():
        return f"lacks {min(missing)!r}, which the recipe's model has"
    if surplus := header.keys() - expected.keys():
        return f"has {min(surplus)!r}, which the recipe's model lacks"
    return next(filter(None, (wrong_weight(header, name, shape) for name, shape in expected.items())), None)


def infinite_weight(name: str) -> str:
    """What is wrong with a tensor that has an infinite number, or none, in a sentence."""
    return f"{name!r} holds numbers that are not finite, with which a model says nothing; take other weights"


TOO_LARGE = "the model computes numbers that are not finite: its weights are too large"
"""What is wrong where each weight is a number and an output is none."""


def wrong_weight(header: Mapping[str, object], name: str, shape: tuple[int, ...]) -> str | None:
    """What is wrong with the type and shape of one tensor that a header names; ``None``: nothing."""
    entry = header[name]
    entry = entry if isinstance(entry, dict) else {}
    if entry.get("dtype") == "F32" and entry.get("shape") == list(shape):
        return None
    return f"{name!r} is {entry.get('dtype')} {entry.get('shape')}, the recipe's model has F32 {list(shape)}"
