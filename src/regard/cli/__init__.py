"""The command line: parsing, error messages and exit codes; torch is imported only inside commands."""

from __future__ import annotations

import contextlib
import inspect
import os
import platform
import re
import sys
import warnings
from collections.abc import Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Literal, get_args

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError, UnusedCliTokensError

from regard import __version__
from regard.cli.io.input_texts import refuse_file_names
from regard.cli.io.terminal import say
from regard.system import disk
from regard.system.errors import Option, RegardError, UsageError
from regard.system.installation import missing, refuse_mixture, version_of
from regard.system.interrupts import TRAININGS, asked_code, forget_asked

EXAMPLES: dict[str, tuple[str, ...]] = {
    "train": (
        "regard train --source train.en --target train.de --output model",
        "regard train --task classification --train labelled.csv --output model",
        "regard train --task language-model --train book.txt --minutes 10 --output m",
    ),
    "translate": (
        'regard translate model "A man sleeps." "Two dogs run."',
        "regard translate model --input in.txt.gz --output out.txt",
        "regard translate model --input report.docx --output bericht.docx",
        "regard translate model --beam 5 --nbest 3 < in.txt",
        "regard translate model --terms terms.tsv --protect < in.txt",
    ),
    "ask": (
        'regard ask model "sort: d a c b"',
        "regard ask model --prefix sort --input in.txt --output out.txt",
        "regard ask model --sample --n 3 --temperature 0.8 < in.txt",
    ),
    "classify": (
        'regard classify model "What a day!" "Never again."',
        "regard classify model --input texts.txt --output labels.tsv",
        "regard classify model --all < texts.txt",
    ),
    "tag": (
        'regard tag model "Ada was born in London."',
        "regard tag model --input texts.txt --output tagged.conll",
        "regard tag model --json < texts.txt",
    ),
    "generate": (
        'regard generate model "Once upon a time" --temperature 0.8',
        "regard generate model --input begun.txt --n 20 --output texts.txt",
        "regard generate model < begun.txt",
    ),
    "fill": (
        'regard fill model "The [MASK] sleeps." -k 3',
        "regard fill model --input gaps.txt --output guesses.tsv",
        "regard fill model --json < gaps.txt",
    ),
    "encode": (
        'regard encode model "A man sleeps."',
        "regard encode model --input texts.txt --output vectors.jsonl",
        "regard encode model --each token --output vectors.npz < texts.txt",
    ),
    "score": (
        "regard score model --input source.txt --target target.txt",
        'regard score lm "A man sleeps." "A man sleep."',
    ),
    "align": (
        "regard align model --input source.txt --target target.txt",
        "regard align model --input source.txt --target target.txt --tune",
    ),
    "evaluate": ("regard evaluate model --source test.en --reference test.de", "regard evaluate model --test test.csv"),
    "compare": ("regard compare *.toml --source a.en --target a.de --minutes 5 --output new",),
    "check": (
        "regard check --source train.en --target train.de",
        "regard check --task classification --train labelled.csv --test test.csv",
    ),
    "attend": (
        'regard attend model "The cat sleeps because it is tired." --token it',
        'regard attend model "The cat sleeps." --layer 2 --head 1 --svg cat.svg',
        "regard attend model images.csv --image 3",
    ),
    "explore": ("regard explore", "regard explore model", "regard explore model --save site"),
    "info": ("regard info model", "regard info base"),
    "average": ("regard average model --last 3 --output averaged",),
    "import": ("regard import all-MiniLM-L6-v2 minilm",),
    "export": ("regard export model elsewhere", "regard export model elsewhere --to ctranslate2"),
    "merge": ("regard merge adapter merged",),
    "pack": ("regard pack model", "regard pack model --source val.en --reference val.de"),
    "tune": ("regard tune model", "regard tune model --source val.en --reference val.de --dry-run"),
    "terms": ("regard terms model", "regard terms model --add terms.tsv", 'regard terms model --remove "hot dog"'),
    "slim": ("regard slim model --dry-run", "regard slim model"),
    "serve": ("regard serve model", "regard serve en-de de-en --port 5000", "regard serve en-de --check"),
    "keys": ("regard keys make weblate", "regard keys make anna --characters 500000", "regard keys list"),
    "demo": ("regard demo --output demo", "regard demo --without scale", "regard demo --images --output digits"),
}
"""The commands in the order of the help page, each with shell lines that show it."""
MODULES = {
    **dict.fromkeys(("average", "import", "export", "merge", "pack", "slim", "tune", "terms"), "model_folders"),
    **dict.fromkeys(("translate", "ask", "generate"), "generation"),
    **dict.fromkeys(("classify", "tag", "fill"), "prediction"),
    **dict.fromkeys(("score", "align"), "pairs"),
    **dict.fromkeys(("serve", "keys"), "server"),
}
"""The modules of commands that have none of their own name."""
OF_TEXTS = ("translate", "ask", "classify", "tag", "generate", "fill", "encode", "attend", "score", "align")
"""Commands that take texts as arguments."""
BEGIN = ("regard demo", "regard train --source train.en --target train.de --output model")
"""First steps for new users."""
NO_MEMORY = "there is not enough memory; a smaller batch (training.tokens, decoding.tokens) or model needs less"
"""Message for trainings."""
NO_NEGATIVES = Parameter(  # no --no-json, no --empty-source; and that a flag is not set goes without saying
    negative=(), show_default=lambda value: None if value in (None, False, inspect.Parameter.empty) else str(value)
)
LIBRARIES = ("torch", "tokenizers", "safetensors", "numpy", "sacrebleu")
"""Libraries whose version changes what a run computes or reads."""
_FRACTION = re.compile(r"[+-]?\d*\.\d+")
Shell = Literal["bash", "zsh", "fish"]
STARTUP: dict[Shell, str] = {"bash": "~/.bashrc", "zsh": "~/.zshrc"}
"""Files that load the completion; fish finds it by itself."""


