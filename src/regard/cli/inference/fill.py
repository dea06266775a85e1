"""``regard fill``: the most probable words at the gaps of each text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.io.exchange import NO_OPTIONS, Exchange, TextOptions
from regard.cli.io.input_texts import Text
from regard.cli.io.lines import json_line, one_cell, unseen_values
from regard.cli.io.terminal import say
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.language.masked import MaskedLm


def fill(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    k: Annotated[int, Parameter(name=("--k", "-k"))] = 5,
    json: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> int:
    """Guess what stood at each [MASK] of texts: arguments, or the lines of a file or of stdin.

    A line comes out for each guess, the best first: the probability, what is guessed and the whole text with it,
    between tabs. Of a text without [MASK] there is one line with the text alone, the first two columns empty; of an
    empty text an empty line. So with -k 1 and a [MASK] in each text as many lines come out as go in.

    A masked-language model guesses the piece at each gap (▁ is a space): a text with several [MASK] gives the guesses
    of the first, then those of the second, and so on, the others filled with their best. A longer word needs several
    consecutive [MASK].

    Args:
        folder: the model folder.
        k: guesses for each gap.
        json: one JSON object for each text instead: the text, and the guesses of each gap (gaps).
    """
    if k < 1:
        raise UsageError(f"{k} guesses cannot be given; ask for 1 or more", "--k")
    with Exchange("fill", folder, texts, given, {"--k": k, "--json": json}) as exchange:
        from regard.tasks.kinds import fills_words

        task = exchange.open_model()
        assert fills_words(task)
        exchange.answer(lambda lines, first: _fillings(task, lines, first, k, json))
    return 0


def _fillings(task: MaskedLm, lines: list[str], first: int, k: int, json: bool) -> Iterator[str]:
    """The output for some lines."""
    for number, (line, gaps) in enumerate(zip(lines, task.fill(lines, k), strict=True), first):
        if json:
            guesses = [[asdict(one) for one in gap] for gap in gaps]
            yield json_line({"text": line, "gaps": guesses, **unseen_values(task, line)})
            continue
        found = [_format_guess(f"{one.probability:.4f}", one.piece, one.text) for gap in gaps for one in gap]
        yield from found or _without_gap(line, number)


def _format_guess(probability: str, guess: str, text: str) -> str:
    return f"{probability}\t{one_cell(guess)}\t{one_cell(text)}"


def _without_gap(line: str, number: int) -> list[str]:
    """The line for a text in which nothing is to be guessed."""
    if not line.strip():
        return [""]
    say(f"line {number} has no [MASK]")
    return [_format_guess("", "", line)]
