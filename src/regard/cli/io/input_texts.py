"""Input texts of a command: arguments, a file or stdin."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.io.lines import raw_lines
from regard.cli.io.load_model import refuse_no_file
from regard.cli.io.terminal import say, say_invalid_lines
from regard.system.errors import UsageError
from regard.text.counts import counted
from regard.text.lines import MAGIC, InvalidLines, decode_lines, lines, matching_lines

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
"""Most characters read between two blanks of a text."""
STDIN = Path("-")
"""The name of stdin in place of a file."""
DOCUMENTS = frozenset(
    """
    html htm xhtml xml svg php jsp asp aspx erb vue svelte astro md markdown mdx rmd qmd rst adoc asciidoc org textile
    wiki tex rtf doc docx docm odt fodt pdf epub fb2 mobi ppt pptx odp xls xlsx ods srt vtt sbv ttml ass ssa lrc po pot
    xlf xliff tmx ts resx strings stringsdict xcstrings arb ftl properties plist ini json jsonl yaml yml toml ipynb
    """.split()
)
"""Endings of files whose lines hold more than text: marks, numbers, times."""


class InputTexts:
    """The source of the texts: arguments if any, else a named file, else stdin.

    Args:
        texts: arguments, each a text.
        input: a file of texts, a line each.

    Raises:
        UsageError: both are given, or the input is not a file.
    """

    def __init__(self, texts: Sequence[str] = (), input: Path | None = None) -> None:
        if texts and input is not None:
            raise UsageError("the texts are arguments already; give these or a file of texts", "--input")
        self.arguments = [os.fsencode(text).decode(errors="replace") for text in texts]
        self._mended = [n for n, text in enumerate(texts, 1) if text != self.arguments[n - 1]]
        self.path = None if input == STDIN else input
        if self.path is not None:
            refuse_no_file(self.path)
        self.name = "arguments" if texts else "stdin" if self.path is None else str(self.path)
        """The source's name in messages about its lines."""
        self.by_hand = bool(texts) or (self.path is None and sys.stdin.isatty())
        """Whether a person gives the texts one by one: as arguments, or at a terminal."""
        self.stat: os.stat_result | None = None
        """The file status of the source; ``None`` if unknown."""
        if not texts:
            with contextlib.suppress(OSError, ValueError):  # a stand-in without a descriptor
                self.stat = os.fstat(sys.stdin.fileno()) if self.path is None else self.path.stat()
        self._is_file = self.stat is not None and stat.S_ISREG(self.stat.st_mode)
        self.steady = bool(texts) or self._is_file
        """Whether all input exists already, so that reading never waits for a writer."""
        self.rows = False
        """Whether a line is a row of numbers instead of text."""
        self.held: Sequence[str] | None = None
        """Texts of a document, instead of the lines of its file."""
        self.end = False
        """Whether truncation keeps the end of a text instead of its start."""
        self.read = 0
        """Approximate bytes of the lines read so far."""
        self._notes = InvalidLines()

    @property
    def share(self) -> float | None:
        """The fraction of the input that was read, from 0 to 1; ``None`` if unknown."""
        return min(self.read / self.size, 1.0) if self.size else None

    def share_of(self, count: int) -> float | None:
        """The fraction of the input that so many texts are, of a document; of others what was read."""
        return count / max(len(self.held), 1) if self.held is not None else self.share

    @cached_property
    def size(self) -> int | None:
        """Total bytes of all lines; ``None`` if unknown before reading."""
        if self.arguments or self.held is not None:
            return sum(len(text.encode("utf-8", "replace")) + 1 for text in self.arguments or self.held or ())
        if self.stat is None or not self._is_file:
            return None
        if self.path is not None:
            with self.path.open("rb") as file:
                if file.read(8).startswith(tuple(MAGIC.values())):
                    return None
        return self.stat.st_size

    def tell_invalid(self) -> None:
        """Report the invalid UTF-8 lines that were read, if any."""
        say_invalid_lines(self.name, self._notes)

    def lines(self) -> Iterator[str]:
        """The texts; invalid UTF-8 lines are noted, and excessively long words are truncated with a message."""
        for number, text in enumerate(self._lines(), 1):
            self.read += len(text.encode("utf-8", "replace")) + 1
            if not self.rows and self.held is None and len(text) > LONGEST_WORD:
                from regard.text.languages import shorten_words

                text, lost = shorten_words(text, LONGEST_WORD, end=self.end)
                if lost:
                    which = f"the {'last' if self.end else 'first'} {LONGEST_WORD:,} characters of each word"
                    rest = f"{counted(lost, 'character')} {'is' if lost == 1 else 'are'} left out"
                    say(f"warning: {self.name}: of line {number} {which} are read; {rest}")
            yield text

    def _lines(self) -> Iterator[str]:
        if self.arguments:
            for number in self._mended:
                self._notes.note(number)
            return iter(self.arguments)
        if self.held is not None:
            return iter(self.held)
        if self.path is not None:
            return lines(self.path, self._notes)
        if sys.stdin.isatty():
            say("reading from the terminal, a text a line; Ctrl-D ends it")
        return decode_lines(raw_lines(), self._notes)


