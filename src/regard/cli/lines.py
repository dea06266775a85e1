"""Stdin line by line for the commands that answer each: a slow writer is answered at once, a fast one in bulk."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from regard.errors import RegardError

One = TypeVar("One")

BURST = 1024
"""Lines read ahead at most."""
LINGER = 0.05
"""Seconds to wait for a further line before what is there is answered."""


def answer_each(
    answer: Callable[[list[str], int], Iterable[str]], joined: Callable[[Iterator[str]], Iterator[str]] = iter
) -> None:
    """Write to stdout what is answered to the lines of stdin, in bursts; then name those that were not valid UTF-8.

    Args:
        answer: of some lines, and the number of the first of them (from 1), the lines to be written.
        joined: makes one of lines that are to be answered together; default: none are.
    """
    from regard.cli.terminal import say_mended
    from regard.text.lines import Notes, decoded

    notes, first = Notes(), 1
    for burst in bursts(joined(decoded(raw_lines(), notes))):
        for line in answer(burst, first):
            sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
        first += len(burst)
    say_mended("stdin", notes)


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


def bursts(lines: Iterable[str], most: int = BURST, linger: float = LINGER) -> Iterator[list[str]]:
    """The lines in groups: all that has come so far; so a slow writer is answered at once and a fast one in bulk."""
    waiting: queue.Queue[Any] = queue.Queue(most)
    threading.Thread(target=_read_ahead, args=(lines, waiting), daemon=True).start()
    while True:
        burst, item = [], waiting.get()
        deadline = time.monotonic() + linger
        while isinstance(item, str):
            burst.append(item)
            if len(burst) == most:
                break
            try:
                item = waiting.get(timeout=max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                break
        if burst:
            yield burst
        if item is None:
            return
        if isinstance(item, BaseException):
            raise item


def _read_ahead(lines: Iterable[str], waiting: queue.Queue[Any]) -> None:
    """Put each line into the queue, then ``None``, or the error that ended them."""
    try:
        for line in lines:
            waiting.put(line)
        waiting.put(None)
    except BaseException as error:
        waiting.put(error)


def raw_lines() -> Iterator[bytes]:
    """Stdin's lines as bytes, each with its line feed.

    Read from the descriptor itself: a thread that waits inside Python's own stdin would make the exit fail.
    """
    try:
        number = sys.stdin.fileno()
    except (OSError, ValueError):  # a stand-in without a descriptor
        yield from sys.stdin.buffer
        return
    begun: list[bytes] = []
    while block := os.read(number, 1 << 16):
        first, *rest = block.split(b"\n")
        begun.append(first)
        for following in rest:
            yield b"".join(begun) + b"\n"
            begun = [following]
    if last := b"".join(begun):
        yield last
