"""A command that answers each text at once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.config import TASKS


class Shouts:
    """A translator into capitals."""

    info = TASKS["translation"]
    device = device_name = "cpu"
    engine = None

    def unseen_words(self, text: str) -> None:
        """It does not know what training saw."""

    def nbest(self, texts: list[str], **options: Any) -> list[list[Any]]:
        return [[SimpleNamespace(text=text.upper(), tokens=(), score=0.0)] for text in texts]


@pytest.fixture
def shout(regard, loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    loaded(Shouts())
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("a\nb\n")
    return lambda *words, **more: regard("translate", "model", *words, **more)
