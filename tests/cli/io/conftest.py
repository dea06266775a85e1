"""A command that answers each text at once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.config import TASKS
from tests.cli.inference.fakes import Unaware


class Shouts(Unaware):
    """A translator into capitals."""

    info = TASKS["translation"]
    device = device_name = "cpu"
    engine = None

    def nbest(self, texts: list[str], **options: Any) -> list[list[Any]]:
        return [
            [SimpleNamespace(text=text.upper(), tokens=(), score=0.0, confidence=1.0, unsure=None)] for text in texts
        ]


@pytest.fixture
def shout(regard, loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    loaded(Shouts())
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("a\nb\n")
    return lambda *words, **more: regard("translate", "model", *words, **more)
