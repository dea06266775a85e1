"""One flat buffer against torch's optimisers, parameter by parameter."""

import math
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.config import Training
from regard.system.errors import RegardError, UsageError
from regard.training.budget import Replanning
from regard.training.muon import ROUNDS
from regard.training.optim import FlatOptimiser, schedule
from regard.training.world import World
from tests.refusals import refused
from tests.training.toy import Bigram


def gradients(model, seed):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(p.shape, generator=generator) for name, p in model.named_parameters()}


@pytest.mark.long(minutes=0.07)
def test_an_update_does_not_load_torchs_compiler():
    """Its import takes seconds in each process of a run."""
    code = (
        "import sys, torch; from regard.config import Training; from regard.training.optim import FlatOptimiser;"
        "flat = FlatOptimiser(torch.nn.Linear(2, 2), Training()); flat.exchange_gradients(); flat.update(0.1, 1.0);"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def section(**values):
    return Training(**{"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9, **values})


@pytest.mark.parametrize(("kind", "decay"), [("adam", 0.0), ("adamw", 0.1)])
def test_as_torch_parameter_by_parameter(kind, decay):
    model, other = Bigram(), Bigram()
    flat = FlatOptimiser(model, section(optimiser=kind, weight_decay=decay))
    named = dict(other.named_parameters())
    groups = [
        {"params": [p for p in named.values() if p.dim() >= 2], "weight_decay": decay},
        {"params": [p for p in named.values() if p.dim() < 2], "weight_decay": 0.0},
    ]
    plain = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind](groups, betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, 21):
        found = gradients(model, step)
        flat.begin_shard(0)
        for name, parameter in model.named_parameters():
            parameter.grad += found[name]
            named[name].grad = 0.5 * found[name]
        flat.update(0.01 / step, 0.5)
        for group in plain.param_groups:
            group["lr"] = 0.01 / step
        plain.step()
    for name, parameter in model.named_parameters():
        assert_close(parameter, named[name], rtol=1e-5, atol=1e-7)
        assert not torch.equal(parameter, dict(Bigram().named_parameters())[name])


def test_muon_as_torch_matrix_by_matrix_and_adamw_for_the_rest():
    model, other = Bigram(), Bigram()
    flat = FlatOptimiser(model, section(optimiser="muon", weight_decay=0.1, precision="fp32"))
    named = dict(other.named_parameters())
    matrices = [named.pop(name) for name in ("layers.0.weight", "layers.1.weight")]
    groups = [
        {"params": [p for p in named.values() if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in named.values() if p.dim() < 2], "weight_decay": 0.0},
    ]
    plain = [
        torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-9),
        torch.optim.Muon(matrices, weight_decay=0.1, ns_steps=ROUNDS, adjust_lr_fn="match_rms_adamw"),
    ]
    for step in range(1, 11):
        found = gradients(model, step)
        for name, parameter in model.named_parameters():
            parameter.grad.copy_(found[name])
        for name, parameter in other.named_parameters():
            parameter.grad = 0.5 * found[name]
        flat.update(0.01 / step, 0.5)
        for one in plain:
            for group in one.param_groups:
                group["lr"] = 0.01 / step
            one.step()
    for name, parameter in model.named_parameters():
        wanted = dict(other.named_parameters())[name]
        rounded = name.startswith("layers") and name.endswith("weight")  # torch multiplies in bf16
        assert_close(parameter, wanted, rtol=1e-5, atol=1e-3 if rounded else 1e-7)
        assert (parameter - dict(Bigram().named_parameters())[name]).abs().max() > 5e-3


@pytest.mark.parametrize("shards", [4, 8])
def test_muons_matrices_lie_whole_in_the_slices_of_shards(shards):
    shapes = [(12, 5), (3, 3), (12, 5), (7, 20), (3, 3), (12, 5)]
    model = nn.ModuleList(nn.Linear(*shape) for shape in shapes)
    model.head = nn.Linear(3, 40)
    flat = FlatOptimiser(model, section(optimiser="muon"), World(shards=shards))
    first, each = flat.weights.data_ptr(), 4 * len(flat.weights) // shards
    starts = {p: p.data_ptr() - first for name, p in model.named_parameters() if p.dim() == 2 and name != "head.weight"}
    assert all(start // each == (start + 4 * p.numel() - 1) // each for p, start in starts.items())
    assert len({start // each for start in starts.values()}) > 1
    assert torch.equal(model[3].weight, flat.weights_by_name()["3.weight"])


def test_tied_parameters_are_held_and_saved_once_and_frozen_ones_stay():
    model = Bigram()
    flat = FlatOptimiser(model, section())
    assert model.output.weight is model.embedding.weight
    assert "output.weight" not in flat.weights_by_name()
    assert set(flat.weights_by_name()) == {n for n, _ in model.named_parameters()} | {"seen"}
    assert len(flat.weights) == sum(-(-p.numel() // 16) * 16 for p in model.parameters())
    model.layers[0].bias.requires_grad_(False)
    before = model.layers[0].bias.clone()
    flat = FlatOptimiser(model, section())
    flat.gradients.fill_(1.0)
    flat.update(0.1, 1.0)
    assert torch.equal(model.layers[0].bias, before)
    assert "layers.0.bias" in flat.weights_by_name()
    assert "first.layers.0.bias" not in flat.moments_by_name()


def test_norms_are_those_of_the_layers():
    model = Bigram()
    flat = FlatOptimiser(model, section())
    found = gradients(model, 4)
    for name, parameter in model.named_parameters():
        parameter.grad.copy_(found[name])
    wanted = {}
    for name, gradient in found.items():
        layer = ".".join(name.split(".")[:2]) if name.startswith("layers") else name.split(".")[0]
        wanted[layer] = wanted.get(layer, 0.0) + float(gradient.square().sum())
    assert flat.norms() == pytest.approx({layer: square**0.5 for layer, square in wanted.items()}, rel=1e-5)
    assert set(wanted) == {"embedding", "layers.0", "layers.1", "norm", "output"}


def test_averages_follow_the_weights():
    model = Bigram()
    flat = FlatOptimiser(model, section(ema=0.9))
    wanted = flat.weights.double()
    for step in range(1, 150):
        flat.gradients.copy_(torch.randn(len(flat.weights), generator=torch.Generator().manual_seed(step)))
        flat.update(0.01, 1.0)
        decay = min(0.9, (1 + step) / (10 + step))
        wanted = decay * wanted + (1 - decay) * flat.weights.double()
    assert_close(flat.averages.double(), wanted, rtol=1e-4, atol=1e-5)
    own = flat.weights.clone()
    with flat.averaged_weights():
        assert torch.equal(model.norm.weight, flat.averages_by_name()["norm.weight"])
        assert not torch.equal(flat.weights, own)
    assert torch.equal(flat.weights, own)


def test_another_model_and_what_cannot_be_trained_are_refused():
    flat = FlatOptimiser(Bigram(), section())
    weights, moments = flat.weights_by_name(), flat.moments_by_name()
    with refused(RegardError, "embedding.weight"):
        flat.restore({n: t for n, t in weights.items() if n != "embedding.weight"}, moments, {})
    with refused(RegardError, "norm.bias", "[9]"):
        flat.restore({**weights, "norm.bias": torch.zeros(9)}, moments, {})
    with refused(RegardError, "model"):
        FlatOptimiser(nn.Identity(), section())
    mixed = Bigram()
    mixed.norm.bfloat16()
    with refused(RegardError, "norm.weight"):
        FlatOptimiser(mixed, section())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a gpu")
def test_a_gpu_gives_the_same():
    flats = [FlatOptimiser(Bigram().to(device), section(ema=0.9)) for device in ("cpu", "cuda")]
    for step in range(1, 6):
        gradient = torch.randn(len(flats[0].weights), generator=torch.Generator().manual_seed(step))
        for flat in flats:
            flat.gradients.copy_(gradient)
            flat.update(0.01, 0.5)
    assert_close(flats[0].weights, flats[1].weights.cpu(), rtol=1e-5, atol=1e-6)
    assert_close(flats[0].averages, flats[1].averages.cpu(), rtol=1e-5, atol=1e-6)


def rates(d_model=512, **training):
    section = Training(**training)
    rate = schedule(section, d_model)
    return [rate(step) for step in range(1, (section.steps or 20_000) + 1)]


def test_noam_is_the_papers_formula():
    found = rates(schedule="noam", rate=2.0, warmup=4000)
    for step in range(1, 20_001):
        assert found[step - 1] == pytest.approx(2.0 * 512**-0.5 * min(step**-0.5, step * 4000**-1.5), rel=1e-12)
    assert max(found) == found[3999]


def test_inverse_square_root():
    for step, found in enumerate(rates(schedule="inverse_square_root", rate=1e-3, warmup=100), 1):
        assert found == pytest.approx(1e-3 * (step / 100 if step <= 100 else math.sqrt(100 / step)), rel=1e-12)


@pytest.mark.parametrize("steps", [11, 57, 1000])
@pytest.mark.parametrize("warmup", [0, 3, 50])
def test_cosine_and_linear_end_at_zero_at_exactly_the_last_step(steps, warmup):
    cosine = rates(schedule="cosine", rate=0.3, warmup=warmup, steps=steps)
    linear = rates(schedule="linear", rate=0.3, warmup=warmup, steps=steps)
    warm = min(warmup, steps // 10)  # never more than a tenth
    for step in range(1, steps + 1):
        if step <= warm:
            wanted = (0.3 * step / warm,) * 2
        else:
            down = (step - warm) / (steps - warm)
            wanted = (0.3 * (1 + math.cos(math.pi * down)) / 2, 0.3 * (1 - down))
        assert (cosine[step - 1], linear[step - 1]) == pytest.approx(wanted, rel=1e-9, abs=1e-15)
    for name in ("cosine", "linear"):  # which need an end
        with refused(UsageError, "training.steps"):
            schedule(Training(schedule=name), 512)
    assert cosine[-1] == linear[-1] == 0.0
    assert min(cosine[:-1]) > 0.0
    assert min(linear[:-1]) > 0.0


@pytest.mark.parametrize("name", ["noam", "inverse_square_root", "cosine", "linear"])
def test_warm_up_is_linear_and_capped(name):
    found = rates(schedule=name, rate=1.0, warmup=400, steps=1000)
    assert found.index(max(found)) == 99
    assert found[9] == pytest.approx(10 * found[0])
    short = [rate for steps in (1, 2, 9) for rate in rates(schedule=name, steps=steps)]
    assert all(math.isfinite(rate) and rate >= 0 for rate in short)


@pytest.mark.parametrize("name", ["cosine", "linear"])
@pytest.mark.parametrize(("planned", "steps"), [(100, 300), (100, 51), (101, 80), (7, 9), (100, 100)])
def test_planned_anew_it_goes_on_from_where_it_is_to_zero_at_the_new_end(name, planned, steps):
    section, at = Training(schedule=name, rate=0.3, warmup=20, steps=planned), planned // 2
    before, found = schedule(section, 512), schedule(section, 512, Replanning(at, planned, steps))
    assert [found(step) for step in range(1, at + 1)] == [before(step) for step in range(1, at + 1)]
    assert found(at) == pytest.approx(found(at + 1e-9))
    way = [found(step) for step in range(at, steps + 1)]
    assert way[-1] == 0.0 < way[-2]
    assert way == sorted(way, reverse=True)
    for share in (0.25, 0.5, 0.75):  # of the way that is left, as far down as before
        assert found(at + share * (steps - at)) == pytest.approx(before(at + share * (planned - at)), rel=1e-9)
    if steps == planned:
        assert way == [before(step) for step in range(at, steps + 1)]


@pytest.mark.parametrize("name", ["noam", "inverse_square_root"])
def test_a_schedule_without_an_end_is_not_planned_anew(name):
    section = Training(schedule=name, warmup=4000, steps=1000)
    before, found = schedule(section, 512), schedule(section, 512, Replanning(500, 1000, 3000))
    assert [found(step) for step in range(1, 3001)] == [before(step) for step in range(1, 3001)]
