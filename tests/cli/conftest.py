"""Runs the command line in this process: arguments in; exit code, stdout and stderr out."""

import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from regard.cli import main


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """What the command said of its failure."""
        return self.err.splitlines()[-1]

    def succeeds(self) -> "Done":
        """It ended with 0; itself."""
        assert self.code == 0, self.err
        return self

    def refuses(self, said: str, code: int = 2) -> None:
        """It ended with this code, and all it wrote is one line on stderr that holds these words."""
        assert (self.code, self.out) == (code, "")
        assert said in self.err
        assert self.err.startswith("regard: ")
        assert len(self.err.splitlines()) == 1
        assert "Traceback" not in self.err


Run = Callable[..., Done]


@pytest.fixture
def regard(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("REGARD_DEBUG", raising=False)

    def run(*argv: object, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(word) for word in argv])
        out, err = capsysbinary.readouterr()
        return Done(code, out.decode(), err.decode())

    return run


@contextmanager
def reading(pipe: str) -> Iterator[list[bytes]]:
    """A new named pipe and what has been read from it, all of it after the block."""
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(Path(pipe).read_bytes()))
    reader.start()
    yield found
    reader.join(10)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Let every model folder hold this task."""

    def set_task(task: Any) -> None:
        for name, value in {"device": "cpu", "device_name": "cpu", "engine": None}.items():
            if task is not None and not hasattr(task, name):
                setattr(task, name, value)
        monkeypatch.setattr("regard.tasks.model_folder.load", lambda folder, device=None, **rest: task)
        monkeypatch.setattr("regard.tasks.model_folder.open_without_torch", lambda *given, **named: None)

    return set_task
