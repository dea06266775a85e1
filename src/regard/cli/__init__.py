"""The commands; torch is imported only inside them."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Sequence

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError, UnusedCliTokensError

from regard import __version__, disk
from regard.cli.attend import attend
from regard.cli.average import average
from regard.cli.check import check
from regard.cli.classify import classify
from regard.cli.compare import compare
from regard.cli.convert import export, import_
from regard.cli.demo import demo
from regard.cli.encode import encode
from regard.cli.evaluate import evaluate
from regard.cli.examples import BEGIN, EXAMPLES, epilogue
from regard.cli.explore import explore
from regard.cli.fill import fill
from regard.cli.generate import generate
from regard.cli.given import refuse_files
from regard.cli.info import info
from regard.cli.tag import tag
from regard.cli.terminal import say
from regard.cli.train import train
from regard.cli.translate import translate
from regard.errors import RegardError, UsageError
from regard.interrupts import TRAININGS

NO_MEMORY = "there is not enough memory; a smaller batch (training.tokens, decoding.tokens) or model needs less"
"""What is said of trainings."""
NO_NEGATIVES = Parameter(  # no --no-json, no --empty-source; and that a flag is not set goes without saying
    negative=(), show_default=lambda value: None if value in (None, False, inspect.Parameter.empty) else str(value)
)
app = App(
    name="regard",
    help="Regard trains, runs and shows attention models.",
    version=__version__,
    default_parameter=NO_NEGATIVES,
    help_epilogue=epilogue(BEGIN, "To begin"),
)
COMMANDS: tuple[Callable[..., int], ...] = (
    train,
    translate,
    classify,
    tag,
    generate,
    fill,
    encode,
    evaluate,
    compare,
    check,
    attend,
    explore,
    info,
    average,
    import_,
    export,
    demo,
)
OF_TEXTS = tuple(
    command.__name__ for command in COMMANDS if {"text", "texts"} & inspect.signature(command).parameters.keys()
)
"""Commands to which texts are given as arguments."""
for _place, _command in enumerate(COMMANDS):
    _name = _command.__name__.rstrip("_")
    app.command(_command, sort_key=_place, help_epilogue=epilogue(EXAMPLES[_name], "For example"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code: 0 done, 1 error, 2 usage, 3 no valid checkpoint, 75 stopped, 76 diverged.

    Whatever goes wrong is one sentence on stderr; ``REGARD_DEBUG=1`` adds where it came from.
    """
    _never_fail_to_print()
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stdin is None or sys.stdout is None:
        return _told(f"{'stdin' if sys.stdin is None else 'stdout'} is closed; redirect it to or from a file", 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _warned
            code = _run(words)
        with disk.naming("stdout"):
            sys.stdout.flush()
        return code
    except RegardError as error:
        return _told(str(error), error.exit_code)
    except BrokenPipeError:
        return _reader_left()
    except KeyboardInterrupt:
        return 130
    except MemoryError:
        return _told(_no_memory(words), 1)
    except OSError as error:
        return _told(disk.fault_of(error), 1)
    except Exception as error:
        if "allocate memory" in str(error) or "out of memory" in str(error):  # torch's, which is no MemoryError
            return _told(_no_memory(words), 1)
        _told(f"this should not happen: {type(error).__name__}: {error}", 1)
        return _told("REGARD_DEBUG=1 shows where; please report it", 1)


def _no_memory(words: list[str]) -> str:
    """What is said where there is not enough memory: what needs it, and what needs less."""
    if words[:1] == [] or words[0] in TRAININGS:
        return NO_MEMORY
    files = ", ".join(word for word in words[1:] if os.path.exists(word))
    less = "; shorter texts or a narrower beam need less" if words[0] in OF_TEXTS else ""
    return f"there is not enough memory for regard {words[0]}{f' of {files}' if files else ''}{less}"


def _run(argv: list[str]) -> int:
    """Parse and run; what cyclopts finds wrong becomes a sentence of ours."""
    _know_every_option(argv)
    try:
        command, bound, _ = app.parse_args(_joined(argv), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise UsageError(_sentence(error, argv)) from None
    texts = bound.arguments.get("texts", ())
    behind = len(argv) - argv.index("--") - 1 if "--" in argv else 0
    refuse_files(texts[: max(len(texts) - behind, 0)])
    if len(texts) > 2 and not behind and all(text.strip(".,;:!?").isalpha() for text in texts):
        from regard.cli.terminal import say

        say(f"{len(texts)} texts, a word each; put quotes around a text of several words")
    code = command(*bound.args, **bound.kwargs)
    return code if isinstance(code, int) else 0


def _know_every_option(argv: list[str]) -> None:
    """Name an unknown command or option before anything else is complained about.

    Raises:
        UsageError: with the nearest known one.
    """
    if not argv or argv[0].startswith("-"):
        return
    from regard.config import nearest

    commands = [name for name in app if not name.startswith("-")]
    if argv[0] not in commands:
        hint = nearest(argv[0], [*commands, "--help", "--version"])
        raise UsageError(f"unknown command {argv[0]!r}.{hint} Known: {', '.join(commands)}")
    known = [
        name
        for argument in app[argv[0]].assemble_argument_collection(default_parameter=NO_NEGATIVES)
        for name in argument.names
    ]
    for word in argv[1:]:
        name = word.partition("=")[0]
        if word == "--":
            return
        if name.startswith("--") and any(letter.isspace() for letter in name) and argv[0] in OF_TEXTS:
            raise UsageError(_no_option(argv[0], word))
        if word.startswith("--") and name not in [*known, "--help", "--version"]:
            hint = nearest(name, known) or _key(name, known) or f" See regard {argv[0]} --help."
            raise UsageError(f"unknown option {name!r}.{hint}")


def _key(name: str, options: list[str]) -> str:
    """Which key of the recipe an unknown option may mean, where a command takes these."""
    from regard.config import known_keys, meant

    found = meant(name, known_keys()) if "--set" in options else None
    return f" Did you mean --set {found}=VALUE?" if found else ""


def _no_option(command: str, word: str) -> str:
    """What is said of a word with a dash before it that is no option, where it may be a text."""
    if word == "-" and command != "attend":
        return "stdin is read where there are no texts, or by --input -"
    return f"there is no option {word!r}; a text that begins with - goes behind --. See regard {command} --help."


def _joined(argv: list[str]) -> list[str]:
    """``--input -`` as ``--input=-``: alone a dash would be taken for an option without a name."""
    end = argv.index("--") if "--" in argv else len(argv)
    words = argv[:end]
    for place in range(len(words) - 1, 0, -1):
        if words[place] == "-" and words[place - 1] in ("--input", "--output"):
            words[place - 1 : place + 1] = [f"{words[place - 1]}=-"]
    return words + argv[end:]


def _sentence(error: CycloptsError, argv: list[str]) -> str:
    if isinstance(error, UnusedCliTokensError):
        words = list(error.unused_tokens or ())
        unquoted = argv[0] == "attend" and not any(" " in word for word in argv[2 : argv.index(words[0]) + len(words)])
        hint = "; a text of several words goes between quotes" if unquoted else ""
        return f"there is no place for {' '.join(map(repr, words))}{hint}"
    if isinstance(error, UnknownOptionError) and argv[0] in OF_TEXTS:
        return _no_option(argv[0], error.token.keyword or error.token.value)
    text = " ".join(str(error).split()).replace('"', "'")
    return text[:1].lower() + text[1:]


def _told(sentence: str, code: int) -> int:
    if os.environ.get("REGARD_DEBUG"):
        import traceback

        traceback.print_exc()
    say(" ".join(sentence.split("\n")))
    return code


def _warned(message: Warning | str, *where: object, **more: object) -> None:
    say(f"warning: {message}")


def _reader_left() -> int:
    """Nobody reads stdout any more, as with ``| head``: no fault, and nothing may complain at exit either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 0


def _never_fail_to_print() -> None:
    """A terminal that lacks a character shows a substitute instead of ending the command; a closed stderr is nobody."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="replace")
