"""Texts without labels, a line each, that a classifier learns from beside labelled ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.system.errors import RegardError
from regard.text.lines import lines

MOST = 200_000
"""Texts that are read: the first ones of all files."""
LONGEST = 2_000
"""Characters of a text that are read."""


@dataclass(frozen=True)
class UnlabelledTexts:
    """The lines of some files; blank ones, and those that were there before, are left out.

    Args:
        paths: plain files or gz, xz, zst.
    """

    paths: Sequence[Path]

    def texts(self) -> list[str]:
        """Each text once, in order.

        Raises:
            RegardError: a file cannot be read, or none has a text.
        """
        found = dict[str, None]()
        for text in self._lines():
            if len(found) == MOST:
                break
            found[text] = None
        if not found:
            raise RegardError("holds no text", str(self.paths[0]))
        return list(found)

    def _lines(self) -> Iterator[str]:
        for path in self.paths:
            for line in lines(path):
                if text := line[:LONGEST].strip():
                    yield text

    @property
    def fingerprint(self) -> str:
        """Of what is read of the files."""
        found = hashlib.sha256()
        for text in self.texts():
            found.update(text.encode("utf-8", "surrogatepass") + b"\n")
        return found.hexdigest()
