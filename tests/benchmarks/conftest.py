"""Modules of the folder ``benchmarks``, which is no package."""

import importlib
import sys
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
