"""Texts without labels, a line each, that a classifier learns from beside labelled ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from regard.data.corpora.corpus import plain_name
from regard.system.errors import RegardError
from regard.text.counts import counted
from regard.text.lines import InvalidLines, row_lines

MOST, CHARACTERS = 200_000, 40_000_000
"""Texts that are read, and characters of them together: the first ones of all files."""
LONGEST = 2_000
"""Characters of a text that are read."""
TABLES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json")
"""Endings of files whose lines are more than a text."""


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
            RegardError: a file cannot be read or is a table, or none has a text.
        """
        return self._read()[0]

    @property
    def summary(self) -> list[str]:
        """How many texts there are, whether all were read, and what was not UTF-8, a line each for people.

        Raises:
            RegardError: as :meth:`texts`.
        """
        return self._scanned[0]

    @property
    def fingerprint(self) -> str:
        """Of what is read of the files."""
        return self._scanned[1]

    @cached_property
    def _scanned(self) -> tuple[list[str], str]:
        """Both, from reading the files once; the texts are not kept."""
        texts, cut, notes = self._read()
        said, digest = counted(len(texts), "unlabelled text"), hashlib.sha256()
        for text in texts:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
        lines = [f"{said}; what follows is not read" if cut else said]
        return [*lines, *(note.message for note in notes if note.invalid)], digest.hexdigest()

    def _read(self) -> tuple[list[str], bool, list[InvalidLines]]:
        """The texts, whether there were more, and what was not UTF-8 in each file."""
        found, size, notes = dict[str, None](), 0, [InvalidLines(path) for path in self.paths]
        for text in self._lines(notes):
            if text not in found:
                if len(found) == MOST or size > CHARACTERS:
                    return list(found), True, notes
                found[text] = None
                size += len(text)
        if not found:
            raise RegardError("holds no text; an unlabelled text is needed in each line", str(self.paths[0]))
        return list(found), False, notes

    def _lines(self, notes: Sequence[InvalidLines]) -> Iterator[str]:
        for path, note in zip(self.paths, notes, strict=True):
            if plain_name(path).endswith(TABLES):
                raise RegardError("is a table by its ending; give unlabelled texts alone, one a line", str(path))
            for line in row_lines(path, note):
                if text := line[:LONGEST].strip():
                    yield text
