"""Texts without labels, a line each, that a classifier learns from beside labelled ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

    def summary(self) -> list[str]:
        """How many texts there are, whether all were read, and what was not UTF-8, a line each for people.

        Raises:
            RegardError: as :meth:`texts`.
        """
        texts, cut, notes = self._read()
        said = counted(len(texts), "unlabelled text")
        return [f"{said}; what follows is not read" if cut else said, *(note.mended for note in notes if note.invalid)]

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

    @property
    def fingerprint(self) -> str:
        """Of what is read of the files."""
        found = hashlib.sha256()
        for text in self.texts():
            found.update(text.encode("utf-8", "surrogatepass") + b"\n")
        return found.hexdigest()
