"""The built page, read once and kept in memory: nothing that a request names is ever looked for on the disk."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from regard.errors import RegardError

INDEX = "index.html"
ASSETS = "assets"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
OTHER = "application/octet-stream"
PRESSED = {".png", ".woff2"}
"""What does not become smaller."""
HASHED = re.compile(r"-[\w-]{8}\.\w+$")
"""The end of a name that changes with the content."""
FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class File:
    """A file of the page.

    Args:
        name: below the page's folder.
        content: its bytes.
    """

    name: str
    content: bytes

    @property
    def headers(self) -> dict[str, str]:
        """What it is, and how long it may be kept; without a word on the latter it is asked for every time."""
        kept = {"Cache-Control": FOR_EVER} if HASHED.search(self.name) else {}
        return {"Content-Type": TYPES.get(Path(self.name).suffix, OTHER), **kept}

    @cached_property
    def zipped(self) -> bytes | None:
        """Its bytes compressed, if that makes them fewer."""
        if Path(self.name).suffix in PRESSED:
            return None
        found = gzip.compress(self.content, mtime=0)
        return found if len(found) < len(self.content) else None


def files(folder: Path) -> dict[str, File]:
    """The files of a page by their names: its index, and what lies in its assets.

    Raises:
        RegardError: there is no page.
    """
    if not (folder / INDEX).is_file():
        raise RegardError("the page is not there; install Regard anew, or build it (web/)", str(folder))
    paths = [folder / INDEX, *sorted(path for path in (folder / ASSETS).rglob("*") if path.is_file())]
    names = [path.relative_to(folder).as_posix() for path in paths]
    return {name: File(name, path.read_bytes()) for name, path in zip(names, paths, strict=True)}
