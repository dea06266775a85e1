"""Windows over texts longer than a model's context; each window is read as a text of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from regard.inspection.folders.models import LruCache, Models
from regard.inspection.requests import Request
from regard.tasks.kinds import fills_words, reads_text, translates, writes_text

if TYPE_CHECKING:
    from regard.tasks.protocols import TargetWriter, Task, TextModel

CONTINUATION = 40
"""Tokens of room that a window leaves for continuations; at most a quarter of the context."""
LETTERS = 16
"""Characters per token within which the end of a window is searched first."""
_WORD = re.compile(r"\S+")
_WHOLE = re.compile(r"\[MASK\]|<extra_(?:id_)?\d+>|.", re.DOTALL)
"""Units that are never split: a gap, or a character."""
Starts = Callable[[str], list[int]]
"""The character offset of each token of a text, without special symbols."""


@dataclass(frozen=True)
class TextWindow:
    """A part of a text.

    Args:
        text: of the part.
        number: which of ``count`` it is, from 1.
        first, last: its tokens among the ``total`` of the text, from 1; special symbols do not count.
    """

    text: str
    number: int
    count: int
    first: int
    last: int
    total: int

    @property
    def label(self) -> str:
        """Which part it is, in a few words."""
        return f"part {self.number} of {self.count}: tokens {self.first}–{self.last} of {self.total}"


@dataclass(frozen=True)
class TextWindows:
    """All windows of a text; a single one if the model reads all of it.

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

    def window(self, number: int | None = None) -> TextWindow:
        """A window by its number, from 1; numbers out of range give the nearest."""
        number = max(1, min(self.begin if number is None else number, len(self.texts)))
        last = self.total if number == len(self.texts) else list(accumulate(self.sizes))[number - 1]
        size = self.sizes[number - 1]
        return TextWindow(self.texts[number - 1], number, len(self.texts), last - size + 1, last, self.total)


