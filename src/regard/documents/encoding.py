"""The encoding of a document: what it says it is, or UTF-8; it must come out as it went in."""

from __future__ import annotations

import codecs
from contextvars import ContextVar
from dataclasses import dataclass

from regard.system.errors import RegardError

MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""Byte order marks, the longest first; they stay in the text as its first character."""


@dataclass
class Room:
    """What is left for the texts of a document, for those of all members of an archive together.

    Args:
        signs: that begin a line, a mark or a tag, each of which takes memory.
        most: how many of these the texts may have.
        characters: that they may have.
    """

    signs: str
    most: int
    characters: int

    def take(self, text: str) -> None:
        """Let a text in.

        Raises:
            RegardError: there is no room for it.
        """
        self.most -= sum(map(text.count, self.signs))
        self.characters -= len(text)
        if self.most < 0 or self.characters < 0:
            raise RegardError("has more text, or more lines and marks, than a server reads at once; divide it")


ROOM = ContextVar[Room | None]("ROOM", default=None)
"""That of the document which is read, where it is not to take more memory than others leave."""


def decode(data: bytes, declared: str | None = None, usual: str | None = None) -> tuple[str, str]:
    """A document's text and its encoding.

    Args:
        data: the document.
        declared: the encoding that it names, if any; a byte order mark counts more.
        usual: the encoding of what is not UTF-8 and names none.

    Raises:
        RegardError: it is in another encoding than it says, or in one that is not known; there is no room for it.
    """
    marked = next((name for mark, name in MARKS.items() if data.startswith(mark)), None)
    wanted = marked or declared or "utf-8"
    for name in dict.fromkeys((wanted, usual if not (marked or declared) and usual else wanted)):
        try:
            text = data.decode(name)
            if text.encode(name) == data:
                if "\0" in text:
                    raise RegardError("holds NUL characters; it is no text")
                if room := ROOM.get():
                    room.take(text)
                return text, name
        except LookupError:
            raise RegardError(f"its encoding {name[:40]!r} is not known") from None
        except (UnicodeError, ValueError):
            continue
    where = next((n for n, line in enumerate(data.split(b"\n"), 1) if not _is_in(line, wanted)), 1)
    raise RegardError(f"is not {wanted.upper()} from line {where} on; convert it with `iconv -t UTF-8`")


def _is_in(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except (UnicodeError, ValueError):
        return False
    return True
