"""Output targets: stdout, a pipe or device, or a file written atomically."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

from cyclopts import Parameter

from regard.cli.io.input_texts import InputTexts
from regard.cli.io.load_model import refuse_unwritable
from regard.system import disk
from regard.system.errors import RegardError, UsageError

Output = Annotated[
    Path | None,
    Parameter(
        help="write to this file instead of stdout. It is whole or not there; what was stopped or killed resumes "
        "by the same command."
    ),
]
"""An option that names a file of results."""
STDOUT = Path("-")
"""The name of stdout in place of a file."""
DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
NAMED = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


class OutputFile:
    """The destination of results.

    Args:
        output: a file, pipe or device; stdout where none is named, or ``-``.
        given: the input texts.

    Raises:
        UsageError: it cannot be written, or is also the input.
    """

    def __init__(self, output: Path | None, given: InputTexts) -> None:
        self.path = None if output is None or output == STDOUT else output
        self.file: Path | None = None
        """The path of a regular file; ``None`` if results are streamed."""
        if self.path is None:
            return
        refuse_unwritable(self.path, "--output")
        if descriptor(self.path) is None and (self.path.is_file() or not self.path.exists()):
            self.file = self.path.resolve()
            self._refuse_input(given)

    def _refuse_input(self, given: InputTexts) -> None:
        assert self.file is not None
        read = given.stat
        for path in (self.file.with_name(self.file.name + end) for end in ("", ".partial", ".partial.log")):
            if read is not None and path.exists() and os.path.samestat(read, path.stat()):
                raise UsageError("is the input itself; choose another --output", str(self.path))

    @contextlib.contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """Open the destination for streaming.

        Raises:
            RegardError: it cannot be written; with its name.
        """
        number = 1 if self.path is None else descriptor(self.path)
        if self.path is None or number == 1:
            with disk.naming("stdout"):
                yield sys.stdout.buffer
            return
        try:
            with open(self.path if number is None else os.dup(number), "wb") as file:
                yield file
        except BrokenPipeError:
            raise
        except OSError as error:
            raise RegardError(f"cannot be written: {error.strerror or error}", str(self.path)) from None


def descriptor(path: Path) -> int | None:
    """The descriptor that a path such as ``/dev/stdout`` stands for."""
    found = DESCRIPTOR.fullmatch(str(path))
    return int(found[1]) if found else NAMED.get(str(path))
