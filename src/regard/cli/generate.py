"""``regard generate``: a text that goes on from a prompt, written as it comes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.language_model import LanguageModel

DRAWING = Group("Drawing", sort_key=1)
BETWEEN = "\n---\n"
"""What stands between two texts."""


def generate(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    prompt: str | None = None,
    max_tokens: int = 256,
    n: int = 1,
    stop: list[str] | None = None,
    seed: int | None = None,
    temperature: Annotated[float | None, Parameter(group=DRAWING)] = None,
    top_k: Annotated[int | None, Parameter(group=DRAWING)] = None,
    top_p: Annotated[float | None, Parameter(group=DRAWING)] = None,
    min_p: Annotated[float | None, Parameter(group=DRAWING)] = None,
    typical: Annotated[float | None, Parameter(group=DRAWING)] = None,
    repetition_penalty: Annotated[float | None, Parameter(group=DRAWING)] = None,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> int:
    """Write on from a prompt with a language model; what is written goes to stdout as it comes, without the prompt.

    Args:
        folder: the model folder.
        prompt: what stands before; default: all of stdin but its last line feed, nothing on a terminal.
        max_tokens: tokens to write at most.
        n: texts to write; a line of --- stands between two.
        stop: end where this text would come; may be given several times.
        seed: another seed, another text; default: the recipe's.
        temperature: 1 draws as the model says, less is safer, 0 takes the most probable token every time.
        top_k: draw from so many tokens, the most probable ones.
        top_p: draw from the fewest tokens that have so much probability together.
        min_p: draw from tokens with so much of the most probable one's probability.
        typical: draw from the tokens that surprise as much as is usual, of so much probability together.
        repetition_penalty: damp tokens that are there already; 1 does nothing.
        json: one JSON object for each text, with prompt, text, tokens, log-probability and what ended it.
        device: cpu, cuda ...
        threads: processor threads.
    """
    if n < 1:
        raise UsageError(f"{n} texts cannot be written; give 1 or more", "--n")
    if max_tokens < 1:
        raise UsageError(f"{max_tokens} tokens cannot be written; give 1 or more", "--max-tokens")
    from regard.cli.opening import opened
    from regard.config import check_value

    drawing = {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "typical": typical,
        "repetition_penalty": repetition_penalty,
    }
    for name, value in drawing.items():
        if value is not None:
            check_value(f"decoding.{name}", value, "--" + name.replace("_", "-"))
    task = opened(folder, device, threads, "generate")
    before = _given() if prompt is None else prompt
    options = {"max_tokens": max_tokens, "stop": tuple(stop or ()), "seed": seed, **drawing}
    for line in _objects(task, before, n, options) if json else _texts(task, before, n, options):
        sys.stdout.buffer.write(line.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    return 0


def _given() -> str:
    """The prompt on stdin."""
    if sys.stdin.isatty():
        return ""
    from regard.cli.terminal import say_mended
    from regard.text.lines import Notes, decoded

    notes = Notes()
    text = "\n".join(decoded(sys.stdin.buffer, notes))
    say_mended("stdin", notes)
    return text


def _texts(task: LanguageModel, prompt: str, n: int, options: dict[str, Any]) -> Iterator[str]:
    """Parts of the texts as they come, one text after the other."""
    for number in range(n):
        if number:
            yield BETWEEN
        yield from task.stream(prompt, number, **options)
    yield "\n"


def _objects(task: LanguageModel, prompt: str, n: int, options: dict[str, Any]) -> Iterator[str]:
    from regard.cli.lines import json_line

    for written in task.generate(prompt, n, **options):
        yield json_line({"prompt": prompt, **asdict(written)}) + "\n"
