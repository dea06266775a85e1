"""What ``parallel.py`` measures is what it says; nothing here measures a speed."""

from types import ModuleType
from typing import Any

import pytest
import torch


@pytest.fixture
def parallel(load: Any) -> Any:
    return load("parallel")


@pytest.mark.parametrize("name", ["Elman", "GRU", "LSTM", "attention"])
def test_gradients_are_those_of_each_text_alone_token_by_token(parallel: ModuleType, name: str) -> None:
    model = parallel.Guesser(name, 11, 8, 3).double()
    batch = torch.randint(11, (3, 7), generator=torch.Generator().manual_seed(5))
    found = parallel.gradients(model, batch, "as drawn", (1, 2, 5))
    direction_BD = torch.randn(3, 8, generator=torch.Generator().manual_seed(0)).double()
    for row in found:
        squares = []
        for ids_T, direction_D in zip(batch[:, :-1], direction_BD, strict=True):
            alone = parallel.rows_of(torch.zeros(1, 7))
            x_TD = model.embed(ids_T, alone).detach().requires_grad_()
            (model.layer(x_TD, alone)[5] @ direction_D).backward()
            assert x_TD.grad is not None
            squares.append(x_TD.grad[5 - row["distance"]].square().sum().item())
        assert row["norm"] == pytest.approx((sum(squares) / 3) ** 0.5, rel=1e-9)
        assert row["norm"] > 0


@pytest.mark.long(minutes=0.03)
def test_speed_and_memory_have_a_figure_for_every_layer_and_length(
    parallel: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"LENGTHS": (4, 8), "TOKENS": 32, "SIZE": 8, "ROUNDS": 2}.items():
        monkeypatch.setattr(parallel, name, value)
    rows = parallel.speed("two processes", 1)
    assert len({(row["layer"], row["length"], row["pass"]) for row in rows}) == len(rows) == 4 * 2 * 2
    assert all(row["microseconds a token"] > 0 for row in rows)
    assert len(parallel.memory(1)) == 8


def test_paths_are_those_of_one_layer(load: Any) -> None:
    layers = load("layers")
    assert layers.path("attention", 64) == {"formula": "1", "path": 1}
    assert all(layers.path(name, 64) == {"formula": "n", "path": 64} for name in ("Elman", "GRU", "LSTM"))
