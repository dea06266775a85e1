"""``regard fill``: the most probable words at the gaps of each text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.io.exchange import NO_OPTIONS, Exchange, TextOptions
from regard.cli.io.input_texts import Text
from regard.cli.io.lines import json_line, one_cell, read_until_error, unseen_values
from regard.cli.io.terminal import say
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.language.spans import SpanCorruption
    from regard.tasks.protocols import Task


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

    A span-corruption model (T5) guesses all gaps of a text together, any number of words at each, with | between; a
    gap may also be written by its own name, as in "The <extra_0> sleeps on <extra_1>."

    Args:
        folder: the model folder.
        k: guesses for each gap, or for all gaps of a text together.
        json: one JSON object for each text instead: the text, and the guesses of each gap (gaps) or of all together
            (fillings).
    """
    if k < 1:
        raise UsageError(f"{k} guesses cannot be given; ask for 1 or more", "--k")
    with Exchange("fill", folder, texts, given, {"--k": k, "--json": json}) as exchange:
        task = exchange.open_model()
        answer = FILLERS[task.info.writes]
        exchange.answer(lambda lines, first: answer(task, lines, first, k, json))
    return 0


def _words(task: Task, lines: list[str], first: int, k: int, json: bool) -> Iterator[str]:
    """Fill each gap independently."""
    from regard.tasks.kinds import fills_words

    assert fills_words(task)
    for number, (line, gaps) in enumerate(zip(lines, task.fill(lines, k), strict=True), first):
        if json:
            guesses = [[asdict(one) for one in gap] for gap in gaps]
            yield json_line({"text": line, "gaps": guesses, **unseen_values(task, line)})
            continue
        found = [_format_guess(f"{one.probability:.4f}", one.piece, one.text) for gap in gaps for one in gap]
        yield from found or _without_gap(line, number)


def _spans(task: Task, lines: list[str], first: int, k: int, json: bool) -> Iterator[str]:
    """Fill all gaps of a text jointly; lines before an unreadable one are answered first."""
    from regard.tasks.kinds import fills_spans

    assert fills_spans(task)
    read, wrong = read_until_error(_check_line(task, line, number) for number, line in enumerate(lines, first))
    for number, (line, fillings) in enumerate(zip(read, task.fillings(read, k), strict=True), first):
        if json:
            values = [asdict(one) for one in fillings]
            yield json_line({"text": line, "fillings": values, **unseen_values(task, line)})
            continue
        found = [_format_guess(f"{one.probability:.4g}", " | ".join(one.spans), one.text) for one in fillings]
        yield from found or _without_gap(line, number)
    if wrong:
        raise wrong


def _check_line(task: SpanCorruption, line: str, number: int) -> str:
    """The line itself, if its gaps can be filled.

    Raises:
        UsageError: they cannot; with the line's number.
    """
    try:
        task.gap_source(line)
    except UsageError as error:
        raise UsageError(error.message, f"line {number}") from None
    return line


def _format_guess(probability: str, guess: str, text: str) -> str:
    return f"{probability}\t{one_cell(guess)}\t{one_cell(text)}"


def _without_gap(line: str, number: int) -> list[str]:
    """The line for a text in which nothing is to be guessed."""
    if not line.strip():
        return [""]
    say(f"line {number} has no [MASK]")
    return [_format_guess("", "", line)]


FILLERS: dict[str, Callable[[Task, list[str], int, int, bool], Iterator[str]]] = {
    "words": _words,
    "text": _spans,
}
"""By kind of output, the function that answers lines, given the number of the first."""
