import pytest
import torch
from torch import nn

from regard.nn.dropout import Dropout, drop, reseed
from regard.system import kernels


@pytest.mark.parametrize("probability", [0.1, 0.25, 0.5])
def test_rate_and_mean_are_right(probability: float) -> None:
    reseed(3)
    y = drop(torch.ones(400, 500), probability)
    rounded = round(probability * 256) / 256
    spread = (rounded * (1 - rounded) / y.numel()) ** 0.5
    assert abs((y == 0).double().mean().item() - rounded) < 5 * spread
    assert abs(y.double().mean().item() - 1) < 5 * spread / (1 - rounded)
    assert y.unique().tolist() == pytest.approx([0, 1 / (1 - rounded)])


def test_a_key_gives_its_mask_and_another_key_another() -> None:
    x = torch.ones(50, 7)
    masks = []
    for key in (5, 6, 5, 2**64 - 1):
        reseed(key)
        masks.append([drop(x, 0.3), drop(x, 0.3), torch.rand(2)])
    assert all(torch.equal(a, b) for a, b in zip(masks[0], masks[2], strict=True))
    for other in (1, 3):
        assert not any(torch.equal(a, b) for a, b in zip(masks[0], masks[other], strict=True))
    assert not torch.equal(masks[0][0], masks[0][1])  # each draw goes on where the last one ended


def test_the_gradient_passes_where_the_value_passed() -> None:
    part = Dropout(0.4)
    x, y = torch.randn(30, 8, requires_grad=True), torch.randn(30, 8, requires_grad=True)
    kept = part(torch.ones(30, 8))
    reseed(9)
    dropped = part(y)
    (gradient,) = torch.autograd.grad(dropped.sum(), y)
    assert torch.allclose(dropped, y * gradient)
    assert 0 < (gradient == 0).sum() < gradient.numel()
    reseed(9)
    added = part.add(x, y)
    assert torch.allclose(added, x + dropped)
    x_gradient, y_gradient = torch.autograd.grad(added.sum(), (x, y))
    assert torch.equal(x_gradient, torch.ones_like(x))
    assert torch.equal(y_gradient, gradient)
    assert kept.shape == x.shape


@pytest.mark.gpu
def test_a_gpu_drops_at_the_rate_by_key_and_its_gradient_follows() -> None:
    part, x, y = Dropout(0.1), *(torch.ones(400, 500, device="cuda", requires_grad=True) for _ in range(2))
    made = []
    for key in (3, 4, 3):
        reseed(key)
        made.append(part.add(x, y))
    assert torch.equal(made[0], made[2])
    assert not torch.equal(made[0], made[1])
    x_gradient, y_gradient = torch.autograd.grad(made[0].sum(), (x, y))
    assert torch.equal(x_gradient, torch.ones_like(x))
    assert torch.allclose(made[0], x + y * y_gradient)
    rounded = round(0.1 * 256) / 256
    spread = (rounded * (1 - rounded) / y.numel()) ** 0.5
    assert abs((y_gradient == 0).double().mean().item() - rounded) < 5 * spread


@pytest.mark.skipif(not kernels.available(), reason="no compiler was there when Regard was installed")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(0, 4), (3, 5), (40, 64)])
def test_kernels_drop_what_torch_drops(
    shape: tuple[int, int], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    part, found, called = Dropout(0.3), [], []
    for name in ("dropout", "add_dropout"):
        compute = getattr(kernels._native, name)
        monkeypatch.setattr(kernels._native, name, lambda *given, f=compute: (called.append(f), f(*given)))
    for is_native in (True, False):
        monkeypatch.setattr(kernels, "available", lambda native=is_native: native)
        reseed(5)
        torch.manual_seed(1)
        x, y = torch.randn(shape, requires_grad=True), torch.randn(shape).to(dtype).requires_grad_()
        apart = torch.randn(shape[::-1]).to(dtype).t().requires_grad_()  # not in one piece: torch computes it
        made = [part(y), part.after(nn.ReLU(), y), part.add(x, y), part(apart), part.after(nn.ReLU(), apart)]
        of = [y, y, y, apart, apart]
        gradients = [torch.autograd.grad((one.float() ** 2).sum(), y)[0] for one, y in zip(made, of, strict=True)]
        (expanded,) = torch.autograd.grad(part.after(nn.ReLU(), y).sum(), y)
        found.append([*made, *gradients, expanded])
        assert len(called) == (12 if not shape[0] else 7)  # not where entries lie apart: of no entries none do
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(ours, theirs, rtol=1e-6 if dtype == torch.float32 else 2e-2, atol=1e-6)


def test_nan_behind_relu_stays_nan() -> None:
    x = torch.tensor([float("nan"), -float("inf"), 1.0]).repeat(40)
    y = Dropout(0.3).after(nn.ReLU(), x).view(40, 3)
    assert y[:, 0].isnan().all()
    assert not y[:, 1].any()


def test_some_entries_stay_at_any_probability() -> None:
    y = drop(torch.ones(100, 200), 0.999)
    assert 0 < (y > 0).sum() < 400


def test_behind_relu_it_is_relu_then_dropout() -> None:
    part, made = Dropout(0.3), []
    torch.manual_seed(1)
    x = torch.randn(30, 8, dtype=torch.float64, requires_grad=True)
    for drops in (lambda: part.after(nn.ReLU(), x), lambda: part(x.relu())):
        reseed(2)
        made.append((y := drops(), *torch.autograd.grad((y**2).sum(), x)))
    assert torch.equal(made[0][0], made[1][0])
    assert torch.equal(made[0][1], made[1][1])
    assert torch.equal(part.eval().after(nn.GELU(), x), nn.functional.gelu(x))


def test_a_low_precision_output_joins_a_full_stream() -> None:
    part, x = Dropout(0.5), torch.randn(6, 4, requires_grad=True)
    y = torch.randn(6, 4).bfloat16().requires_grad_()
    added = part.add(x, y)
    assert added.dtype == torch.float32
    assert torch.autograd.grad(added.sum(), y)[0].dtype == torch.bfloat16


def test_nothing_is_dropped_nor_drawn_in_evaluation_nor_at_zero() -> None:
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    reseed(4)
    expected = drop(torch.ones(40), 0.5)
    reseed(4)
    for part in (Dropout(0.9).eval(), Dropout(0.0)):
        assert part(y) is y
        assert torch.equal(part.add(x, y), x + y)
    assert torch.equal(drop(torch.ones(40), 0.5), expected)
