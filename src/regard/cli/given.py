"""Texts as a command is given them: as arguments, in a file, or on stdin."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.opening import refuse_no_file
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.text.lines import Notes

Text = Annotated[
    str,
    Parameter(
        name="TEXT...",
        help="texts, each between quotes; default: the lines of --input, or of stdin. Behind -- if one begins with -.",
    ),
]
"""Arguments that are texts."""
Input = Annotated[
    Path | None,
    Parameter(help="a file of texts instead of arguments and stdin, a line each, plain or gz, xz, zst; -: stdin."),
]
"""An option that names a file of texts."""
LONGEST_WORD = 1 << 17
"""Characters that are read between two blanks of a text."""
STDIN = Path("-")
"""How stdin is named where a file could be."""


class Given:
    """Where texts come from: arguments, if there are any; else a file, if one is named; else stdin.

    Args:
        texts: arguments, each a text.
        input: a file of texts, a line each.

    Raises:
        UsageError: both are given, or the file is none.
    """

    def __init__(self, texts: Sequence[str] = (), input: Path | None = None) -> None:
        if texts and input is not None:
            raise UsageError("the texts are arguments already; give these or a file of texts", "--input")
        self.arguments = [os.fsencode(text).decode(errors="replace") for text in texts]
        self._mended = [n for n, text in enumerate(texts, 1) if text != self.arguments[n - 1]]
        self.path = None if input == STDIN else input
        self.rows = False
        """Whether a line is no text but a row of numbers."""
        self.end = False
        """Whether it is the end of a text that counts."""
        self.read = 0
        """Bytes of the lines that were read so far, about."""
        if self.path is not None:
            refuse_no_file(self.path)

    @property
    def name(self) -> str:
        """What it is called where something is said of its lines."""
        return "arguments" if self.arguments else "stdin" if self.path is None else str(self.path)

    @property
    def stat(self) -> os.stat_result | None:
        """Which file is read; ``None`` where that is not known."""
        if self.arguments:
            return None
        try:
            return os.fstat(sys.stdin.fileno()) if self.path is None else self.path.stat()
        except (OSError, ValueError):  # a stand-in without a descriptor
            return None

    @property
    def steady(self) -> bool:
        """Whether all of it is there already: what reads on does not wait for a writer."""
        return bool(self.arguments) or (self.path is not None and self.path.is_file())

    @property
    def share(self) -> float | None:
        """How much of it is read, from 0 to 1; ``None`` where nobody knows."""
        return min(self.read / self.size, 1.0) if self.size else None

    @cached_property
    def size(self) -> int | None:
        """Bytes of all lines together; ``None`` where they are not known before they are read."""
        from regard.text.lines import MAGIC

        if self.arguments:
            return sum(len(text.encode()) + 1 for text in self.arguments)
        found = self.stat
        if found is None or not stat.S_ISREG(found.st_mode):
            return None
        if self.path is not None:
            with self.path.open("rb") as file:
                if file.read(8).startswith(tuple(MAGIC.values())):
                    return None
        return found.st_size

    def lines(self, notes: Notes) -> Iterator[str]:
        """The texts, one by one; lines not valid UTF-8 are noted, words beyond all measure are cut, which is said."""
        for number, text in enumerate(self._lines(notes), 1):
            self.read += len(text.encode("utf-8", "replace")) + 1
            yield text if self.rows or len(text) <= LONGEST_WORD else self._shortened(text, number)

    def _shortened(self, text: str, number: int) -> str:
        from regard.cli.terminal import say
        from regard.text.long_words import shortened

        kept, lost = shortened(text, LONGEST_WORD, end=self.end)
        if lost:
            which = f"the {'last' if self.end else 'first'} {LONGEST_WORD:,} characters of each word"
            say(f"warning: {self.name}: of line {number} {which} are read; {lost:,} characters are left out")
        return kept

    def _lines(self, notes: Notes) -> Iterator[str]:
        if self.arguments:
            for number in self._mended:
                notes.note(number)
            return iter(self.arguments)
        from regard.cli.lines import raw_lines
        from regard.text.lines import decoded, lines

        if self.path is not None:
            return lines(self.path, notes)
        if sys.stdin.isatty():
            from regard.cli.terminal import say

            say("reading from the terminal, a text a line; Ctrl-D ends it")
        return decoded(raw_lines(), notes)


def refuse_files(texts: Sequence[str]) -> None:
    """Refuse files among arguments that are texts: nobody means the name of a file that is there.

    Raises:
        UsageError: a text is the name of a file, or stands for stdin.
    """
    for text in texts:
        if text == str(STDIN):
            raise UsageError("stdin is read where there are no texts, or by --input -", text)
        if os.path.exists(text) and not os.path.isdir(text):
            raise UsageError("is a file, and arguments are texts; give it by --input, or its name behind --", text)
