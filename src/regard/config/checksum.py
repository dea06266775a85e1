"""JSON and TOML files that end with the sha256 of their own bytes, so that damage or truncation is detected.

Files of older versions have no sha256; they are read as they are. In TOML the line ``sealed = true`` near the head says
that one must follow at the end, so that a truncated file is not taken for an old one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.config.reading import dump_toml, toml_values
from regard.config.sections import FORMAT
from regard.system.errors import Damaged, RegardError, written_by_newer

KEY = "sha256"
"""The last member of a JSON file."""
MARK = "sealed"
"""The field of a TOML file that announces the last line."""

_WRONG = "is damaged: its own sha256 does not fit"
_JSON_TAIL = 64 + len('""\n}\n')
_TOML_LABEL = b"# sha256 of everything above: "
_TOML_TAIL = len(_TOML_LABEL) + 64 + 1


def dump_json(values: Mapping[str, object]) -> bytes:
    """A JSON object of our format, one member a line; the last is the sha256 of all bytes before it."""
    body = json.dumps({"format": FORMAT, **values}, indent=1)
    return _end_json((body.removesuffix("\n}") + f',\n "{KEY}": ').encode())


def load_json(raw: bytes, path: Path, *, required: bool = False) -> dict[str, Any]:
    """What :func:`dump_json` wrote, without the sha256.

    Args:
        raw: the bytes of ``path``.
        path: for messages.
        required: whether a file without a sha256 is damaged; else it is an old one.

    Raises:
        Damaged: the sha256 does not fit, or it is no JSON object.
        RegardError: a newer Regard wrote it.
    """
    whole = _end_json(raw[:-_JSON_TAIL]) == raw
    if required and not whole:
        raise Damaged(_WRONG, str(path))
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError) as error:
        place = f" from line {error.lineno} on" if isinstance(error, json.JSONDecodeError) else ""
        raise Damaged(f"is damaged: it is no JSON{place}", str(path)) from None
    if not isinstance(values, dict):
        raise Damaged("is damaged: it holds no JSON object", str(path))
    if KEY in values and not whole:
        raise Damaged(_WRONG, str(path))
    refuse_newer(values, path)
    values.pop(KEY, None)
    return values


def _end_json(head: bytes) -> bytes:
    return head + f'"{hashlib.sha256(head).hexdigest()}"\n}}\n'.encode()


def dump_sealed_toml(values: Mapping[str, object]) -> bytes:
    """Nested plain values as TOML; the last line is a comment with the sha256 of all bytes before it."""
    return _end_toml(dump_toml({"format": FORMAT, MARK: True, **values}).encode())


def load_toml(raw: bytes, path: Path) -> dict[str, Any]:
    """What :func:`dump_sealed_toml` wrote; a file without a sha256 is an old one.

    Raises:
        Damaged: the sha256 does not fit, or it is no TOML of ours.
        RegardError: a newer Regard wrote it.
    """
    try:
        values = toml_values(raw.decode())
    except ValueError:
        raise Damaged("is damaged: it is no TOML", str(path)) from None
    whole = len(raw) > _TOML_TAIL and _end_toml(raw[:-_TOML_TAIL]) == raw
    if not whole and (MARK in values or _TOML_LABEL in raw):
        raise Damaged(_WRONG, str(path))
    refuse_newer(values, path)
    return values


def _end_toml(head: bytes) -> bytes:
    return head + _TOML_LABEL + hashlib.sha256(head).hexdigest().encode() + b"\n"


def refuse_newer(values: Mapping[str, object], path: Path) -> None:
    """Refuse a file whose ``format``, a whole number, is newer than this version's.

    Raises:
        Damaged: there is none.
        RegardError: a newer Regard wrote it.
    """
    found = values.get("format")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise Damaged("is damaged: it has no format", str(path))
    if found > FORMAT:
        raise RegardError(written_by_newer(found, FORMAT), str(path))


def refuse_newer_text(written: object, path: Path) -> None:
    """As :func:`refuse_newer`, for a format given as text, as are all values in a safetensors header.

    Raises:
        Damaged: it is no number.
        RegardError: a newer Regard wrote it.
    """
    if not (isinstance(written, str) and written.isdecimal()):
        raise Damaged("is damaged: it has no format", str(path))
    refuse_newer({"format": int(written) if len(written) < 10 else 10**9}, path)
