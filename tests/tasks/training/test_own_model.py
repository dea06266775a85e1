"""``regard.fit`` and ``regard.load(…, model=…)``: an own module trains, is kept, resumes, and comes back."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

import regard
from regard.inspection.folders.folder import Folder
from regard.nn.dropout import Dropout
from regard.nn.ops import Linear
from regard.system.errors import Damaged, Diverged, RegardError, UsageError
from regard.tasks import model_folder
from tests.refusals import refused
from tests.scripts import load_script

SIZES: dict[str, Any] = {"d_in": 3, "d_out": 2}


class Own(nn.Module):
    """Dropout, then a product; gives its own loss where it is given targets."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.dropout, self.output = Dropout(0.25), Linear(d_in, d_out)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return ((self.output(self.dropout(x)) - y) ** 2).mean()


def data() -> list[tuple[Tensor, Tensor]]:
    torch.manual_seed(3)
    x = torch.randn(24, 3)
    return list(zip(x, x[:, :2] * 2, strict=True))


def batches() -> DataLoader[tuple[Tensor, Tensor]]:
    return DataLoader(data(), batch_size=8, shuffle=True)  # type: ignore[arg-type]


def own() -> Own:
    torch.manual_seed(5)
    return Own(**SIZES)


def fit(out: Path | None = None, steps: int = 7, **options: Any) -> Own:
    given = {"steps": steps, "quiet": True, **options}
    if out is not None:
        given |= {"out": out, "arguments": options.get("arguments", SIZES)}
    return regard.fit(own(), given.pop("batches", batches()), **given)


def test_a_kept_model_comes_back_to_the_bit(tmp_path: Path) -> None:
    trained = fit(tmp_path / "own")
    assert not trained.training
    loaded = regard.load(tmp_path / "own", "cpu", model=Own)
    assert type(loaded) is Own
    for name, weight in trained.state_dict().items():
        assert torch.equal(weight, loaded.state_dict()[name])
    kept = json.loads((tmp_path / "own" / "own.json").read_text())
    assert (kept["class"], kept["arguments"]) == ("Own", SIZES)
    lines = [json.loads(line) for line in (tmp_path / "own" / "training" / "metrics.jsonl").read_text().splitlines()]
    assert sum("nll" in line for line in lines) == 7


def test_commands_say_that_python_opens_it(tmp_path: Path) -> None:
    fit(tmp_path / "own")
    with refused(RegardError, tmp_path / "own", "regard.load"):
        model_folder.load(tmp_path / "own")
    with refused(RegardError, tmp_path / "own", "regard.load"):
        Folder(tmp_path / "own")


def test_a_stopped_run_continues_to_the_same_bits(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    calls = 0

    def stopping(model: Own, batch: tuple[Tensor, Tensor]) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise Stop
        loss: Tensor = model(*batch)
        return loss

    whole = fit(tmp_path / "whole", validate_every=1)
    with pytest.raises(Stop):
        fit(tmp_path / "parts", loss=stopping, validate_every=1)
    resumed = fit(tmp_path / "parts", loss=stopping, validate_every=1)
    assert calls == 6 + 2
    assert torch.equal(whole.output.weight, resumed.output.weight)


@pytest.mark.parametrize("validate_every", [1, 50])
def test_a_batch_that_is_not_finite_is_skipped_and_no_more(validate_every: int) -> None:
    batches = [torch.ones(8, 3) for _ in range(50)]
    batches[3][0, 0] = torch.inf
    losses: list[float] = []

    def square(model: nn.Linear, x: Tensor) -> Tensor:
        losses.append(float((found := model(x).square().mean()).detach()))
        return found

    options = {"steps": 50, "loss": square, "warmup": 1, "validate_every": validate_every, "quiet": True}
    trained = regard.fit(nn.Linear(3, 1), batches, **options)
    assert losses.count(torch.inf) == 1
    assert losses[-1] < losses[0]
    assert bool(trained.weight.isfinite().all())
    with refused(Diverged):
        regard.fit(nn.Linear(3, 1), [torch.full((8, 3), torch.inf)] * 50, **options)


def test_the_best_validation_is_kept() -> None:
    seen: list[float] = []

    def growing(model: Own, batch: object) -> Tensor:
        if model.training:
            return model.output.weight.sum()
        seen.append(float(model.output.weight.detach().sum()))
        return -model.output.weight.sum()

    trained = fit(steps=4, loss=growing, valid=[0], validate_every=1, warmup=0)
    assert trained.output.weight.sum().item() == seen[0] == max(seen)


@pytest.mark.parametrize(
    ("where", "options"),
    [
        ("steps", {"steps": 0}),
        ("rate", {"rate": -1.0}),
        ("batches", {"batches": iter([1])}),
        ("batches", {"batches": []}),
        ("valid", {"valid": []}),
        ("loss", {"loss": lambda model, batch: 1.0}),
        ("loss", {"loss": lambda model, batch: model.output.weight}),
        ("arguments", {"arguments": SIZES}),
    ],
)
def test_options_that_do_not_fit_are_refused(where: str, options: dict[str, Any]) -> None:
    with refused(UsageError, where):
        fit(**options)


@pytest.mark.parametrize("arguments", [{}, {"d_in": 3}, {"d_in": 3, "d_out": 4}, {**SIZES, "d_in": Path("x")}])
def test_arguments_make_this_very_model(arguments: dict[str, Any], tmp_path: Path) -> None:
    with refused(UsageError, "arguments"):
        fit(tmp_path / "own", arguments=arguments)
    assert not (tmp_path / "own").exists()


def test_another_run_or_other_files_are_refused(tmp_path: Path) -> None:
    fit(tmp_path / "own")
    with refused(UsageError, "seed"):
        fit(tmp_path / "own", seed=2)
    with refused(UsageError, "steps"):
        fit(tmp_path / "own", steps=6)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    with refused(UsageError, "full"):
        fit(tmp_path / "full")


def test_a_folder_names_no_code(tmp_path: Path) -> None:
    fit(tmp_path / "own")
    with refused(UsageError, "model", "Own"):
        regard.load(tmp_path / "own")
    with refused(RegardError, "training"):
        regard.load(tmp_path / "own" / "training", model=Own)
    weights = tmp_path / "own" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    with refused(Damaged):
        regard.load(tmp_path / "own", model=Own)


def test_weights_without_values_are_refused() -> None:
    with torch.device("meta"):
        outline = Own(**SIZES)
    with refused(RegardError, "output.weight"):
        regard.fit(outline, batches(), steps=1, quiet=True)
    model = own()
    nn.init.constant_(model.output.weight, float("nan"))
    with refused(RegardError, "output.weight"):
        regard.fit(model, batches(), steps=1, quiet=True)


def test_the_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = load_script("examples/own_model.py")
    assert example.main([str(tmp_path / "own"), "3"]) == 0
    assert "layers.0.attention" in capsys.readouterr().out
    assert example.main([]) == 2
