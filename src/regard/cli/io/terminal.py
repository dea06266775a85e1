"""Results to stdout, messages to stderr; detects the colours a terminal supports."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

from regard.system import disk

if TYPE_CHECKING:
    from regard.explore.pictures.heatmap import Colours, ColourScheme
    from regard.text.lines import InvalidLines


def result(text: str) -> None:
    """Write a result, a line or several, to stdout."""
    with disk.naming("stdout"):
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


def result_json(value: Any) -> None:
    """Write one JSON object on one line to stdout."""
    result(json.dumps(value, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Print a message to stderr; control characters, e.g. in file names, are escaped."""
    safe = "".join(f"\\x{ord(c):02x}" if c < " " or "\x7f" <= c < "\xa0" else c for c in text)
    print(f"regard: {safe}\n", end="", file=sys.stderr, flush=True)  # one write, because other threads may print too


def say_at_once(text: str) -> None:
    """Like :func:`say`, but safe in a signal handler, where the stream may be in the middle of a write."""
    with contextlib.suppress(OSError):
        os.write(2, f"regard: {text}\n".encode())


def say_invalid_lines(name: str, notes: InvalidLines) -> None:
    """Report the invalid UTF-8 lines of an input, if any."""
    if notes.invalid:
        more = ", ..." if notes.invalid > len(notes.invalid_lines) else ""
        places = ", ".join(map(str, notes.invalid_lines)) + more
        lines = "1 line was" if notes.invalid == 1 else f"{notes.invalid} lines were"
        say(f"{name}: {lines} not valid UTF-8 and had bytes replaced: {places}")


def colour_scheme(stream: TextIO | None = None) -> ColourScheme:
    """The colours of the stream's terminal; none for a pipe or with ``NO_COLOR``."""
    from regard.explore.pictures.heatmap import ColourScheme

    stream = stream or sys.stdout
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    columns = max(shutil.get_terminal_size((80, 24)).columns, 20)
    return ColourScheme(_colours(stream), encoding.startswith("utf"), columns)


def _colours(stream: TextIO) -> Colours:
    forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0")
    term = os.environ.get("TERM", "")
    if os.environ.get("NO_COLOR") or not (forced or (stream.isatty() and term not in ("", "dumb"))):
        return "none"
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct"):
        return "true"
    return "256" if "256" in term else "16"
