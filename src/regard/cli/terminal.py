"""What goes where: results to stdout, everything else to stderr, and what the terminal can show."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

from regard import disk

if TYPE_CHECKING:
    from regard.explore.ink import Colours, Look
    from regard.text.lines import Notes


def result(text: str) -> None:
    """Write a result, a line or several, to stdout."""
    with disk.naming("stdout"):
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


def result_json(value: Any) -> None:
    """Write one JSON object on one line to stdout."""
    result(json.dumps(value, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Tell the person something that is no result, on stderr; a file's name must not steer the terminal."""
    safe = "".join(f"\\x{ord(c):02x}" if c < " " or "\x7f" <= c < "\xa0" else c for c in text)
    print(f"regard: {safe}\n", end="", file=sys.stderr, flush=True)  # at once: a thread may say something too


def say_at_once(text: str) -> None:
    """As :func:`say`, from a signal's handler: the stream itself may be in the middle of writing, and refuse."""
    with contextlib.suppress(OSError):
        os.write(2, f"regard: {text}\n".encode())


def say_mended(name: str, notes: Notes) -> None:
    """Name the lines of an input that were not valid UTF-8, if there were any."""
    if notes.invalid:
        more = ", ..." if notes.invalid > len(notes.invalid_lines) else ""
        places = ", ".join(map(str, notes.invalid_lines)) + more
        lines = "1 line was" if notes.invalid == 1 else f"{notes.invalid} lines were"
        say(f"{name}: {lines} not valid UTF-8 and had bytes replaced: {places}")


def look(stream: TextIO | None = None) -> Look:
    """What the stream's terminal can show; a pipe gets no colour, and so does ``NO_COLOR``."""
    from regard.explore.ink import Look

    stream = stream or sys.stdout
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    columns = max(shutil.get_terminal_size((80, 24)).columns, 20)
    return Look(_colours(stream), encoding.startswith("utf"), columns)


def _colours(stream: TextIO) -> Colours:
    forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0")
    term = os.environ.get("TERM", "")
    if os.environ.get("NO_COLOR") or not (forced or (stream.isatty() and term not in ("", "dumb"))):
        return "none"
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct"):
        return "true"
    return "256" if "256" in term else "16"
