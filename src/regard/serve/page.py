"""Static files of the built page, read once into memory; request paths never reach the file system."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from regard.system.errors import RegardError

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
"""Endings of files that do not compress further."""
HASHED = re.compile(r"-[\w-]{8}\.\w+$")
"""File names that contain a content hash."""
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
        """Content type and caching; files without a hash in their name are revalidated every time."""
        kept = {"Cache-Control": FOR_EVER} if HASHED.search(self.name) else {}
        return {"Content-Type": TYPES.get(Path(self.name).suffix, OTHER), **kept}

    @cached_property
    def gzip_content(self) -> bytes | None:
        """The gzipped content, if that is smaller."""
        if Path(self.name).suffix in PRESSED:
            return None
        found = gzip.compress(self.content, mtime=0)
        return found if len(found) < len(self.content) else None


def files(folder: Path) -> dict[str, File]:
    """The files of a page by name: its index and its assets.

    Raises:
        RegardError: there is no page.
    """
    if not (folder / INDEX).is_file():
        raise RegardError("the page is not there; reinstall Regard, or build it (web/)", str(folder))
    paths = [folder / INDEX, *sorted(path for path in (folder / ASSETS).rglob("*") if path.is_file())]
    names = [path.relative_to(folder).as_posix() for path in paths]
    return {name: File(name, path.read_bytes()) for name, path in zip(names, paths, strict=True)}
