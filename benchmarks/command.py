"""What all benchmarks' command lines share: whole numbers as options, and one sentence for whatever goes wrong."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from regard.system import disk
from regard.system.errors import RegardError

HERE = Path(__file__).resolve().parent
WORK = HERE.parent / ".bench"
"""Where environments, models and scratch files are made."""


def parser(doc: str | None, benchmark: str, work: Path | None = None) -> argparse.ArgumentParser:
    """A command line that says where results go, and where models are made if they are."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--results", type=Path, default=HERE / "results" / f"{benchmark}.jsonl", help="appended to")
    if work:
        made.add_argument("--work", type=Path, default=work, help="folder of models and scratch files")
    return made


def run(main: Callable[[], int | None]) -> None:
    """Run a benchmark; what the user can mend is a sentence on stderr and an exit code, as with ``regard``.

    ``REGARD_DEBUG=1`` adds where it came from.
    """
    try:
        if code := main():
            sys.exit(code)
    except RegardError as error:
        _end(str(error), error.exit_code)
    except OSError as error:
        _end(disk.fault_of(error), 1)
    except json.JSONDecodeError as error:
        _end(f"a file is no JSON: {error}", 1)


def whole_number(text: str, least: int = 0) -> int:
    """An option that is a whole number, 0 or more, as a seed is."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number from {least}, not {text}")
    return int(text)


positive_number = partial(whole_number, least=1)
"""An option that is a whole number, 1 or more, as steps are."""


def data_file(path: Path) -> Path:
    """A file of a data set, which must be there.

    Raises:
        RegardError: it is not, or is no file.
    """
    try:
        disk.refuse_irregular(path)
    except RegardError as error:
        told = f"{error.message}; benchmarks read data below REGARD_DATA; set that variable"
        raise RegardError(told, error.where) from None
    return path


def _end(sentence: str, code: int) -> None:
    if os.environ.get("REGARD_DEBUG"):
        traceback.print_exc()
    print(" ".join(sentence.split("\n")), file=sys.stderr)
    sys.exit(code)
