"""Lists of terms: what a source has, and what its translation must have for it; phrases found in texts.

A file has a line for each term, ``source TAB target|other form|…``; the form ``=`` stands for the source itself, kept
as it is. Blank lines, and those that begin with ``#``, say nothing. A source in small letters matches in any case, one
with capitals only as written. Terms are whole words, found from left to right, the longest first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from regard.system.errors import RegardError
from regard.text.counts import counted
from regard.text.lines import InvalidLines, row_lines

KEEP = "="
"""The form of what stays as it is."""
LONGEST = 200
"""Characters of a source, a form or a phrase at most."""
_NUMBER = r"(?!\d+(?:st|nd|rd|th|s)\b)[A-Za-z]*\d[A-Za-zµ°\d]*"
PROTECTED = re.compile(
    r"""(?:https?|ftp)://[^\s<>"]*[^\s<>"'.,;:!?)\]}] | www\.[\w.-]+\w(?:/[^\s<>"]*[^\s<>"'.,;:!?)\]}])?
    | (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | %\(\w+\)[-\#0+]*\d*(?:\.\d+)?[a-zA-Z]
    | \{%[^{}%]*%\} | %%
    | (?<![\w%])%(?:\d+\$)?[-\#0+]*\d*(?:\.\d+)?[hlLzjt]{0,2}[diouxXeEfFgGcsrp@](?!\w)
    | \{\{[^{}]*\}\} | \$?\{[^\s{}]*\} | \[[A-Za-z]?\d+[A-Za-z]?\] | </?[A-Za-z][^<>]*>"""
    r"| (?<!\w)\+\d{1,3}(?:[ -]\d{2,})+(?!\w)"
    rf"| (?<!\w)(?:[-+−](?=\d))?{_NUMBER}(?:[.,:/\xa0\u2009\u202f-]{_NUMBER})*(?!\w)(?:%(?![\w%]))?",
    re.VERBOSE,
)
"""What is kept by ``--protect``: addresses, placeholders, tags, numbers with their signs and letters."""


@lru_cache(maxsize=65536)
def is_letter(character: str, spaced: bool = True) -> bool:
    """Whether a character belongs to a word: a letter, mark, digit or low line; without spaces only one of ASCII."""
    if not spaced:
        return character.isascii() and (character.isalnum() or character == "_")
    return character == "_" or unicodedata.category(character)[0] in "LMN"


def is_whole(text: str, begin: int, end: int, spaced: bool = True) -> bool:
    """Whether a part of a text neither begins nor ends inside a word."""
    before, behind = text[max(0, begin - 1) : begin + 1], text[end - 1 : end + 1]
    inside = (all(is_letter(one, spaced) for one in pair) for pair in (before, behind) if len(pair) == 2)
    return not any(inside)


def count(forms: Sequence[str], text: str, spaced: bool = True) -> int:
    """How often one of several forms is in a text as whole words, no character twice."""
    places = [
        (found.start() + len(form), found.start())
        for form in forms
        for found in re.finditer(f"(?={re.escape(form)})", text)
        if is_whole(text, found.start(), found.start() + len(form), spaced)
    ]
    number, last = 0, 0
    for end, begin in sorted(places):
        if begin >= last:
            number, last = number + 1, end
    return number


@dataclass(frozen=True)
class Found:
    """A phrase in a text: its place among the phrases, and its characters."""

    place: int
    begin: int
    end: int


class Phrases:
    """Finds phrases in texts, from left to right, of several that begin at once the longest.

    Args:
        phrases: in small letters found in any case, else as written.
        spaced: whether there is space between words.
    """

    def __init__(self, phrases: Sequence[str], spaced: bool) -> None:
        self._spaced, self._places = spaced, dict[str, dict[str, int]]()
        self._lengths = dict[str, list[int]]()
        for place, phrase in enumerate(phrases):
            self._places.setdefault(_small(phrase), {}).setdefault(phrase, place)
            self._lengths.setdefault(_small(phrase)[0], []).append(len(phrase))
        for letter, lengths in self._lengths.items():
            self._lengths[letter] = sorted(set(lengths), reverse=True)

    def find(self, text: str, taken: Sequence[tuple[int, int]] = ()) -> Iterator[Found]:
        """Those in a text, but for those that are a part of a place that is taken."""
        small, begin = _small(text), 0
        while begin < len(text):
            found = self._at(text, small, begin)
            if found and not any(_holds(place, (begin, found.end)) for place in taken):
                yield found
                begin = found.end
            else:
                begin += 1

    def _at(self, text: str, small: str, begin: int) -> Found | None:
        for length in self._lengths.get(small[begin], ()):
            end = begin + length
            known = self._places.get(small[begin:end]) if end <= len(text) else None
            if known and is_whole(text, begin, end, self._spaced):
                place = known.get(text[begin:end], known.get(small[begin:end]))
                if place is not None:
                    return Found(place, begin, end)
        return None


def _holds(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]


def _small(text: str) -> str:
    """A text in small letters, as long as before."""
    return "".join(small if len(small := one.lower()) == 1 else one for one in text)


@dataclass(frozen=True)
class TermEntry:
    """A term: its source, and the forms of which a translation has one; :data:`KEEP` stands for the source."""

    source: str
    forms: tuple[str, ...]


@dataclass(frozen=True)
class TermList:
    """The lines of a file of terms."""

    lines: tuple[str, ...]
    where: str = field(default="terms", compare=False)

    @classmethod
    def read(cls, path: Path | str) -> TermList:
        """A file, plain or compressed.

        Raises:
            RegardError: it cannot be read, or a line is none of a list of terms; with its number.
        """
        found = cls(tuple(listed_lines(path)), str(path))
        _ = found.entries
        return found

    @cached_property
    def entries(self) -> tuple[TermEntry, ...]:
        """Every term, the forms of equal sources together."""
        found = dict[str, dict[str, None]]()
        for number, line in enumerate(self.lines, 1):
            if entry := _entry(line, f"{self.where}:{number}"):
                found.setdefault(entry.source, {}).update(dict.fromkeys(entry.forms))
        return tuple(TermEntry(source, tuple(forms)) for source, forms in found.items())

    @cached_property
    def sources(self) -> dict[bool, Phrases]:
        """What finds the sources in texts without space between words, and with it."""
        found = [entry.source for entry in self.entries]
        return {spaced: Phrases(found, spaced) for spaced in (False, True)}

    @property
    def content(self) -> bytes:
        """The file."""
        return "".join(f"{line}\n" for line in self.lines).encode("utf-8", "replace")

    def without(self, sources: Iterable[str]) -> TermList:
        """The lines of other terms.

        Raises:
            RegardError: there is no such term.
        """
        gone = {comparable(source) for source in sources}
        if missing := sorted(gone - {entry.source for entry in self.entries}):
            raise RegardError(f"has no term {missing[0]!r}; a term is named by its source, as written", self.where)
        kept = [line for line in self.lines if not ((entry := _entry(line, "")) and entry.source in gone)]
        return TermList(tuple(kept), self.where)

    def with_lines(self, other: TermList) -> TermList:
        """The lines of both; those of the other alone of terms that it has."""
        known = {entry.source for entry in self.entries}
        kept = self.without(entry.source for entry in other.entries if entry.source in known)
        return TermList((*kept.lines, *other.lines), self.where)


NO_TERMS = TermList(())
"""A list of none."""


def listed_lines(path: Path | str) -> list[str]:
    """The lines of a file of terms or phrases.

    Raises:
        RegardError: it cannot be read, or a line is not valid UTF-8.
    """
    notes = InvalidLines()
    found = list(row_lines(path, notes))
    if notes.invalid:
        raise RegardError("is not valid UTF-8; save the file in UTF-8", f"{path}:{notes.invalid_lines[0]}")
    return found


def phrase(text: str, where: str) -> str:
    """A phrase in composed characters, with a space between words.

    Raises:
        RegardError: it is too long, or has control characters.
    """
    if wrong := next((one for one in text if one != "\t" and unicodedata.category(one) in ("Cc", "Zl", "Zp")), ""):
        raise RegardError(f"has the control character U+{ord(wrong):04X}; remove it", where)
    if len(found := comparable(text)) > LONGEST:
        raise RegardError(f"has {len(found)} characters in a phrase; {LONGEST} is the most", where)
    return found


def comparable(text: str) -> str:
    """A text as lists of terms and memories compare it: in composed characters, with a space between words."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _entry(line: str, where: str) -> TermEntry | None:
    if not line.strip() or line.startswith("#"):
        return None
    match line.split("\t"):
        case [source, target]:
            entry = TermEntry(phrase(source, where), tuple(phrase(form, where) for form in target.split("|")))
        case columns:
            raise RegardError(f"has {counted(len(columns), 'column')}; a term is a source, a tab and its target", where)
    if not entry.source or not all(entry.forms):
        raise RegardError("has an empty source or form; a term is a source, a tab and its forms, by |", where)
    return entry
