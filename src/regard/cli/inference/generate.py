"""``regard generate``: continues prompts with a language model, streamed as it is decoded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.io.exchange import Exchange, Output, Precision, TextOptions
from regard.cli.io.input_texts import Input, InputTexts
from regard.cli.io.lines import json_line, piece_values, unseen_values
from regard.cli.io.sampling import NO_SAMPLING, SamplingOptions
from regard.cli.io.terminal import say_invalid_lines
from regard.system.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.tasks.language.generator import LanguageModel

LONGEST = 64 << 20
"""Most characters of a prompt."""
BETWEEN = "\n---\n"
"""The separator between two texts."""
PROMPTS = (
    "what stands before, each between quotes; each is written on as if it were alone. Behind -- if one begins with -. "
    "Default: all of --input, or of stdin, but its last line feed; nothing on a terminal."
)


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
    json: bool = False,
    input: Annotated[Input, Parameter(help="a file that is the prompt, plain or gz, xz, zst; -: stdin.")] = None,
    output: Output = None,
    device: str | None = None,
    threads: int | None = None,
    precision: Precision = "auto",
) -> int:
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
    options = {"max_tokens": max_tokens, "stop": tuple(stop or ()), "seed": seed, **drawing.values}
    given, about = TextOptions(input, output, device, threads, precision, 1), {"--n": n, "--json": json, **options}
    with Exchange("generate", folder, texts, given, about) as exchange:
        from regard.tasks.kinds import continues_text

        task = exchange.open_model()
        assert continues_text(task)
        prompts = _prompts(exchange.given) if prompt is None else [prompt]
        if exchange.target.file is not None:
            _write_file(exchange, task, prompts, n, options, json)
            return 0
        with exchange.target.stream() as stream:
            for part in _objects(task, prompts, n, options) if json else _texts(task, prompts, n, options):
                stream.write(part.encode("utf-8", "replace"))
                stream.flush()
    return 0


def _prompts(given: InputTexts) -> list[str]:
    """The arguments, or the whole file or stdin as one prompt."""
    if not given.arguments and given.path is None and sys.stdin.isatty():
        return [""]
    from regard.text.lines import InvalidLines

    notes = InvalidLines()
    given.end = True
    lines, size = list[str](), 0
    for line in given.lines(notes):
        lines.append(line)
        if (size := size + len(line)) > LONGEST:
            raise RegardError(f"is longer than {LONGEST:,} characters; a prompt stands in memory", given.name)
    say_invalid_lines(given.name, notes)
    return lines if given.arguments else ["\n".join(lines)]


def _write_file(
    exchange: Exchange, task: LanguageModel, prompts: Sequence[str], n: int, options: dict[str, Any], json: bool
) -> None:
    """Write to a file: text by text, or as JSON prompt by prompt."""

    def objects(prompts: list[str], first: int) -> bytes:
        return "".join(_objects(task, prompts, n, options)).encode("utf-8", "replace")

    def text(prompts: list[str], first: int) -> bytes:
        between = "" if first == 1 else BETWEEN.removeprefix("\n")
        found = "".join(task.stream(prompts[0], (first - 1) % n, **options))
        return f"{between}{found}\n".encode("utf-8", "replace")

    asked = prompts if json else (prompt for prompt in prompts for _ in range(n))
    exchange.make(objects if json else text, asked, lambda rest: ([prompt] for prompt in rest))


def _texts(task: LanguageModel, prompts: Sequence[str], n: int, options: dict[str, Any]) -> Iterator[str]:
    """Parts of the texts as they are decoded, one text after another."""
    for place, (prompt, number) in enumerate(product(prompts, range(n))):
        if place:
            yield BETWEEN
        yield from task.stream(prompt, number, **options)
    yield "\n"


def _objects(task: LanguageModel, prompts: Sequence[str], n: int, options: dict[str, Any]) -> Iterator[str]:
    for prompt in prompts:
        unseen = unseen_values(task, prompt)
        for written in task.generate(prompt, n, **options):
            pieces = piece_values(task, written.tokens)
            yield json_line({"prompt": prompt, **asdict(written), **pieces, **unseen}) + "\n"
