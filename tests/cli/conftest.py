"""Runs the command line in this process: arguments in; exit code, stdout and stderr out."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
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
        return self.err.splitlines()[-1] if self.err else ""

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
    def run(*argv: object, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(word) for word in argv])
        out, err = capsysbinary.readouterr()
        return Done(code, out.decode(), err.decode())

    return run


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Let every model folder hold this task."""

    def set_task(task: Any) -> None:
        from types import ModuleType

        bundle = ModuleType("regard.tasks.model_folder")
        bundle.load = lambda folder, device=None, **rest: task  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "regard.tasks.model_folder", bundle)

    return set_task
