"""``regard score``: how probable given texts are to a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.io.exchange import NO_OPTIONS, Exchange, TextOptions
from regard.cli.io.input_texts import ParallelLines, Text
from regard.cli.io.lines import json_line
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.translation.translator import Translation


def score(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    target: Path | None = None,
    to: str | None = None,
    from_: Annotated[str | None, Parameter(name="--from")] = None,
    json: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> None:
    """Say how probable given outputs are to a model, a line out for each: its log-probability and its confidence.

    A translator and a model of text to text are given what they read, and in --target what they would write; a language
    model is given texts, each a document with its end. The log-probability is natural, of the whole output; the
    confidence is the geometric mean of the probabilities of its tokens, the end's among them.

    Args:
        folder: the model folder.
        target: a file with a line for each text: its translation, or the answer.
        to: the language of the translations, as translate has it.
        from_: the language of the texts, likewise.
        json: one JSON object a line, with pieces and log_probabilities (one for each, the end's last) too.
    """
    outputs = ParallelLines.read("--target", target)
    options = {"--to": to, "--from": from_, "--json": json}
    with Exchange("score", folder, texts, given, options, outputs) as exchange:
        from regard.tasks.kinds import answers_text, continues_text, translates

        task = exchange.open_model()
        if continues_text(task) == (target is not None):
            kinds = "is for models that read one text and write another"
            raise UsageError(kinds if target else "is needed: what would be written", "--target")
        if translates(task):
            task = in_direction(task, given.input, target, from_, to)
        elif from_ or to:
            raise UsageError("is for translators", "--to" if to else "--from")

        def answer(lines: list[str], first: int) -> Iterator[str]:
            if continues_text(task):
                found = [task.score(line) for line in lines]
            else:
                assert translates(task) or answers_text(task)
                found = task.score(lines, outputs.of(first, len(lines)) or [], first)
            for one in found:
                total, confidence = round(one.log_probability, 6), round(one.confidence, 6)
                if json:
                    tokens = {"pieces": one.pieces, "log_probabilities": [round(p, 6) for p in one.log_probabilities]}
                    yield json_line({"log_probability": total, "confidence": confidence, **tokens})
                else:
                    yield f"{total:.4f}\t{confidence:.4f}"

        exchange.answer(answer)


def in_direction(
    task: Translation, source: Path | None, target: Path | None, from_: str | None, to: str | None
) -> Translation:
    """A translator of the languages that are asked for; of one of several, else of those that two files end in."""
    from regard.tasks.translation.languages import between_files

    if source is None or target is None:
        return task.between(from_, to) if from_ or to else task
    return between_files(task, (source, target), (from_, to))
