"""Parser of one CoNLL-U sentence: its text with the original spacing, and the place of each word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from regard.text.tags import Place, TaggedWords

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_WORD = re.compile(r"[1-9][0-9]*")
_RANGE = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")
_EMPTY = re.compile(r"[0-9]+\.[1-9][0-9]*")


class ConlluSentence:
    """Collects the lines of one sentence.

    Args:
        word: the number of the column of the words, from 0.
        tag: of the tags.
    """

    def __init__(self, word: int, tag: int) -> None:
        self._word, self._tag = word, tag
        self._text, self._blank = "", ""
        self._places: list[Place] = []
        self._tags: list[str] = []
        self._next = 1
        self._token: tuple[int, str, bool] | None = None
        self._inside: list[str] = []

    def add(self, cells: Sequence[str]) -> None:
        """Take the columns of a line.

        Raises:
            ValueError: there are not ten, a word or tag is missing, or words are not numbered one by one.
        """
        if len(cells) != len(FIELDS):
            raise ValueError(f"has {len(cells)} columns; CoNLL-U has {len(FIELDS)}, separated by tabs")
        if _EMPTY.fullmatch(cells[0]):
            return
        if match := _RANGE.fullmatch(cells[0]):
            if self._token is not None or int(match[1]) != self._next or int(match[2]) < int(match[1]):
                raise ValueError(f"the words {cells[0]} do not follow word {self._next - 1}")
            self._token = int(match[2]), cells[self._word] or "_", _space_after(cells)
            return
        if not _WORD.fullmatch(cells[0]) or int(cells[0]) != self._next:
            raise ValueError(f"word {cells[0][:20]!r} does not follow word {self._next - 1}")
        if not cells[self._word] or not cells[self._tag].strip():
            raise ValueError(f"has no {'tag' if cells[self._word] else 'word'}")
        self._next += 1
        self._tags.append(cells[self._tag].strip())
        self._take(cells)

    def _take(self, cells: Sequence[str]) -> None:
        if self._token is None:
            self._append(cells[self._word], [cells[self._word]], _space_after(cells))
            return
        self._inside.append(cells[self._word])
        last, surface, spaced = self._token
        if int(cells[0]) == last:
            self._append(surface, self._inside, spaced)
            self._token, self._inside = None, []

    def _append(self, surface: str, words: Sequence[str], spaced: bool) -> None:
        self._text += self._blank
        begin = len(self._text)
        self._places += [(begin + left, begin + right) for left, right in shares(surface, words)]
        self._text += surface
        self._blank = " " if spaced else ""

    def words(self) -> TaggedWords:
        """The sentence; a multiword token whose last words are missing ends with what there is."""
        if self._token is not None and self._inside:
            self._append(self._token[1], self._inside, self._token[2])
            self._token, self._inside = None, []
        return TaggedWords(self._text, tuple(self._places), tuple(self._tags))


def _space_after(cells: Sequence[str]) -> bool:
    return "SpaceAfter=No" not in cells[9].split("|")


def shares(surface: str, words: Sequence[str]) -> list[Place]:
    """Spans of the words in a multiword token: ``didn't`` = ``did`` + ``n't``, ``zum`` = ``zu`` + ``m`` (dem).

    Each word but the last has as many characters as it has in common with what is left, but at least one; a token with
    fewer characters than words belongs to all of them.
    """
    if len(surface) < len(words):
        return [(0, len(surface))] * len(words)
    found, begin = [], 0
    for number, word in enumerate(words[:-1], 1):
        most = len(surface) - (len(words) - number)
        end = begin
        while end < most and end - begin < len(word) and surface[end].casefold() == word[end - begin].casefold():
            end += 1
        end = max(end, begin + 1)
        found.append((begin, end))
        begin = end
    return [*found, (begin, len(surface))]
