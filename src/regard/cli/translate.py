"""``regard translate``: a line out for each line in, whatever comes."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.translation import Translation

BURST = 1024
"""Lines read ahead at most."""
LINGER = 0.05
"""Seconds to wait for a further line before what is there is translated."""


def translate(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    beam: int | None = None,
    nbest: int = 1,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> int:
    """Translate stdin to stdout, a line out for each line in.

    Lines are translated as they come; a pause in the input brings out what there is. Empty lines stay empty.

    Args:
        folder: the model folder.
        beam: hypotheses kept while searching; 1 is fastest; default: the recipe's.
        nbest: show so many translations of each line, each as number of the line, score and text, between tabs;
            the beam becomes as wide if need be, and one given may not be narrower.
        json: one JSON object a line, with text, tokens and score.
        device: cpu, cuda ...
        threads: processor threads.
    """
    if nbest < 1 or (beam is not None and not nbest <= beam <= 100):
        raise UsageError(f"--nbest {nbest} must lie between 1 and the beam, and the beam between 1 and 100")
    from regard.cli.opening import opened
    from regard.cli.terminal import say_mended
    from regard.text.lines import Notes, decoded

    task = opened(folder, device, threads)
    notes = Notes()
    lines = decoded(raw_lines(), notes)
    for number, hypotheses in enumerate(_translated(task, lines, beam, nbest), 1):
        for line in _shown(number, hypotheses, nbest, json):
            sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    say_mended("stdin", notes)
    return 0


def _translated(task: Translation, lines: Iterable[str], beam: int | None, nbest: int) -> Iterator[list[Any]]:
    first = 1
    for burst in bursts(lines):
        yield from task.nbest(burst, n=nbest, beam=beam, first=first)
        first += len(burst)


def _shown(number: int, hypotheses: list[Any], nbest: int, json: bool) -> list[str]:
    """The lines for one sentence."""
    if json:
        import json as writer

        found = [{"text": one_line(h.text), "tokens": list(h.tokens), "score": round(h.score, 6)} for h in hypotheses]
        value = found[0] if nbest == 1 else {**found[0], "nbest": found}
        return [writer.dumps(value, ensure_ascii=False, allow_nan=False)]
    if nbest == 1:
        return [one_line(hypotheses[0].text)]
    return [f"{number}\t{h.score:.4f}\t{one_line(h.text)}" for h in hypotheses]


def one_line(text: str) -> str:
    """The text with generated line breaks turned into spaces, so that lines out are lines in."""
    return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")


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
