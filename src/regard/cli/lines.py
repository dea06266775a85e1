"""Texts one by one for the commands that answer each: a slow writer is answered at once, a fast one in bulk."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from regard import disk
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.cli.given import Given
    from regard.cli.target import Target

One = TypeVar("One")

BURST = 1024
"""Lines read ahead at most."""
LINGER = 0.05
"""Seconds to wait for a further line before what is there is answered."""
AHEAD = 1 << 20
"""Characters read ahead at most."""
ROOM = 1 << 15
"""Characters of a chunk at most, unless one text has more."""


def answer_each(
    answer: Callable[[list[str], int], Iterable[str]],
    given: Given,
    target: Target,
    joined: Callable[[Iterator[str]], Iterator[str]] = iter,
) -> None:
    """Write straight away what is answered to each text; then name the lines that were not valid UTF-8.

    Args:
        answer: of some texts, and the number of the first of them (from 1), the lines to be written.
        given: where the texts come from; what is there already is answered in chunks, else what has come so far.
        target: where results go.
        joined: makes one of lines that are to be answered together; default: none are.
    """
    from regard.cli.terminal import say_mended
    from regard.text.lines import Notes

    notes = Notes()
    texts = joined(given.lines(notes))
    with target.stream() as stream:
        for burst, first in numbered(chunks(texts) if given.steady else bursts(texts)):
            for line in answer(burst, first):
                stream.write(written(line))
            stream.flush()
    say_mended(given.name, notes)


def numbered(groups: Iterable[list[str]]) -> Iterator[tuple[list[str], int]]:
    """Each group of texts with the number of its first, from 1."""
    first = 1
    for group in groups:
        yield group, first
        first += len(group)


def written(line: str) -> bytes:
    """A line as it is written."""
    return line.encode("utf-8", "replace") + b"\n"


def until_wrong(given: Iterator[One]) -> tuple[list[One], RegardError | None]:
    """What comes before the first line that cannot be read, which is answered yet; and what is wrong with that line."""
    read = []
    try:
        for one in given:
            read.append(one)
    except RegardError as error:
        return read, error
    return read, None


def image_of(task: Any, line: str, number: int) -> Any:
    """The pixel values of a line, for a model of images; none of an empty line, nor of a header, which is told.

    Raises:
        RegardError: the line holds no image of the size the model reads; with its number.
    """
    found = task.parsed([line], number)
    if not found and line.strip():
        from regard.cli.terminal import say

        say(f"line {number} names columns; it is taken for a header, not for an image")
    return found[0] if found else None


def one_line(text: str) -> str:
    """The text with generated line breaks turned into spaces, so that lines out are lines in."""
    return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")


def one_cell(text: str) -> str:
    """The same with tabs turned into spaces too, so that a column stays one."""
    return one_line(text).replace("\t", " ")


def json_line(value: Any) -> str:
    """A JSON object on one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def chunks(texts: Iterable[str], most: int = BURST, room: int = ROOM) -> Iterator[list[str]]:
    """The texts in groups that depend on nothing but the texts: whoever goes on behind one makes the same again.

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
    """The lines in groups: all that has come so far; so a slow writer is answered at once and a fast one in bulk.

    A line of more characters than ``room`` is answered alone, once those before it are.
    """
    waiting = Ahead(most)
    threading.Thread(target=_read_ahead, args=(lines, waiting), daemon=True).start()
    item = waiting.get()
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
    if item is not None:
        raise item


NOTHING = object()
"""In place of a line that has not come yet."""


class Ahead(queue.Queue[Any]):
    """What is read ahead: so many lines at most, of :data:`AHEAD` characters together, or a single one.

    Args:
        most: lines.
    """

    def __init__(self, most: int = BURST) -> None:
        self._each = max(1, AHEAD // most)
        super().__init__(self._each * most)

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self._size = 0

    def _cost(self, item: Any) -> int:
        return self._each + (len(item) if isinstance(item, str) else 0)

    def _qsize(self) -> int:
        return self._size

    def _put(self, item: Any) -> None:
        super()._put(item)
        self._size += self._cost(item)

    def _get(self) -> Any:
        item = super()._get()
        self._size -= self._cost(item)
        return item


def watched(lines: Iterable[str], check: Callable[[], None]) -> Iterator[str]:
    """The lines, read ahead; while none comes, ``check`` is called now and then, and may raise."""
    waiting = Ahead()
    threading.Thread(target=_read_ahead, args=(lines, waiting), daemon=True).start()
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


def _read_ahead(lines: Iterable[str], waiting: queue.Queue[Any]) -> None:
    """Put each line into the queue, then ``None``, or the error that ended them."""
    try:
        for line in lines:
            waiting.put(line)
        waiting.put(None)
    except BaseException as error:
        waiting.put(error)


def _stdin(number: int) -> bytes:
    with disk.naming("stdin"):
        return os.read(number, 1 << 16)


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
    while block := _stdin(number):
        first, *rest = block.split(b"\n")
        begun.append(first)
        if (size := size + len(first)) > LONGEST:
            raise RegardError(TOO_LONG, f"stdin:{line}")
        for following in rest:
            yield b"".join(begun) + b"\n"
            begun, size, line = [following], len(following), line + 1
    if last := b"".join(begun):
        yield last
