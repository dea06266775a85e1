from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from regard.nn import ops
from regard.nn.embeddings import TokenEmbedding
from regard.nn.ops import Linear, is_accurate, product, project, use, using
from tests.models.small_models import assert_near, small

SWITCH = torch.backends.mkldnn.matmul


def given(dtype: torch.dtype = torch.float32):
    generator = torch.Generator().manual_seed(1)
    shapes = ((40, 64), (48, 64), (48,))
    return tuple(torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes)


def direction() -> torch.Tensor:
    return torch.randn(40, 48, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def results(path: ops.Path, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    x_TD, weight_FD, bias_F = given(dtype)
    y_TF = product(x_TD, weight_FD, bias_F, path)
    direction_TF = direction().to(y_TF)
    return y_TF, *torch.autograd.grad(y_TF, (x_TD, weight_FD, bias_F), direction_TF)


def truth() -> tuple[torch.Tensor, ...]:
    x_TD, weight_FD, bias_F = (t.detach().double() for t in given())
    y_TF = x_TD @ weight_FD.T + bias_F
    direction_TF = direction()
    return y_TF, direction_TF @ weight_FD, direction_TF.T @ x_TD, direction_TF.sum(0)


@pytest.mark.parametrize(
    ("path", "most"), [("exact", 1e-5), ("onednn", 1e-5 if is_accurate() else 2e-2), ("bf16", 2e-2)]
)
def test_every_path_is_the_product_and_has_its_gradient(path: ops.Path, most: float) -> None:
    found = results(path)
    for ours, exact in zip(found, truth(), strict=True):
        assert_near(ours.float(), exact, most, path)
    assert found[0].dtype == (torch.bfloat16 if path == "bf16" else torch.float32)
    assert all(gradient.dtype == torch.float32 for gradient in found[1:])


def test_bf16_does_round() -> None:
    exact, low = (
        max((a.double() - b).abs().max() for a, b in zip(results(path), truth(), strict=True))
        for path in ("exact", "bf16")
    )
    assert low > 100 * exact


@pytest.mark.parametrize("path", ["exact", "onednn", "bf16"])
def test_float64_stays_exact(path: ops.Path) -> None:
    x_TD, weight_FD, bias_F = given(torch.float64)
    y_TF = product(x_TD, weight_FD, bias_F, path)
    assert_near(y_TF, x_TD.detach() @ weight_FD.detach().T + bias_F.detach(), 1e-14)


def test_the_switch_is_set_inside_a_product_only() -> None:
    before = SWITCH.fp32_precision
    results("onednn")
    assert SWITCH.fp32_precision == before
    with pytest.raises(RuntimeError):
        product(torch.ones(2, 3), torch.ones(2, 4), torch.ones(2), "onednn")
    assert SWITCH.fp32_precision == before


@pytest.mark.parametrize(("faithful", "full"), [(False, ("exact",)), (True, ("exact", "onednn"))])
def test_paths_are_those_that_the_machine_has(
    monkeypatch: pytest.MonkeyPatch, faithful: bool, full: tuple[ops.Path, ...]
) -> None:
    assert ops.full_paths("meta") == ("exact",)
    monkeypatch.setattr(ops, "native_bf16", lambda device: True)
    monkeypatch.setattr(ops, "is_accurate", lambda: faithful)
    assert ops.full_paths() == ops.paths("fp32") == full
    assert ops.paths("auto") == (*full, "bf16")
    assert ops.paths("mixed") == ("bf16",)


def test_faithful_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_accurate(tolerance=1e9)
    assert not is_accurate(tolerance=-1)
    exact = ops.F.linear
    rounding = []

    @contextmanager
    def rounds():
        rounding.append(True)
        yield
        rounding.pop()

    def linear(x, weight, bias=None):
        return exact(x.bfloat16(), weight.bfloat16()).float() if rounding else exact(x, weight, bias)

    monkeypatch.setattr(ops, "onednn", rounds)
    monkeypatch.setattr(ops.F, "linear", linear)
    assert not is_accurate()


@pytest.mark.parametrize("path", ["exact", "onednn", "bf16"])
def test_several_projections_at_once(path: ops.Path) -> None:
    linears = [Linear(64, size) for size in (3, 10, 7)]
    for linear in linears:
        linear.product = path
    x_TD = given()[0]
    for found, linear in zip(project(x_TD, linears), linears, strict=True):
        assert_near(found.float(), linear(x_TD).detach().float(), 1e-2 if path == "bf16" else 1e-5)


def test_the_path_is_chosen_from_outside() -> None:
    model = small()
    use(model, "bf16")
    multiplying = [m for m in model.modules() if isinstance(m, Linear | TokenEmbedding)]
    assert {m.product for m in multiplying} == {"bf16"}
    with using(model, "exact"):
        assert {m.product for m in multiplying} == {"exact"}
    assert {m.product for m in multiplying} == {"bf16"}
    assert Linear(2, 2).product == "exact"


@pytest.mark.parametrize("amd", [False, True])
@pytest.mark.parametrize("faithful", [False, True])
@pytest.mark.parametrize("native", [False, True])
def test_a_path_is_chosen_by_what_the_processor_is(
    monkeypatch: pytest.MonkeyPatch, amd: bool, faithful: bool, native: bool
) -> None:
    monkeypatch.setattr(ops, "full", ops.full.__wrapped__)  # without the memory of earlier answers
    monkeypatch.setattr(ops, "has_narrow_vectors", lambda: amd)
    monkeypatch.setattr(ops, "is_accurate", lambda: faithful)
    monkeypatch.setattr(ops, "native_bf16", lambda device: native)
    full = "onednn" if amd and faithful else "exact"
    chosen = [ops.choose(precision) for precision in ("fp32", "auto", "mixed")]
    assert chosen == [full, "bf16" if native else full, "bf16"]
    assert ops.choose("fp32", "meta") == "exact"


@pytest.mark.parametrize(("vendor", "is_narrow"), [("AuthenticAMD", True), ("GenuineIntel", False), (None, False)])
def test_amd_is_known_by_its_vendor(tmp_path: Path, vendor: str | None, is_narrow: bool) -> None:
    file = tmp_path / "cpuinfo"
    if vendor:
        file.write_text(f"processor\t: 0\nvendor_id\t: {vendor}\nmodel name\t: AMD\n\nvendor_id\t: {vendor}\n")
    assert ops.has_narrow_vectors(str(file)) is is_narrow
