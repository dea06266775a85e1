"""The files of a page, held in memory, as they are sent."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

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
        more: headers in the place of the usual ones.
    """

    name: str
    content: bytes
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        """Content type and caching; files without a hash in their name are revalidated every time."""
        kept = {"Cache-Control": FOR_EVER} if HASHED.search(self.name) else {}
        return {"Content-Type": TYPES.get(Path(self.name).suffix, OTHER), **kept, **self.more}

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
        raise RegardError("the page is not here; pip install regard, or build it (web/)", str(folder))
    paths = [folder / INDEX, *sorted(path for path in (folder / ASSETS).rglob("*") if path.is_file())]
    names = [path.relative_to(folder).as_posix() for path in paths]
    return {name: File(name, path.read_bytes()) for name, path in zip(names, paths, strict=True)}


def file_response(files: Mapping[str, File], request: Request) -> Response:
    """The file that a request names, compressed where the client reads that.

    Raises:
        HTTPException: there is none (404).
    """
    file = files.get(request.scope["path"].removeprefix("/") or INDEX)
    if file is None:
        raise HTTPException(404)
    headers = {**file.headers, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", "") and file.gzip_content is not None:
        return Response(file.gzip_content, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.content, headers=headers)