def epilogue(lines: tuple[str, ...], word: str) -> str:
    """The end of a help page in Markdown: shell commands, verbatim."""
    return "\n".join([f"{word}:", "", *(f"    {line}" for line in lines)])


def versions() -> str:
    """Versions of Regard, Python and :data:`LIBRARIES`, and the instruction set of the kernels, a line each."""
    from regard.system import kernels

    found = {"regard": __version__, "Python": platform.python_version()}
    found |= {name: version_of(name) for name in LIBRARIES} | {"kernels": kernels.in_use()}
    return "\n".join(f"{name} {one}" for name, one in found.items())


app = App(
    name="regard",
    help="Regard trains, runs and shows attention models.",
    version=versions,
    version_format="plaintext",
    default_parameter=NO_NEGATIVES,
    help_epilogue=epilogue(BEGIN, "To begin"),
)
for _order, _name in enumerate(EXAMPLES):
    _function = f"{_name}{'_' * iskeyword(_name)}"
    _path = f"regard.cli.{MODULES.get(_name, _name)}:{_function}"  # imported when it is used, or help asked for
    app.command(_path, name=_name, sort_key=_order, help_epilogue=epilogue(EXAMPLES[_name], "For example"))


@app.command(
    name="--install-completion",
    group="Shell",
    help_epilogue=epilogue(("regard --install-completion", "regard --install-completion --shell zsh"), "For example"),
)
def install_completion(*, shell: Shell | None = None, output: Path | None = None) -> None:
    """Let the shell complete commands, options, choices and paths when Tab is pressed.

    Args:
        shell: which one; default: that of this terminal.
        output: where the script goes, instead of the shell's own folder; then the shell's startup file is left
            as it is.
    """
    if shell is None:
        from cyclopts.completion import detect_shell
        from cyclopts.completion.detect import ShellDetectionError

        try:
            found = detect_shell()
        except ShellDetectionError:
            raise UsageError("the shell is not known; name it: bash, zsh or fish", "--shell") from None
        if found == "powershell":
            raise UsageError("PowerShell is not supported; name another: bash, zsh or fish", "--shell")
        shell = found
    path = app.install_completion(shell=shell, output=output, add_to_startup=output is None)
    say(f"wrote {path}")
    if output is None:
        say(f"{STARTUP.get(shell, 'fish')} loads it; open a new shell, or run: exec {shell}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code: 0 done, 1 error, 2 usage, 3 no valid checkpoint, 75 stopped, 76 diverged.

    Whatever goes wrong is one sentence on stderr; ``REGARD_DEBUG=1`` adds where it came from.
    """
    if sys.stderr is None:  # closed
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="replace")  # characters that the terminal lacks
    forget_asked()
    Option.dashes = True
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stdin is None or sys.stdout is None:
        return _print_error(f"{'stdin' if sys.stdin is None else 'stdout'} is closed; redirect it to or from a file", 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *where, **more: say(f"warning: {message}")
            refuse_mixture(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
            code = _run(words)
        with disk.naming("stdout"):
            sys.stdout.flush()
        return code
    except RegardError as error:
        return _print_error(str(error), error.exit_code)
    except BrokenPipeError:
        return 0  # as with ``| head``: no error
    except KeyboardInterrupt:
        return 130
    except MemoryError:
        return _print_error(_memory_message(words), 1)
    except OSError as error:
        return _print_error(disk.fault_of(error), 1)
    except Exception as error:
        if isinstance(error, ImportError) and (sentence := missing(error)):
            return _print_error(str(sentence), sentence.exit_code)
        if "allocate memory" in str(error) or "out of memory" in str(error):  # torch's, which is no MemoryError
            return _print_error(_memory_message(words), 1)
        if isinstance(error, ImportError) and isinstance(error.__cause__, Exception):  # of a command's module
            error = error.__cause__
        _print_error(f"unexpected error: {type(error).__name__}: {error}", 1)
        return _print_error("REGARD_DEBUG=1 shows where; please report it", 1)
    finally:
        Option.dashes = False
        _discard_unwritable_output()


def _memory_message(words: list[str]) -> str:
    """Message for an out-of-memory error: what needs the memory, and what needs less."""
    if words[:1] == [] or words[0] in TRAININGS:
        return NO_MEMORY
    files = ", ".join(word for word in words[1:] if os.path.exists(word))
    less = "; shorter texts or a narrower beam need less" if words[0] in OF_TEXTS else ""
    return f"there is not enough memory for regard {words[0]}{f' of {files}' if files else ''}{less}"


def _run(argv: list[str]) -> int:
    """Parse and run, and give the exit code, 0 of a command without one; errors of cyclopts are rephrased."""
    _check_options(argv)
    if not argv or argv[0] not in (*EXAMPLES, "--version"):  # the help page has the first line of every command's
        for name in EXAMPLES:
            _ = app[name]
    try:
        command, bound, _ = app.parse_args(_join_dashes(argv), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise UsageError(_error_message(error, argv)) from None
    texts = bound.arguments.get("texts", ())
    behind = len(argv) - argv.index("--") - 1 if "--" in argv else 0
    refuse_file_names(texts[: max(len(texts) - behind, 0)])
    if len(texts) > 2 and not behind and all(text.strip(".,;:!?").isalpha() for text in texts):
        say(f"{len(texts)} texts, a word each; put quotes around a text of several words")
    code = command(*bound.args, **bound.kwargs)
    return code if isinstance(code, int) else 0


def _check_options(argv: list[str]) -> None:
    """Report an unknown command or option before any other error.

    Raises:
        UsageError: with the nearest known one.
    """
    if not argv or argv[0].startswith("-"):
        return
    from regard.config import did_you_mean, known_keys, nearest

    commands = [name for name in app if not name.startswith("-")]
    if argv[0] not in commands:
        hint = nearest(argv[0], [*commands, "--help", "--version"])
        raise UsageError(f"unknown command {argv[0]!r}.{hint} Known: {', '.join(commands)}")
    arguments = app[argv[0]].assemble_argument_collection(default_parameter=NO_NEGATIVES)
    known = [name for argument in arguments for name in argument.names]
    kinds = {name: [argument.hint, *get_args(argument.hint)] for argument in arguments for name in argument.names}
    for place, word in enumerate(argv[1:], 1):
        name, written, value = word.partition("=")
        if word == "--":
            return
        number = value if written else "".join(argv[place + 1 : place + 2])
        takes_whole = int in kinds.get(name, ()) and float not in kinds[name]
        if takes_whole and _FRACTION.fullmatch(number) and not float(number).is_integer():
            raise UsageError(f"must be a whole number, not {number}", name)  # the option library would round it
        if name.startswith("--") and any(letter.isspace() for letter in name) and argv[0] in OF_TEXTS:
            raise UsageError(_option_message(argv[0], word))
        if word.startswith("--") and name not in [*known, "--help", "--version"]:
            keys = [key for key in known_keys() if argv[0] != "translate" or key.startswith("decoding.")]
            key = did_you_mean(name, keys) if "--set" in known else None
            other = f" Did you mean --set {key}=VALUE?" if key else f" See regard {argv[0]} --help."
            raise UsageError(f"unknown option {name!r}.{nearest(name, known) or other}")


def _option_message(command: str, word: str) -> str:
    """Message for a word that starts with a dash but is no option; it may be a text."""
    if word == "-" and command != "attend":
        return "stdin is read where there are no texts, or by --input -"
    return f"there is no option {word!r}; put a text that begins with - after --. See regard {command} --help."


def _join_dashes(argv: list[str]) -> list[str]:
    """Rewrite ``--input -`` as ``--input=-``; otherwise a lone dash would parse as an option without a name."""
    end = argv.index("--") if "--" in argv else len(argv)
    words = argv[:end]
    for place in range(len(words) - 1, 0, -1):
        if words[place] == "-" and words[place - 1] in ("--input", "--output"):
            words[place - 1 : place + 1] = [f"{words[place - 1]}=-"]
    return words + argv[end:]


def _error_message(error: CycloptsError, argv: list[str]) -> str:
    if isinstance(error, UnusedCliTokensError):
        words = list(error.unused_tokens or ())
        unquoted = argv[0] == "attend" and not any(" " in word for word in argv[2 : argv.index(words[0]) + len(words)])
        hint = "; a text of several words goes between quotes" if unquoted else ""
        return f"there is no place for {' '.join(map(repr, words))}{hint}"
    if isinstance(error, UnknownOptionError) and argv[0] in OF_TEXTS:
        return _option_message(argv[0], error.token.keyword or error.token.value)
    text = " ".join(str(error).split()).replace('"', "'")
    return text[:1].lower() + text[1:]


def _print_error(sentence: str, code: int) -> int:
    if os.environ.get("REGARD_DEBUG"):
        import traceback

        traceback.print_exc()
    if (asked := asked_code()) is not None:  # what a library made of it
        return asked
    say(" ".join(sentence.split("\n")))
    return code


def _discard_unwritable_output() -> None:
    """Where stdout takes nothing more, drop what is left for it: Python would write it at exit, and complain."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
