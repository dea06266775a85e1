"""A disk that has no room for one of the files that are written: it can be opened, and takes nothing."""

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch


class Full(io.FileIO):
    """A file on a full disk: the error names nothing, as the system's own."""

    def write(self, content: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def no_room_for(number: int) -> Iterator[list[Path]]:
    """Within, there is no room for one of the files that are opened to be written, counted from 0; gives them all."""
    opened: list[Path] = []
    real = io.open

    def stand_in(path: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if mode != "wb":
            return real(path, mode, *rest, **more)
        opened.append(Path(path))
        return io.BufferedWriter(Full(path, "wb")) if len(opened) == number + 1 else real(path, mode, *rest, **more)

    with patch.object(io, "open", stand_in):
        yield opened


def named_when_full(write: Callable[[], Any]) -> list[str]:
    """The file that the error names for each file that is written, where there is no room for that one.

    Args:
        write: writes them, anew each time.
    """
    names: list[str] = []
    while True:
        fault = None
        with no_room_for(len(names)) as opened:
            try:
                write()
            except OSError as error:
                fault = error
        if fault is None:
            assert len(opened) == len(names)
            return names
        assert fault.errno == errno.ENOSPC
        names.append(Path(fault.filename).name if fault.filename else f"nothing, instead of {opened[len(names)]}")
