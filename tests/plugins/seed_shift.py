"""Other data for the same tests: ``REGARD_TEST_SEED=7`` moves every seed that the tests draw with.

A test that fails then held by luck. Moved are the seeds that code below tests/ hands to torch, NumPy and Python, and
Hypothesis draws by the number; what regard itself draws by key (``regard/system/keys.py``) stays as it is.
"""

import functools
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SHIFT = int(os.environ.get("REGARD_TEST_SEED", "0"))
TESTS = str(Path(__file__).parents[1]) + os.sep


def moved(seed: Any, shift: int) -> Any:
    """The seed that is used in place of another; none stays none."""
    if isinstance(seed, str):
        return f"{seed} {shift}"
    return None if seed is None else seed + shift


def moving(function: Callable[..., Any], place: int, shift: int) -> Callable[..., Any]:
    """A function that takes a seed at a place, given another one where a test calls it."""

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        caller = sys._getframe(1).f_code.co_filename
        if len(given) > place and caller.startswith(TESTS) and caller != __file__:
            given = (*given[:place], moved(given[place], shift), *given[place + 1 :])
        return function(*given, **named)

    return called


def move(shift: int) -> None:
    """Move the seeds of this process; before a test is imported, since some take ``Random`` by name."""
    import torch

    for owner, name in ((random, "seed"), (np.random, "seed"), (np.random, "default_rng"), (torch, "manual_seed")):
        setattr(owner, name, moving(getattr(owner, name), 0, shift))
    for owner, name, method in ((random, "Random", "__init__"), (torch, "Generator", "manual_seed")):
        kind = getattr(owner, name)
        setattr(owner, name, type(name, (kind,), {method: moving(getattr(kind, method), 1, shift)}))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if SHIFT and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(SHIFT)  # read by Hypothesis when it is configured itself


if SHIFT:
    move(SHIFT)
