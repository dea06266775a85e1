"""``regard fill``: what most probably stood at each ``[MASK]`` of each line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.errors import UsageError


def fill(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    k: Annotated[int, Parameter(name=("--k", "-k"))] = 5,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> int:
    """Guess what stood at each [MASK] of the lines of stdin: a line for each guess, the most probable first.

    A line has the probability, the piece (▁ is a space) and the whole text with it, between tabs. A text with several
    [MASK] gives the guesses of the first, then those of the second, and so on, the others filled with their best. A gap
    is one piece; a longer word needs several [MASK] one behind the other.

    Args:
        folder: the model folder.
        k: guesses for each gap.
        json: one JSON object for each line of stdin instead: its text, and the guesses of each gap.
        device: cpu, cuda ...
        threads: processor threads.
    """
    if k < 1:
        raise UsageError(f"{k} guesses cannot be given; ask for 1 or more", "--k")
    from regard.cli.lines import answer_each, json_line, one_cell
    from regard.cli.opening import opened
    from regard.cli.terminal import say

    task = opened(folder, device, threads, ("masked-lm",))

    def answer(lines: list[str], first: int) -> Iterator[str]:
        for number, (line, gaps) in enumerate(zip(lines, task.fill(lines, k), strict=True), first):
            if json:
                yield json_line({"text": line, "gaps": [[asdict(one) for one in gap] for gap in gaps]})
            elif not gaps and line.strip():
                say(f"line {number} has no [MASK]")
            for candidate in (one for gap in gaps for one in gap) if not json else ():
                yield f"{candidate.probability:.4f}\t{candidate.piece}\t{one_cell(candidate.text)}"

    answer_each(answer)
    return 0
