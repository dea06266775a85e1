"""``regard score`` and ``align``: how probable given outputs are to a model, and which words belong together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.io.exchange import NO_OPTIONS, Exchange, TextOptions
from regard.cli.io.input_texts import ParallelLines, Text
from regard.cli.io.lines import json_line
from regard.cli.io.terminal import result, say
from regard.system.errors import RegardError, UsageError
from regard.text.tags import SEPARATOR

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
            task = _in_direction(task, given.input, target, from_, to)
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


def align(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    target: Path | None = None,
    to: str | None = None,
    from_: Annotated[str | None, Parameter(name="--from")] = None,
    tune: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> None:
    """Say which words of texts and of given translations belong together, a line out for each: 0-0 1-2 2-1.

    Words are what stands between blanks, counted from 0, the source's first. A translation's word is linked to the word
    that the model attends to most when it is given the translation. Which heads align words is chosen by a small
    lexical model, which needs no gold standard and is learned from pairs: with --tune of the training, or of the files
    at hand, and written to the recipe; else, where the recipe has none, of the files at hand, if they have 200 lines.

    Args:
        folder: of a translator.
        target: a file with a translation for each text; default: they stand behind a tab in the line of the text.
        to: the language of the translations, as translate has it.
        from_: the language of the texts, likewise.
        tune: choose the heads, write them to the recipe of the model, and align nothing; by the pairs that the model
            learned from, if they are still there, or by --input and --target, ten thousand lines if you can.
    """
    outputs = ParallelLines.read("--target", target)
    if tune:
        _tune(folder, given.input, outputs)
        return
    with Exchange("align", folder, texts, given, {"--to": to, "--from": from_}, outputs) as exchange:
        from regard.data.alignment.links import write_links
        from regard.tasks.kinds import translates

        task = exchange.open_model()
        assert translates(task)
        task = _with_head(_in_direction(task, given.input, target, from_, to), given.input, outputs)

        def answer(lines: list[str], first: int) -> Iterator[str]:
            translations = outputs.of(first, len(lines))
            if translations is None:
                lines, translations = _split(lines, first)
            yield from map(write_links, task.align(lines, translations, first))

        exchange.answer(answer)


def _split(lines: list[str], first: int) -> tuple[list[str], list[str]]:
    """Texts and the translations behind their tabs.

    Raises:
        RegardError: a line has none, or several; with its number.
    """
    pairs = [line.split(SEPARATOR) for line in lines]
    for number, pair in enumerate(pairs, first):
        if len(pair) != 2:
            message = f"has {len(pair) - 1} tabs; text and translation stand on each side of one, or give --target"
            raise RegardError(message, f"line {number}")
    return [source for source, _ in pairs], [translation for _, translation in pairs]


def _both(source: Path, outputs: ParallelLines) -> tuple[list[str], list[str]]:
    """The lines of both files.

    Raises:
        UsageError: one has more than the other.
    """
    texts, translations = ParallelLines.read("--input", source).lines, outputs.lines
    if len(texts) != len(translations):
        message = f"has {len(translations):,} lines, but {source} has {len(texts):,}; each text needs its own"
        raise UsageError(message, str(outputs.path))
    return list(texts), list(translations)


def _tune(folder: Path, source: Path | None, outputs: ParallelLines) -> None:
    if (source is None) != (outputs.path is None):
        raise UsageError("needs both files, --input and --target, or neither", "--tune")
    from regard.runs.tune import tune_alignment

    heads, agreement, usual = tune_alignment(folder, *(_both(source, outputs) if source else ()))
    names = ", ".join(map(str, heads))
    result(f"{names}: {agreement:.1%} of the links are those of the lexical model, of the usual choice's {usual:.1%}")


def _with_head(task: Translation, source: Path | None, outputs: ParallelLines) -> Translation:
    """The translator as it is where heads are known; else with those that files show, if they are long enough."""
    from regard.tasks.translation.align import LEAST, choose_heads, is_known

    if is_known(task.recipe):
        return task
    pairs = _both(source, outputs) if source is not None and source.is_file() and outputs.path else None
    if pairs is None or len(outputs.lines) < LEAST:
        say("the mean of all layers aligns words; align --tune finds better heads")
        return task
    names = list(map(str, choose_heads(task, *pairs)[0]))
    say(f"{', '.join(names)} align words here, chosen by these pairs; align --tune writes such a choice to the recipe")
    return task.with_settings([f"decoding.alignment_heads={json_line(names)}"])


def _in_direction(
    task: Translation, source: Path | None, target: Path | None, from_: str | None, to: str | None
) -> Translation:
    """A translator of the languages that are asked for; of one of several, else of those that two files end in."""
    from regard.tasks.translation.languages import between_files

    if source is None or target is None:
        return task.between(from_, to) if from_ or to else task
    return between_files(task, (source, target), (from_, to))