def refuse_document(path: Path | None, here: str = "") -> None:
    """Refuse a file whose lines would be answered whole, marks and all: what comes out would be no document.

    Args:
        path: of the file.
        here: what to say of kinds that are read as documents, if any are.

    Raises:
        UsageError: its name ends as that of a document, packed or not.
    """
    if path is None:
        return
    plain = path.with_suffix("") if path.suffix.lower() in MAGIC else path
    if (ending := plain.suffix.lower().removeprefix(".")) in DOCUMENTS:
        message = (
            f"is a document (.{ending}), and only plain text is read{here}: take out its text, a sentence or paragraph"
            " a line (its lines as they are can be piped into stdin)"
        )
        raise UsageError(message, str(path))


def refuse_file_names(texts: Sequence[str]) -> None:
    """Refuse arguments that name existing files: they were probably meant for ``--input``.

    Raises:
        UsageError: a text is the name of a file, or stands for stdin.
    """
    for text in texts:
        if text == str(STDIN):
            raise UsageError("stdin is read where there are no texts, or by --input -", text)
        if os.path.exists(text) and not os.path.isdir(text):
            raise UsageError("is a file, but arguments are texts; give it as --input, or put its name after --", text)


def read_both(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """The lines of two files that belong together line by line; what is not valid UTF-8 is replaced, and told.

    Raises:
        RegardError: one cannot be read, or has more lines.
    """
    notes = InvalidLines(), InvalidLines()
    found = matching_lines(source, target, notes)
    say_invalid_lines(str(source), notes[0])
    say_invalid_lines(str(target), notes[1])
    return found


@dataclass(frozen=True)
class ParallelLines:
    """A line for each text, of a file, or nothing for any.

    Args:
        option: that names the file.
        path: of the file.
        lines: its lines.
    """

    option: str = ""
    path: Path | None = None
    lines: tuple[str, ...] = ()

    @classmethod
    def read(cls, option: str, path: Path | None) -> ParallelLines:
        """The lines of a file; what is not valid UTF-8 is replaced, and told.

        Raises:
            UsageError: there is no such file.
        """
        if path is None:
            return cls(option)
        refuse_no_file(path)
        notes = InvalidLines()
        found = tuple(lines(path, notes))
        say_invalid_lines(str(path), notes)
        return cls(option, path, found)

    @property
    def stat(self) -> os.stat_result | None:
        """That of the file."""
        return self.path.stat() if self.path else None

    @property
    def about(self) -> dict[str, object]:
        """What results depend on: a fingerprint of the lines."""
        held = "\n".join(self.lines).encode("utf-8", "replace")
        return {self.option: sha256(held).hexdigest()} if self.path else {}

    def of(self, first: int, count: int) -> list[str] | None:
        """Those of some texts, the first of which has a number (from 1).

        Raises:
            UsageError: there are not as many.
        """
        found = list(self.lines[first - 1 : first - 1 + count])
        if self.path is not None and len(found) < count:
            lines = counted(len(self.lines), "line")
            raise UsageError(f"has {lines}, so text {first + len(found)} has none", str(self.path))
        return None if self.path is None else found

    def tell_left(self, count: int) -> None:
        """Say it if there are more lines than texts."""
        if self.path is not None and len(self.lines) > count:
            lines, texts = counted(len(self.lines), "line"), counted(count, "text")
            say(f"warning: {self.path} has {lines} for {texts}; do they belong together?")


NO_LINES = ParallelLines()
"""Where nothing goes with the texts."""
