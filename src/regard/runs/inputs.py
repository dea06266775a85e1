"""What a person gave to a run, as its card names it: files without their folders, and the shell line of the command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from regard.system.errors import UsageError

OPTIONS = {"start_from": "from", "settings": "set", "weights": "weight"}
"""Names of arguments that are others on the command line."""
PLACES = (
    *("source", "target", "train", "valid", "valid_source", "valid_target", "pairs", "test_source", "test_target"),
    *("recipe", "start_from", "output"),
)
"""Arguments that name files or folders."""
LONGEST = 200
"""Characters of a licence."""


def shell_line(command: str, options: Mapping[str, object], words: Iterable[Path | str] = ()) -> str:
    """The shell line of a call, files without their folders; a recipe given as values is that of the model folder.

    Args:
        command: its name.
        options: by the names of the function's arguments; those that are ``None``, false or empty are left out.
        words: files before the options.
    """
    parts = ["regard", command, *map(name_of, words)]
    for name, given in options.items():
        option = f"--{OPTIONS.get(name, name).replace('_', '-')}"
        if isinstance(given, Mapping):
            parts += [option, f"{name}.toml"] if given else []
        elif given is True:
            parts.append(option)
        elif given is not None and given is not False:
            several = [given] if isinstance(given, str | Path | int | float) else list(given)  # type: ignore[call-overload]
            for value in several:
                parts += [option, _word(name, value)]
    return shlex.join(parts)


def _word(name: str, value: object) -> str:
    if name in PLACES:
        return name_of(str(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def name_of(path: Path | str) -> str:
    """The name of a file or folder, without those above it."""
    return Path(path).name or Path(os.path.abspath(path)).name


def named_files(*groups: Sequence[Path | str] | Path | str | None) -> tuple[tuple[str, Path], ...]:
    """Files by their names, each once, in order."""
    several = [[group] if isinstance(group, Path | str) else list(group or ()) for group in groups]
    return tuple((name_of(path), path) for path in dict.fromkeys(Path(path) for group in several for path in group))


def check_licence(licence: str | None) -> None:
    """Raise a UsageError for a licence that is not a short text on one line."""
    if licence is not None and not (licence.strip() and licence.isprintable() and len(licence) <= LONGEST):
        message = f"is to be one line of at most {LONGEST} characters, such as 'CC BY 4.0'"
        raise UsageError(message, "--licence")
