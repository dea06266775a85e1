"""Model folders of every task, loaded by the public interface."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import regard
from tests.tasks.small_tasks import EVERY, put


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a small model, by its name in :data:`small_tasks.EVERY`."""
    base = tmp_path_factory.mktemp("library")
    return cache(lambda name: put(base / name, EVERY[name]()))


@pytest.fixture(scope="session")
def model(folder: Callable[[str], Path]) -> Callable[[str], regard.Model]:
    """The model itself."""
    return cache(lambda name: regard.load(folder(name), device="cpu"))
