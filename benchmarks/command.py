"""What all benchmarks' command lines share: whole numbers as options, and one sentence for whatever goes wrong."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from regard.system import disk
from regard.system.errors import RegardError


def run(main: Callable[[], None]) -> None:
    """Run a benchmark; what the user can mend is a sentence on stderr and an exit code, as with ``regard``.

    ``REGARD_DEBUG=1`` adds where it came from.
    """
    try:
        main()
    except RegardError as error:
        _end(str(error), error.exit_code)
    except OSError as error:
        _end(disk.fault_of(error), 1)
    except json.JSONDecodeError as error:
        _end(f"a file is no JSON: {error}", 1)


def whole_number(text: str) -> int:
    """An option that is a whole number, 0 or more, as a seed is."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number from 0, not {text}")
    return int(text)


def positive_number(text: str) -> int:
    """An option that is a whole number, 1 or more, as steps are."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, not {text}")
    return int(text)


def data_file(path: Path) -> Path:
    """A file of a data set, which must be there.

    Raises:
        RegardError: it is not, or is no file.
    """
    try:
        disk.refuse_irregular(path)
    except RegardError as error:
        raise RegardError(
            f"{error.message}; benchmarks read data below REGARD_DATA; set that variable", error.where
        ) from None
    return path


def _end(sentence: str, code: int) -> None:
    if os.environ.get("REGARD_DEBUG"):
        traceback.print_exc()
    print(" ".join(sentence.split("\n")), file=sys.stderr)
    sys.exit(code)
