"""``regard ask``: what a text-to-text model writes for each text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.io.exchange import NO_OPTIONS, Exchange, TextOptions
from regard.cli.io.input_texts import Text, refuse_document
from regard.cli.io.lines import json_line, one_cell, one_line, piece_values, unseen_values
from regard.cli.io.sampling import DRAWING, NO_SAMPLING, SamplingOptions
from regard.cli.io.terminal import say
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.protocols import TextModel
    from regard.tasks.translation.text_to_text.writer import Answer

MOST = 100
"""Outputs of a text, and hypotheses of a beam, at most."""


def ask(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    prefix: str | None = None,
    beam: int | None = None,
    n: int = 1,
    sample: Annotated[bool, Parameter(group=DRAWING)] = False,
    seed: Annotated[int | None, Parameter(group=DRAWING)] = None,
    drawing: SamplingOptions = NO_SAMPLING,
    json: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> int:
    """Give texts to a text-to-text model, a line out for each: arguments, the lines of a file, or those of stdin.

    The text begins with the prefix of its task, "sort: d a c b", or --prefix names it for all texts; a prefix that the
    model never learned gives a warning. Empty texts stay empty.

    Args:
        folder: the model folder.
        prefix: of the task, put before each text with a colon.
        beam: hypotheses kept while searching; 1 is greedy; default: the recipe's.
        n: outputs of each text, the best or drawn ones, each as line number, log-probability and text, separated by
            tabs; the beam is widened if necessary.
        sample: draw the outputs instead of searching for the most probable.
        seed: another seed, other drawn outputs; default: the recipe's.
        json: one JSON object a line, with text, tokens (their numbers), pieces (the same as text, ▁ is a space),
            probability, score and confidence (the geometric mean of the tokens' probabilities), and, where the model
            folder knows them, with the words that training never saw (``unseen``: word, begin and end in characters)
            and whether the model is ``unsure``: less confident than usual on the validation texts.
    """
    for option, number in (("--n", n), ("--beam", beam)):
        if number is not None and not 1 <= number <= MOST:
            raise UsageError(f"{number} must lie between 1 and {MOST}", option)
    values = drawing.values
    if sample and beam is not None:
        raise UsageError("is for searching, but --sample draws; leave one out", "--beam")
    if not sample and (drawn := [name for name, value in {"seed": seed, **values}.items() if value is not None]):
        raise UsageError("is for drawing; add --sample", "--" + drawn[0].replace("_", "-"))
    options = {"--prefix": prefix, "--beam": beam, "--n": n, "--json": json, "--sample": sample, "--seed": seed}
    refuse_document(given.input)
    with Exchange("ask", folder, texts, given, options | values) as exchange:
        from regard.cli.io.answer_report import AnswerReport
        from regard.tasks.kinds import answers_text
        from regard.tasks.translation.text_to_text.corpus import with_prefix

        task = exchange.open_model()
        assert answers_text(task)
        if not json and not sample:  # of drawn outputs many are improbable
            exchange.report = AnswerReport(task.assets.doubted_below, exchange.given.by_hand)

        def warn_once(lines: Iterator[str]) -> Iterator[str]:
            """The lines, and a warning before the first whose prefix the model never learned."""
            warned = False
            for line in lines:
                if not warned and line.strip() and (sentence := task.prefix_warning(line, prefix or "")):
                    say(f"warning: {sentence}")
                    warned = True
                yield line

        def answer(lines: list[str], first: int) -> Iterator[str]:
            whole = [with_prefix(line, prefix or "") if line.strip() else line for line in lines]
            if sample:
                found = task.sample(whole, n, seed=seed, first=first, **values)
            else:
                found = task.nbest(whole, n, beam, first=first, scores=json or n > 1 or exchange.given.by_hand)
            if exchange.report is not None:
                best = [hypotheses[0] for hypotheses in found]
                exchange.report.add(first, whole, task.unseen_words_batch(whole), best)
            for number, (line, answers) in enumerate(zip(whole, found, strict=True), first):
                if json:
                    yield _format_json(task, answers, n, unseen_values(task, line))
                else:
                    yield from _format(number, answers, n)

        exchange.answer(answer, warn_once)
    return 0


def _format_json(task: TextModel, answers: list[Answer], n: int, unseen: dict[str, Any]) -> str:
    """The JSON object for one text."""
    found = [_answer_values(task, one) for one in answers]
    return json_line({**found[0], **({} if n == 1 else {"outputs": found}), **unseen})


def _format(number: int, answers: list[Answer], n: int) -> list[str]:
    """The lines for one text."""
    if n == 1:
        return [one_line(answers[0].text)]
    return [f"{number}\t{one.score:.4f}\t{one_cell(one.text)}" for one in answers]


def _answer_values(task: TextModel, one: Answer) -> dict[str, Any]:
    """An output as plain values."""
    values = asdict(one) | {"text": one_line(one.text), **piece_values(task, one.tokens)}
    values |= {name: round(values[name], 6) for name in ("score", "confidence")}
    return {name: value for name, value in values.items() if value is not None}
