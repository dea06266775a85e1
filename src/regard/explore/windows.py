"""The windows of a text that is longer than a model reads: parts that it reads, each looked at as a text of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.text.vocabulary import AnyTokenizer

GOES_ON = 40
"""Tokens for which a window leaves room behind it where a model goes on; a quarter of its texts at most."""
LETTERS = 16
"""Characters for each token among which the end of a window is looked for first."""
_WORD = re.compile(r"\S+")
_WHOLE = re.compile(r"\[MASK\]|<extra_(?:id_)?\d+>|.", re.DOTALL)
"""What is never cut: a gap, or a character."""
Starts = Callable[[str], list[int]]
"""Where each token of a text begins, in its characters; the symbols around it are left out."""


@dataclass(frozen=True)
class Window:
    """A part of a text.

    Args:
        text: of the part.
        number: which of ``count`` it is, from 1.
        first, last: its tokens among the ``total`` of the text, from 1; symbols around a text are none.
    """

    text: str
    number: int
    count: int
    first: int
    last: int
    total: int

    @property
    def values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @property
    def told(self) -> str:
        """Which part it is, in a few words."""
        return f"part {self.number} of {self.count}: tokens {self.first}–{self.last} of {self.total}"


@dataclass(frozen=True)
class Windows:
    """All windows of a text; one where the model reads all of it.

    Args:
        texts: of the parts.
        sizes: tokens of each.
        total: tokens of the whole text.
        begin: the number of the one that is looked at where none is named.
    """

    texts: tuple[str, ...]
    sizes: tuple[int, ...]
    total: int
    begin: int = 1

    def one(self, number: int | None = None) -> Window:
        """A window by its number, from 1, or the nearest that there is."""
        number = max(1, min(self.begin if number is None else number, len(self.texts)))
        last = self.total if number == len(self.texts) else list(accumulate(self.sizes))[number - 1]
        size = self.sizes[number - 1]
        return Window(self.texts[number - 1], number, len(self.texts), last - size + 1, last, self.total)


def windows(task: Any, text: str) -> Windows:
    """The windows of what a model reads.

    A translator's are its sentences, or parts of one that is too long by itself: so it translates the text. Other
    models' are as many words as they read, the last one as many as it holds before the end. The first is looked at
    where none is named; of a text with gaps the first that has one, and where a model goes on the last.

    Args:
        task: a loaded model of texts.
        text: of any length.
    """
    starts, symbols = reading(task)
    limit = task.recipe.data.max_tokens
    room = max(1, limit - symbols)
    if not text.strip() or fits(text, starts, room):
        return _whole(text, starts)
    if task.name == "translation":
        return _sentences(task, text, starts)
    if task.name == "language-model":
        found = filled(text, starts, max(1, room - min(GOES_ON, limit // 4)))
        return replace(found, begin=len(found.texts))
    found = filled(text, starts, room)
    gapped = (number for number, part in enumerate(found.texts, 1) if has_gap(task, part))
    return replace(found, begin=next(gapped, 1))


def forced(task: Any, text: str) -> Windows:
    """The windows of what a model is made to write, of which the first is."""
    starts = reading(task)[0] if task.name == "span-corruption" else _encoding(task.vocabularies.target)
    room = max(1, task.recipe.data.max_tokens - 1)
    return _whole(text, starts) if fits(text, starts, room) else filled(text, starts, room)


def reading(task: Any) -> tuple[Starts, int]:
    """How a model reads a text, and how many symbols stand around it."""
    if task.name == "translation":
        return _encoding(task.vocabularies.source), 1
    if task.name == "span-corruption":
        return lambda text: [start for _, start, _ in task.gaps.read(text).read], 1
    symbols = len(task.reads("")[1])
    behind = int(task.name != "language-model")  # it reads </s> before a text, encoders behind it

    def starts(text: str) -> list[int]:
        found = [start for _, start, _ in task.reads(text)[1]]
        return found[symbols - behind : len(found) - behind]

    return starts, symbols


def has_gap(task: Any, text: str) -> bool:
    """Whether a model has something to fill in."""
    if task.name == "span-corruption":
        return bool(task.gaps.read(text).gaps)
    return task.name == "masked-lm" and any(id == task.mask for id, _, _ in task.reads(text)[1])


def fits(text: str, starts: Starts, room: int) -> bool:
    """Whether a text has so many tokens at most; of one that has far more only the beginning is read."""
    seen = LETTERS * room
    while seen < len(text):
        if len(starts(text[:seen])) > 2 * room:
            return False
        seen *= 4
    return len(starts(text)) <= room


def filled(text: str, starts: Starts, room: int) -> Windows:
    """A text in parts of as many words as fit into ``room`` tokens; the last one holds as many before the end."""
    parts = [part for part in _parts(text, starts, room) if part.strip()]
    sizes = [len(starts(part)) for part in parts]
    total = sum(sizes)
    if len(parts) > 1:
        parts[-1] = _end("".join(parts[-2:]), starts, room) or parts[-1]
        sizes[-1] = len(starts(parts[-1]))
    return Windows(tuple(parts), tuple(sizes), total)


def _whole(text: str, starts: Starts) -> Windows:
    size = len(starts(text))
    return Windows((text,), (size,), size)


def _encoding(tokenizer: AnyTokenizer) -> Starts:
    return lambda text: [start for start, _ in tokenizer.encode(text).offsets]


def _sentences(task: Any, text: str, starts: Starts) -> Windows:
    """As a translator cuts a text (ARCHITECTURE, text at use)."""
    from regard.text.sentences import cut

    recipe = task.recipe
    found = cut(text, task.vocabularies.source, recipe.data.max_tokens, recipe.text.source_language)
    sizes = tuple(len(starts(part)) for part in found)
    return Windows(tuple(found), sizes, sum(sizes))


def _parts(text: str, starts: Starts, room: int) -> Iterator[str]:
    """The text cut before spaces, or within a word that is too long by itself; joined they are the text."""
    begin, seen = 0, LETTERS * room
    while begin < len(text):
        length = _length(text, begin, starts, room, seen)
        yield text[begin : begin + length]
        begin, seen = begin + length, max(length + length // 2, 2 * room)


def _length(text: str, begin: int, starts: Starts, room: int, seen: int) -> int:
    """Of the longest part of a text that begins at a character and fits; only so much of the text is read at first."""
    while True:
        begun = text[begin : begin + seen]
        found = starts(begun)
        if len(found) > room:
            break
        if begin + seen >= len(text):
            return len(begun)
        seen *= 4
    most = found[room]  # about: a tokenizer may have changed characters before it
    for pattern in (_WORD, _WHOLE):
        ends = [one.end() for one in pattern.finditer(begun, 0, max(1, most))]
        whole = ends[:-1] if pattern is _WORD and not begun[most : most + 1].isspace() else ends
        if fit := _fitting(reversed(whole), lambda end: len(starts(begun[:end])) <= room):
            return fit
    return 1


def _end(text: str, starts: Starts, room: int) -> str | None:
    """The longest end of a text that fits, about: it begins with a word, or the space before that."""
    found = starts(text)
    least = found[-room] if len(found) > room else 0
    for pattern in (_WORD, _WHOLE):
        begins = [one.start() for one in pattern.finditer(text) if one.start() >= least]
        spaced = [begin - (begin > least and text[begin - 1].isspace()) for begin in begins]
        if fit := _fitting(spaced, lambda begin: len(starts(text[begin:])) <= room):
            return text[fit:]
    return None


def _fitting(places: Iterable[int], fit: Callable[[int], bool]) -> int | None:
    """The first place that fits."""
    return next((place for place in places if fit(place)), None)
