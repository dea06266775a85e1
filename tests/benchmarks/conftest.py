"""Modules of the folder ``benchmarks``, which is no package."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER / "peers")
    monkeypatch.syspath_prepend(FOLDER)
    before = set(sys.modules)

    def loaded(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield loaded
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


@pytest.fixture
def runner(tmp_path: Path) -> Callable[[str], str]:
    """Writes the runner of a peer: what is given, with what all runners share; its path."""

    def written(code: str) -> str:
        path = tmp_path / "runner.py"
        path.write_text(f"import sys\nsys.path.insert(0, {str(FOLDER / 'peers')!r})\n{code}")
        return str(path)

    return written
