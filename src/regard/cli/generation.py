"""``regard translate``, ``ask`` and ``generate``: what a model writes for each text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from regard.cli.io.documents import NO_DOCUMENT_OPTIONS, DocumentOptions, about, find_files, translate_files
from regard.cli.io.exchange import NO_OPTIONS, Exchange, Output, Precision, TextOptions
from regard.cli.io.input_texts import Input, InputTexts, ParallelLines, Text, refuse_document
from regard.cli.io.lines import json_line, one_cell, one_line, piece_values, unseen_values
from regard.cli.io.terminal import say
from regard.cli.io.writer_options import (
    NO_SAMPLING,
    NO_WRITER_OPTIONS,
    SamplingOptions,
    Settings,
    With,
    WriterOptions,
    open_others,
)
from regard.system.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.tasks.protocols import TextModel
    from regard.tasks.text.output_options import OutputOptions
    from regard.tasks.text.writer import Hypothesis
    from regard.tasks.translation.alternatives import WordAlternatives

LONGEST = 64 << 20
"""Most characters of a prompt."""
BETWEEN = "\n---\n"
"""The separator between two texts."""
PROMPTS = (
    "what stands before, each between quotes; each is written on as if it were alone. Behind -- if one begins with -. "
    "Default: all of --input, or of stdin, but its last line feed; nothing on a terminal."
)


def translate(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    to: str | None = None,
    from_: Annotated[str | None, Parameter(name="--from")] = None,
    nbest: int = 1,
    prefix: Path | None = None,
    alternatives: int | None = None,
    reverse: Path | None = None,
    guard: Literal["warn", "retry"] | None = None,
    search: WriterOptions = NO_WRITER_OPTIONS,
    json: bool = False,
    given: TextOptions = NO_OPTIONS,
    document: DocumentOptions = NO_DOCUMENT_OPTIONS,
) -> None:
    """Translate texts, a line out for each: arguments, the lines of a file, or those of stdin; or documents.

    Lines of stdin are translated as they come; a pause in the input brings out what there is. Empty texts stay empty.
    A document (--input report.docx --output bericht.docx) comes out in its own format: tags go where their words went,
    code, addresses, placeholders and numbers are kept, and nothing else changes. --input may be a folder or a pattern
    ('docs/**/*.html'); then --output is a folder, and documents that are there and newer stay as they are.

    Args:
        folder: the model folder.
        to: the language to translate into, of a model that knows several (regard info names them): a code of its
            folder, or a usual one, such as de; default: the recipe's. A direction that training never had is tried.
        from_: the language of the texts, likewise; a model that learned several guesses that of each text, and says it.
        nbest: show this many translations of each line, each as line number, score and text, separated by tabs;
            the beam is widened if necessary, and one given may not be narrower.
        prefix: a file with a line for each text: what its translation begins with; empty lines prescribe nothing.
        alternatives: show up to this many other words for each word of a translation, each with the best rest behind
            it: below the translation, a line for each with word, other word, its probability and the whole text.
        reverse: the model folder of a translator of the reverse direction: the hypotheses of the beam, or the drawn
            translations, are ranked by its probability of the text, too. A wider --beam gives it more to choose from.
        guard: warn: say of each damaged translation on stderr what speaks against it (words left out, loops, copies, an
            unusual length, improbable words) and where, with --json in ``guard``; retry: search for these again, by a
            beam, then without repetitions, then by a coverage penalty, and keep the soundest (``tried``).
        json: one JSON object a line, with text, tokens (their numbers), pieces (the same as text, ▁ is a space), score
            and confidence (the geometric mean of the tokens' probabilities), ``words`` with theirs (where
            ``calibrated``, the probability that the word stands in a reference), and, where the model folder knows
            them, with the words that training never saw (``unseen``: word, begin and end in characters) and whether the
            model is ``unsure``: less confident than usual on the validation texts; the guessed ``source_language``; and
            with --mbr the expected ``utility``, 0 to 100.
    """
    from regard.tasks.text.output_options import refuse_outside

    refuse_outside(nbest, "--nbest")
    if alternatives is not None:
        refuse_outside(alternatives, "--alternatives")
        if search.sample or nbest > 1 or prefix or search.mbr or reverse:
            left_out = "--sample, --nbest, --prefix, --mbr and --reverse"
            raise UsageError(f"are those of the best translation; leave {left_out} out", "--alternatives")
    if search.mbr and reverse:
        raise UsageError("ranks by another score than --mbr; leave one out", "--reverse")
    wanted, begins = search.outputs(nbest, guard), ParallelLines.read("--prefix", prefix)
    searches = alternatives is None and not wanted.draws
    options: dict[str, object] = {"--to": to, "--from": from_, "--nbest": nbest, "--json": json, "--guard": guard}
    options |= {"--alternatives": alternatives, **search.about(searches)}
    files = find_files(given, document.format)
    if files:
        _refuse_of_documents({**options, "--prefix": prefix, "--reverse": reverse, "TEXT": texts}, wanted)
        options |= about(document)
        asked = replace(given, input=files[0].input, output=None)
    else:
        refuse_document(given.input, " of this kind, packed or not")
        asked = given
    with Exchange("translate", folder, texts, asked, options, begins) as exchange:
        from regard.tasks.kinds import translates
        from regard.tasks.model_path import is_same

        opened = exchange.open_model()
        assert translates(opened)
        task = search.apply(exchange, opened, searches)
        task = task.between(from_, to) if from_ or to else task
        if task.is_zero_shot:
            say(f"{' → '.join(task.direction)} was not among the directions of the training")
        if reverse:
            behind = exchange.open_beside("--reverse", reverse)
            assert translates(behind)
            if is_same(reverse, folder) and not task.assets.languages:
                raise UsageError("is the model itself, which has one direction; name that of the other", "--reverse")
            task = task.with_reverse(behind)
        if guard and not task.assets.calibration.guard:
            say("what is usual was not fitted to this model, so defaults warn; regard tune fits it")
        if files:
            translate_files(files, exchange, task, replace(wanted, scores=False), given, document)
            return
        wanted = replace(wanted, scores=json or nbest > 1 or exchange.given.by_hand)
        exchange.report.below = task.assets.doubted_below

        def values(one: Hypothesis) -> dict[str, object]:
            found = {**_values(task, one), "words": list(map(asdict, task.words(one)))}
            found["calibrated"] = bool(task.assets.calibration.words)
            found |= {"guard": one.guard.to_dict()} if one.guard else {}
            return found | ({"tried": list(map(asdict, one.tried))} if one.tried else {})

        def others(text: str, found: Sequence[Hypothesis]) -> list[WordAlternatives]:
            try:
                return task.alternatives(text, alternatives or 1, search.beam, found[0])
            except RegardError as error:
                say(f"no alternatives: {error}")
                return []

        def more(text: str, found: Sequence[Hypothesis]) -> dict[str, object]:
            known: dict[str, object] = {}
            if guess := task.guess_language(text):
                known = {"source_language": guess.language, "source_confidence": round(guess.confidence, 6)}
            return {**known, "alternatives": list(map(asdict, others(text, found)))} if alternatives else known

        def answer(lines: list[str], first: int) -> Iterator[str]:
            found = task.write(lines, wanted, first, begins.of(first, len(lines)))
            if json:
                return _objects(task, lines, found, values, "nbest" if nbest > 1 else None, more)
            exchange.report.warn(first, [best.guard.sentence if best.guard else "" for best, *_ in found])
            if not wanted.draws:
                best, guesses = [best for best, *_ in found], list(map(task.guess_language, lines))
                exchange.report.add(first, lines, task.unseen_words_batch(lines), best, guesses)
            shown = _lines(found, nbest, first, one_line)
            if not alternatives:
                return shown
            return chain.from_iterable(map(_with_alternatives, shown, map(others, lines, found)))

        exchange.answer(answer)


def _refuse_of_documents(options: Mapping[str, object], wanted: OutputOptions) -> None:
    """Refuse what lines of text have, but documents have not.

    Raises:
        UsageError: an option is of that kind.
    """
    for name in ("TEXT", "--json", "--nbest", "--alternatives", "--prefix"):
        if options[name] and (name != "--nbest" or options[name] != 1):
            raise UsageError("is for texts, a line each; a document has one translation; leave it out", name)
    if wanted.draws:
        raise UsageError(
            "draws, but a document is searched for; leave it out", "--sample" if wanted.sample else "--mbr"
        )


def ask(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    prefix: str | None = None,
    n: int = 1,
    search: WriterOptions = NO_WRITER_OPTIONS,
    json: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> None:
    """Give texts to a text-to-text model, a line out for each: arguments, the lines of a file, or those of stdin.

    The text begins with the prefix of its task, "sort: d a c b", or --prefix names it for all texts; a prefix that the
    model never learned gives a warning. Empty texts stay empty.

    Args:
        folder: the model folder.
        prefix: of the task, put before each text with a colon.
        n: outputs of each text, the best or drawn ones, each as line number, log-probability and text, separated by
            tabs; the beam is widened if necessary.
        json: one JSON object a line, with text, tokens (their numbers), pieces (the same as text, ▁ is a space),
            probability, score and confidence (the geometric mean of the tokens' probabilities), and, where the model
            folder knows them, with the words that training never saw (``unseen``: word, begin and end in characters)
            and whether the model is ``unsure``: less confident than usual on the validation texts; and with --mbr the
            expected ``utility``, 0 to 100.
    """
    from regard.tasks.text.output_options import refuse_outside

    refuse_outside(n, "--n")
    if search.beam is not None:
        refuse_outside(search.beam, "--beam")
        search = replace(search, beam=max(n, search.beam))
    wanted = search.outputs(n)
    options: dict[str, object] = {"--prefix": prefix, "--n": n, "--json": json, **search.about(not wanted.draws)}
    refuse_document(given.input)
    with Exchange("ask", folder, texts, given, options) as exchange:
        from regard.tasks.kinds import answers_text
        from regard.tasks.translation.text_to_text.corpus import with_prefix

        opened = exchange.open_model()
        assert answers_text(opened)
        task = search.apply(exchange, opened, not wanted.draws)
        wanted = replace(wanted, scores=json or n > 1 or exchange.given.by_hand)
        tells = not json and not wanted.draws  # of drawn outputs many are improbable
        exchange.report.below = task.assets.doubted_below

        def warn_once(lines: Iterator[str]) -> Iterator[str]:
            """The lines, and a warning before the first whose prefix the model never learned."""
            warned = False
            for line in lines:
                if not warned and line.strip() and (sentence := task.prefix_warning(line, prefix or "")):
                    say(f"warning: {sentence}")
                    warned = True
                yield line

        def values(one: Hypothesis) -> dict[str, object]:
            return {**_values(task, one), "probability": one.probability, "finished": one.finished}

        def answer(lines: list[str], first: int) -> Iterator[str]:
            whole = [with_prefix(line, prefix or "") if line.strip() else line for line in lines]
            found = task.write(whole, wanted, first)
            if json:
                return _objects(task, whole, found, values, "outputs" if n > 1 else None)
            if tells:
                exchange.report.add(first, whole, task.unseen_words_batch(whole), [best for best, *_ in found])
            return _lines(found, n, first, one_cell)

        exchange.answer(answer, warn_once)


def _with_alternatives(line: str, words: list[WordAlternatives]) -> Iterator[str]:
    """A translation, and a line for each other word."""
    yield line
    for one in words:
        for other in one.alternatives:
            yield f"  {one_cell(one.word)}\t{one_cell(other.word)}\t{other.probability:#.2g}\t{one_line(other.text)}"


def _values(task: TextModel, one: Hypothesis) -> dict[str, object]:
    """An output as plain values."""
    found = {"text": one_line(one.text), **piece_values(task, one.tokens)}
    found |= {"score": round(one.score, 6), "confidence": round(one.confidence, 6)}
    known = {"unsure": one.unsure, "utility": None if one.utility is None else round(one.utility, 4)}
    return found | {name: value for name, value in known.items() if value is not None}


def _objects(
    task: TextModel,
    texts: list[str],
    found: list[list[Hypothesis]],
    values: Callable[[Hypothesis], dict[str, object]],
    several: str | None,
    more: Callable[[str, list[Hypothesis]], dict[str, object]] = lambda text, written: {},
) -> Iterator[str]:
    """A JSON object for each text: the best that was written, all of it under a name, unseen words, and more."""
    for text, written in zip(texts, found, strict=True):
        each = [values(one) for one in written]
        nbest: dict[str, object] = {several: each} if several else {}
        yield json_line({**each[0], **nbest, **unseen_values(task, text), **more(text, written)})


def _lines(found: Sequence[Sequence[Hypothesis]], n: int, first: int, shown: Callable[[str], str]) -> Iterator[str]:
    """What was written for each text, a line each; of several the number of the text and the score before it."""
    for number, written in enumerate(found, first):
        for one in written:
            yield one_line(one.text) if n == 1 else f"{number}\t{one.score:.4f}\t{shown(one.text)}"


def generate(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Annotated[str, Parameter(name="PROMPT...", help=PROMPTS)],
    prompt: str | None = None,
    max_tokens: int = 256,
    n: int = 1,
    stop: list[str] | None = None,
    seed: int | None = None,
    drawing: SamplingOptions = NO_SAMPLING,
    with_: With = None,
    settings: Settings = None,
    json: bool = False,
    input: Annotated[Input, Parameter(help="a file that is the prompt, plain or gz, xz, zst; -: stdin.")] = None,
    output: Output = None,
    device: str | None = None,
    threads: int | None = None,
    precision: Precision = "auto",
) -> None:
    """Write on from prompts with a language model; what is written comes out as it is made, without the prompt.

    Args:
        folder: the model folder.
        prompt: the same as one argument.
        max_tokens: tokens to write at most.
        n: texts to write for each prompt; a line of --- stands between two.
        stop: end before this text; may be given several times.
        seed: another seed, another text; default: the recipe's.
        json: one JSON object for each text, with prompt, text, tokens (their numbers), pieces (the same as text),
            log-probability and what ended it.
        device: cpu, cuda ...
        threads: processor threads; the engine uses at most 8.
        precision: how the engine, which computes without torch, stores weights: fp32 (auto), bf16 or int8.
    """
    if n < 1:
        raise UsageError(f"{n} texts cannot be written; give 1 or more", "--n")
    if max_tokens < 1:
        raise UsageError(f"{max_tokens} tokens cannot be written; give 1 or more", "--max-tokens")
    if prompt is not None and (texts or input is not None):
        raise UsageError("a prompt is there already; give one of them", "--prompt")
    options: dict[str, Any] = {"max_tokens": max_tokens, "stop": tuple(stop or ()), "seed": seed, **drawing.values}
    given, about = TextOptions(input, output, device, threads, precision, 1), {"--n": n, "--json": json, **options}
    about["--set"] = settings
    with Exchange("generate", folder, texts, given, about) as exchange:
        from regard.tasks.kinds import continues_text

        opened = exchange.open_model()
        assert continues_text(opened)
        task = open_others(exchange, opened, with_)
        task = task.with_settings(settings) if settings else task
        prompts = _prompts(exchange.given) if prompt is None else [prompt]

        def objects(prompts: Sequence[str]) -> Iterator[str]:
            for one in prompts:
                unseen = unseen_values(task, one)
                for written in task.generate(one, n, **options):
                    pieces = piece_values(task, written.tokens)
                    yield json_line({"prompt": one, **asdict(written), **pieces, **unseen}) + "\n"

        def parts() -> Iterator[str]:
            """Parts of the texts as they are decoded, one text after another."""
            for place, (one, number) in enumerate(product(prompts, range(n))):
                if place:
                    yield BETWEEN
                yield from task.stream(one, number, **options)
            yield "\n"

        def content(prompts: list[str], first: int) -> bytes:
            """What is kept of prompts in a file: their objects, or one text."""
            if json:
                return "".join(objects(prompts)).encode("utf-8", "replace")
            between = "" if first == 1 else BETWEEN.removeprefix("\n")
            found = "".join(task.stream(prompts[0], (first - 1) % n, **options))
            return f"{between}{found}\n".encode("utf-8", "replace")

        if exchange.target.file is not None:
            asked = prompts if json else (one for one in prompts for _ in range(n))
            exchange.make(content, asked, lambda rest: ([one] for one in rest))
        else:
            with exchange.target.stream() as stream:
                for part in objects(prompts) if json else parts():
                    stream.write(part.encode("utf-8", "replace"))
                    stream.flush()


def _prompts(given: InputTexts) -> list[str]:
    """The arguments, or the whole file or stdin as one prompt."""
    if not given.arguments and given.path is None and sys.stdin.isatty():
        return [""]
    given.end = True
    lines, size = list[str](), 0
    for line in given.lines():
        lines.append(line)
        if (size := size + len(line)) > LONGEST:
            raise RegardError(f"is longer than {LONGEST:,} characters; a prompt stands in memory", given.name)
    given.tell_invalid()
    return lines if given.arguments else ["\n".join(lines)]
