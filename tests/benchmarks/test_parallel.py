"""What ``parallel.py`` measures is what it says; nothing here measures a speed."""

import json
import sys
from functools import partial
from pathlib import Path
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


@pytest.mark.parametrize("kind", ["forward", "training"])
def test_a_pass_reads_all_texts_and_training_leaves_no_gradient(parallel: ModuleType, kind: str) -> None:
    seen = []

    class Layer(torch.nn.Linear):
        def forward(self, x_TD: torch.Tensor, sequences: Any = None) -> torch.Tensor:
            seen.append((sequences.count, sequences.longest, len(x_TD), torch.is_grad_enabled()))
            return super().forward(x_TD)

    layer = Layer(parallel.SIZE, parallel.SIZE)
    parallel.once(layer, kind, 4, 24)()
    assert seen == [(6, 4, 24, kind == "training")]
    assert layer.weight.grad is None


def test_forks_answer_in_order_and_wait_for_each_other(parallel: ModuleType) -> None:
    began = torch.multiprocessing.get_context("fork").Value("i", 0)

    def work(wait: Any) -> int:
        with began.get_lock():
            began.value += 1
        wait()
        return began.value

    assert parallel.in_forks(3, work) == [3, 3, 3]  # nobody answered before all had begun

    def fails(wait: Any) -> None:
        raise SystemExit(3)

    with pytest.raises(EOFError):
        parallel.in_forks(1, fails)


def test_a_part_that_stands_there_is_not_measured_again(
    parallel: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results, called = tmp_path / "parallel.jsonl", []

    def measured(part: str, seed: int) -> list[dict[str, str]]:
        called.append((part, seed))
        return [{"layer": "GRU"}]

    def few(seed: int) -> dict[str, Any]:
        return {part: partial(measured, part, seed) for part in ("speed: a", "memory")}

    monkeypatch.setattr(parallel, "parts", few)
    monkeypatch.setattr(sys, "argv", ["parallel.py", "--seed", "1", "--part", "memory", "--results", str(results)])
    parallel.main()
    monkeypatch.setattr(sys, "argv", ["parallel.py", "--results", str(results)])
    parallel.main()
    assert called == [("memory", 1), ("speed: a", 1), ("speed: a", 2), ("memory", 2), ("speed: a", 3), ("memory", 3)]
    sessions = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert [session["name"] for session in sessions][:2] == ["memory 1", "speed: a 1"]
    assert sessions[1]["rows"] == [{"part": "speed", "seed": 1, "layer": "GRU"}]


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
