import random

import numpy as np
import pytest
import torch

from seed_shift import move, moved


def test_a_seed_moves_and_none_stays_none() -> None:
    assert moved(3, 7) == 10
    assert moved("third 1", 7) != moved("third 2", 7) != "third 2"
    assert moved(None, 7) is None


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seeds of this process are as they were when the test has ended."""
    for owner, names in ((random, ("seed", "Random")), (np.random, ("seed", "default_rng"))):
        for name in names:
            monkeypatch.setattr(owner, name, getattr(owner, name))
    for name in ("manual_seed", "Generator"):
        monkeypatch.setattr(torch, name, getattr(torch, name))


DRAWS = """
def drawn(seed):
    random.seed(seed), np.random.seed(seed), torch.manual_seed(seed)
    return (
        random.random(),
        np.random.rand(),
        torch.rand(1).item(),
        random.Random(seed).random(),
        np.random.default_rng(seed).random(),
        torch.rand(1, generator=torch.Generator().manual_seed(seed)).item(),
    )
"""


def draws_in(file: str):
    """A function that draws by a seed in six ways, as if it stood in a file."""
    names = {"random": random, "np": np, "torch": torch}
    exec(compile(DRAWS, file, "exec"), names)
    return names["drawn"]


@pytest.mark.usefixtures("untouched")
def test_what_tests_draw_moves_and_what_regard_draws_does_not() -> None:
    of_tests, of_regard = draws_in(__file__), draws_in("/src/regard/system/keys.py")
    before, other = of_regard(3), of_regard(10)
    move(7)
    assert of_regard(3) == before
    assert of_tests(3) == other
