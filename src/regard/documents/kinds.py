"""The kinds of documents: what reads each, and the endings of its files."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from pathlib import PurePath
from typing import cast

from regard.config import import_name
from regard.documents.encoding import ROOM, Room
from regard.documents.segment import Document
from regard.system.errors import RegardError, UsageError

KINDS = {
    "text": ("regard.documents.formats.text:read", ()),
    "markdown": ("regard.documents.formats.markdown:read", ("md", "markdown")),
    "html": ("regard.documents.formats.html:read", ("html", "htm", "xhtml")),
    "docx": ("regard.documents.formats.docx:read", ("docx",)),
    "pptx": ("regard.documents.formats.office:read_pptx", ("pptx",)),
    "xlsx": ("regard.documents.formats.xlsx:read", ("xlsx",)),
    "opendocument": ("regard.documents.formats.opendocument:read", ("odt", "ods", "odp")),
    "epub": ("regard.documents.formats.epub:read", ("epub",)),
    "srt": ("regard.documents.formats.subtitles:read_srt", ("srt",)),
    "vtt": ("regard.documents.formats.subtitles:read_vtt", ("vtt",)),
    "ass": ("regard.documents.formats.subtitles:read_ass", ("ass", "ssa")),
    "po": ("regard.documents.formats.po:read", ("po", "pot")),
    "xliff": ("regard.documents.formats.xliff:read", ("xlf", "xliff")),
    "json": ("regard.documents.formats.catalogue:read_json", ("json",)),
    "yaml": ("regard.documents.formats.catalogue:read_yaml", ("yaml", "yml")),
    "latex": ("regard.documents.formats.latex:read", ("tex",)),
}
"""What reads each kind, and the endings of its files; plain text of any ending is named by its kind."""
ENDINGS = {ending: kind for kind, (_, endings) in KINDS.items() for ending in endings}
_MARKED = ("html", "epub", "xliff", "docx", "pptx", "xlsx", "opendocument")
_SIGNS = dict.fromkeys(_MARKED, "<")
"""What takes memory in each kind; in the others line ends and all signs of ASCII."""
_MOST = {
    **dict.fromkeys(("docx", "pptx", "xlsx", "opendocument", "xliff"), 3_000_000),
    **dict.fromkeys(("yaml", "latex"), 500_000),
    "markdown": 300_000,
}
"""How many of them take 700 MB at most, in files that were made for it; a novel in Word has a million."""
_TARGETS = {
    "xliff": re.compile(rb"\s(?:target-language|trgLang)\s*=\s*[\"']([\w-]+)"),
    "po": re.compile(rb'"Language: *([\w-]+)'),
}
"""What tells the language that a file is translated into."""


def target_language(data: bytes, kind: str) -> str | None:
    """The language that a document says it is translated into, if it says one."""
    found = _TARGETS[kind].search(data) if kind in _TARGETS else None
    return found[1].decode() if found else None


def kind_of(path: PurePath) -> str | None:
    """The kind of a file, by its ending; ``None`` where it is no document's."""
    return ENDINGS.get(path.suffix.lower().removeprefix("."))


def read_document(data: bytes, kind: str, name: str = "", characters: int | None = None) -> Document:
    """A document with its segments.

    Args:
        data: the file.
        kind: one of :data:`KINDS`.
        name: of the file, for messages.
        characters: that its texts may have, and with them a number of marks; default: any.

    Raises:
        UsageError: there is no such kind.
        RegardError: it is no such document, or has too many of them.
    """
    if kind not in KINDS:
        raise UsageError(f"{kind!r:.40} is no kind of document; there are {', '.join(KINDS)}", "--format")
    read = cast("Callable[[bytes], Document]", import_name(KINDS[kind][0]))
    signs, most = _SIGNS.get(kind, f"\n{string.punctuation}"), _MOST.get(kind, 1_000_000)
    outer = ROOM.set(None if characters is None else Room(signs, most, characters))
    try:
        return read(data)
    except RegardError as error:
        raise RegardError(error.message, f"{name}: {error.where}" if error.where else name) from None
    except RecursionError:
        raise RegardError("is nested too deeply", name) from None
    finally:
        ROOM.reset(outer)