def windows(task: TextModel, text: str) -> TextWindows:
    """The windows of a model's source text.

    A translator's are its sentences, or parts of one that is too long by itself: so it translates the text. Other
    models' are as many words as they read, the last one as many as it holds before the end. The first is looked at
    where none is named; of a text with gaps the first that has one, and where a model goes on the last.

    Args:
        task: a loaded model of texts.
        text: of any length.
    """
    symbols = len(task.reads("")[1])
    behind = int(task.info.writes != "continuation")  # this model reads </s> before a text, encoders after it
    limit = task.recipe.data.max_tokens
    room = max(1, limit - symbols)

    def starts(given: str) -> list[int]:
        found = [start for _, start, _ in task.reads(given)[1]]
        return found[symbols - behind : len(found) - behind]

    if not text.strip() or task.info.texts > 1 or fits(text, starts, room):
        return _single_window(text, starts)
    if translates(task):
        from regard.text.languages import cut  # as for translation (docs/decisions, text at use)

        parts = cut(text, task.assets.source, limit, task.direction[0])
        sizes = tuple(len(starts(part)) for part in parts)
        return TextWindows(tuple(parts), sizes, sum(sizes))
    if task.info.writes == "continuation":
        found = split_text(text, starts, max(1, room - min(CONTINUATION, limit // 4)))
        return replace(found, begin=len(found.texts))
    found = split_text(text, starts, room)
    if not fills_words(task):
        return found
    gapped = (number for number, part in enumerate(found.texts, 1) if task.gaps.parse(part).gaps)
    return replace(found, begin=next(gapped, 1))


def target_windows(task: TargetWriter, text: str) -> TextWindows:
    """The windows of a forced target; the first is used."""

    def starts(given: str) -> list[int]:
        return [start for _, start, _ in task.reads_target(given)[1]]

    room = max(1, task.recipe.data.max_tokens - 1)
    return _single_window(text, starts) if fits(text, starts, room) else split_text(text, starts, room)


def fits(text: str, starts: Starts, room: int) -> bool:
    """Whether a text has at most ``room`` tokens; a far longer one is judged by its prefix."""
    seen = LETTERS * room
    while seen < len(text):
        if len(starts(text[:seen])) > 2 * room:
            return False
        seen *= 4
    return len(starts(text)) <= room


def split_text(text: str, starts: Starts, room: int) -> TextWindows:
    """Split a text at words into parts of at most ``room`` tokens; the last one is as full as the others."""
    parts = [part for part in _parts(text, starts, room) if part.strip()]
    sizes = [len(starts(part)) for part in parts]
    total = sum(sizes)
    if len(parts) > 1:
        parts[-1] = _end("".join(parts[-2:]), starts, room) or parts[-1]
        sizes[-1] = len(starts(parts[-1]))
    return TextWindows(tuple(parts), tuple(sizes), total)


def _single_window(text: str, starts: Starts) -> TextWindows:
    size = len(starts(text))
    return TextWindows((text,), (size,), size)


def _parts(text: str, starts: Starts, room: int) -> Iterator[str]:
    """The text split before spaces, or within an over-long word; the parts join to the text."""
    begin, seen = 0, LETTERS * room
    while begin < len(text):
        length = _length(text, begin, starts, room, seen)
        yield text[begin : begin + length]
        begin, seen = begin + length, max(length + length // 2, 2 * room)


def _length(text: str, begin: int, starts: Starts, room: int, seen: int) -> int:
    """Length of the longest part from ``begin`` on that fits; only a prefix is tokenized at first."""
    while True:
        begun = text[begin : begin + seen]
        found = starts(begun)
        if len(found) > room:
            break
        if begin + seen >= len(text):
            return len(begun)
        seen *= 4
    most = found[room]  # approximate: a tokenizer may have normalised characters before it
    for pattern in (_WORD, _WHOLE):
        ends = [one.end() for one in pattern.finditer(begun, 0, max(1, most))]
        whole = ends[:-1] if pattern is _WORD and not begun[most : most + 1].isspace() else ends
        if fit := next((end for end in reversed(whole) if len(starts(begun[:end])) <= room), None):
            return fit
    return 1


def _end(text: str, starts: Starts, room: int) -> str | None:
    """The longest suffix of a text that fits, about; it starts at a word or the space before it."""
    found = starts(text)
    least = found[-room] if len(found) > room else 0
    for pattern in (_WORD, _WHOLE):
        begins = [one.start() for one in pattern.finditer(text) if one.start() >= least]
        spaced = [begin - (begin > least and text[begin - 1].isspace()) for begin in begins]
        if fit := next((begin for begin in spaced if len(starts(text[begin:])) <= room), None):
            return text[fit:]
    return None


@dataclass(frozen=True)
class WindowedRequest:
    """A request, cut to the model's context.

    Args:
        asked: with the window's text, which is whole to the model.
        source, target: the windows of what is read and of what is forced; ``None`` where the model reads all of it.
    """

    asked: Request
    source: TextWindow | None = None
    target: TextWindow | None = None

    @classmethod
    def of(cls, task: Task, text: str, target: str | None = None, window: int | None = None) -> WindowedRequest:
        """Cut a text and its forced target for a loaded model."""
        return _fit_windows(task, Request(text=text, target=target, window=window), LruCache(2))

    @property
    def values(self) -> dict[str, object]:
        """The windows shown, as plain values."""
        return {"window": self.source and asdict(self.source), "target_window": self.target and asdict(self.target)}

    @property
    def cut_values(self) -> dict[str, object]:
        """The same, only for texts that were cut."""
        return {name: value for name, value in self.values.items() if value is not None}

    @property
    def label(self) -> str:
        """The same as sentences; empty if nothing was cut."""
        parts = [] if self.source is None else [f"Of the text this is {self.source.label}."]
        parts += [] if self.target is None else [f"Of what it is made to write this is {self.target.label}."]
        return " ".join(parts)


def fit_request(models: Models, asked: Request) -> WindowedRequest:
    """Cut a request to the model's context; an image stays as it is."""
    loaded = models.load_for(asked)
    return _fit_windows(loaded.task, asked, models.cut, loaded.key)


def _fit_windows(task: Task, asked: Request, cut: LruCache[TextWindows], key: object = None) -> WindowedRequest:
    if not reads_text(task):
        return WindowedRequest(replace(asked, window=None))
    source = cut.get((key, windows, asked.text), partial(windows, task, asked.text)).window(asked.window)
    text, target = asked.target, None
    if text is not None and writes_text(task):
        target = cut.get((key, target_windows, text), partial(target_windows, task, text)).window()
        text = target.text
    return WindowedRequest(
        replace(asked, text=source.text, target=text, window=None),
        source if source.count > 1 else None,
        target if target is not None and target.count > 1 else None,
    )
