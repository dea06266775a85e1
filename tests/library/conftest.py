"""Model folders of every task, loaded by the public interface."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import regard
from tests.tasks.small_tasks import EVERY, PIXELS, SOURCE, TEXTS, put

IMAGE = np.array(PIXELS).reshape(6, 4)
ModelOf = Callable[[str], regard.Model]


def given(name: str) -> str | np.ndarray:
    """What a model of this name reads."""
    return IMAGE if name == "viewer" else TEXTS.get(name, SOURCE)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a small model, by its name in :data:`small_tasks.EVERY`."""
    base = tmp_path_factory.mktemp("library")
    return cache(lambda name: put(base / name, EVERY[name]()))


@pytest.fixture(scope="session")
def model(folder: Callable[[str], Path]) -> ModelOf:
    """The model itself."""
    return cache(lambda name: regard.load(folder(name), device="cpu"))
