"""A command that answers each text at once."""

from pathlib import Path

import pytest

from tests.cli.fakes import Shouts


@pytest.fixture
def shout(regard, loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    loaded(Shouts())
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("a\nb\n")
    return lambda *words, **more: regard("translate", "model", *words, **more)
