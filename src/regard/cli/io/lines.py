"""Lines of stdin and of results; groups of lines, in bulk for a fast writer and at once for a slow one."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from regard.cli.io.terminal import say
from regard.system import disk
from regard.system.errors import RegardError

if TYPE_CHECKING:
    from regard.tasks.images.classifier import Image, ImageClassification
    from regard.tasks.protocols import TextModel

One = TypeVar("One")

BURST = 1024
"""Most lines to read ahead."""
LINGER = 0.05
"""Seconds to wait for another line before answering those at hand."""
AHEAD = 1 << 20
"""Most characters to read ahead."""
ROOM = 1 << 15
"""Most characters of a chunk, unless a single text has more."""
NOTHING = object()
"""Stands for a line that has not arrived yet."""


def number_groups(groups: Iterable[list[str]], first: int = 1) -> Iterator[tuple[list[str], int]]:
    """Each group of texts with the number of its first, where that of all is ``first``."""
    for group in groups:
        yield group, first
        first += len(group)


def encode_line(line: str) -> bytes:
    """A line encoded as UTF-8, with its line feed."""
    return line.encode("utf-8", "replace") + b"\n"


def read_until_error(given: Iterator[One]) -> tuple[list[One], RegardError | None]:
    """The items before the first unreadable line, and the error of that line, so that the former can be answered."""
    read = []
    try:
        for one in given:
            read.append(one)
    except RegardError as error:
        return read, error
    return read, None


def unseen_values(task: TextModel, text: str) -> dict[str, object]:
    """The words of a text that training never saw, as plain values; nothing where the model folder does not say."""
    unseen = task.unseen_words(text)
    return {} if unseen is None else {"unseen": [[word.word, word.begin, word.end] for word in unseen]}


def piece_values(task: TextModel, ids: Iterable[int]) -> dict[str, object]:
    """Tokens that a model wrote, as plain values: their numbers, and the pieces as people read them (▁ is a space)."""
    found = list(ids)
    return {"tokens": found, "pieces": [task.target_tokenizer.piece(id) for id in found]}


def image_of(task: ImageClassification, line: str, number: int) -> Image | None:
    """The pixel values of a line for an image model; ``None`` for an empty line or a header, which is reported.

    Raises:
        RegardError: the line holds no image of the size the model reads; with its number.
    """
    found = task.parse_lines([line], number)
    if not found and line.strip():
        say(f"line {number} names columns; it is taken for a header, not for an image")
    return found[0] if found else None


def one_line(text: str) -> str:
    """The text with line breaks replaced by spaces, so that each input line gives one output line."""
    return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")


def one_cell(text: str) -> str:
    """The same with tabs replaced by spaces, so that it stays one column."""
    return one_line(text).replace("\t", " ")


def json_line(value: object) -> str:
    """A JSON object on one line.

    Raises:
        RegardError: it holds a number that is not finite.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        from regard.config.weights import TOO_LARGE

        raise RegardError(TOO_LARGE) from None


def chunks(texts: Iterable[str], most: int = BURST, room: int = ROOM) -> Iterator[list[str]]:
    """Deterministic groups of texts: resuming after any group yields the same groups.

    Raises:
        RegardError: a text cannot be read; what comes before it is given first.
    """
    chunk, size, wrong = list[str](), 0, None
    try:
        for text in texts:
            if chunk and (len(chunk) == most or size + len(text) > room):
                yield chunk
                chunk, size = [], 0
            chunk.append(text)
            size += len(text)
    except RegardError as error:
        wrong = error
    if chunk:
        yield chunk
    if wrong:
        raise wrong


def bursts(lines: Iterable[str], most: int = BURST, linger: float = LINGER, *, room: int = ROOM) -> Iterator[list[str]]:
    """Groups of all lines available so far: a slow writer is answered at once, a fast one in bulk.

    A line of more characters than ``room`` is answered alone, once those before it are.
    """
    waiting = ReadAhead(lines, most)
    item: object = waiting.get()
    while isinstance(item, str):
        burst, size, item = [item], len(item), NOTHING
        deadline = time.monotonic() + linger
        while item is NOTHING and len(burst) < most:
            try:
                item = waiting.get(timeout=max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                break
            if isinstance(item, str) and size + len(item) <= room:
                burst.append(item)
                size, item = size + len(item), NOTHING
        yield burst
        item = waiting.get() if item is NOTHING else item
    if isinstance(item, BaseException):
        raise item


class ReadAhead(queue.Queue[str | BaseException | None]):
    """Lines that a thread reads ahead, then ``None``, or the error that ended them.

    There are never more than a number of lines and :data:`AHEAD` characters, unless one line has more.

    Args:
        lines: to read.
        most: lines.
    """

    def __init__(self, lines: Iterable[str], most: int = BURST) -> None:
        self._each = max(1, AHEAD // most)
        super().__init__(self._each * most)
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def _read(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                self.put(line)
            self.put(None)
        except BaseException as error:
            self.put(error)

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self._size = 0

    def _cost(self, item: str | BaseException | None) -> int:
        return self._each + (len(item) if isinstance(item, str) else 0)

    def _qsize(self) -> int:
        return self._size

    def _put(self, item: str | BaseException | None) -> None:
        super()._put(item)
        self._size += self._cost(item)

    def _get(self) -> str | BaseException | None:
        item = super()._get()
        self._size -= self._cost(item)
        return item


def poll_lines(lines: Iterable[str], check: Callable[[], None]) -> Iterator[str]:
    """The lines, read ahead; while waiting, ``check`` is called periodically and may raise."""
    waiting = ReadAhead(lines)
    while True:
        try:
            item = waiting.get(timeout=0.2)
        except queue.Empty:
            check()
            continue
        if item is None:
            return
        if isinstance(item, BaseException):
            raise item
        yield item


def raw_lines() -> Iterator[bytes]:
    """Stdin's lines as bytes, each with its line feed.

    Read from the descriptor itself: a thread that waits inside Python's own stdin would make the exit fail.

    Raises:
        RegardError: a line is longer than any text; with its number.
    """
    from regard.text.lines import LONGEST, TOO_LONG

    try:
        number = sys.stdin.fileno()
    except (OSError, ValueError):  # a stand-in without a descriptor
        yield from sys.stdin.buffer
        return
    begun: list[bytes] = []
    size, line = 0, 1
    while True:
        with disk.naming("stdin"):
            block = os.read(number, 1 << 16)
        if not block:
            break
        first, *rest = block.split(b"\n")
        begun.append(first)
        if (size := size + len(first)) > LONGEST:
            raise RegardError(TOO_LONG, f"stdin:{line}")
        for following in rest:
            yield b"".join(begun) + b"\n"
            begun, size, line = [following], len(following), line + 1
    if last := b"".join(begun):
        yield last
