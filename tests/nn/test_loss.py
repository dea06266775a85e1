import pytest
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from regard.nn.autograd import loss
from regard.nn.loss import SmoothedCrossEntropy
from tests.models.small_models import assert_near


def given(tokens: int, pieces: int, d_model: int = 6, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(tokens + pieces)
    hidden_TD = torch.randn(tokens, d_model, generator=generator, dtype=dtype).requires_grad_()
    table_V1D = torch.randn(pieces + 1, d_model, generator=generator, dtype=dtype).requires_grad_()
    labels_T = torch.randint(0, pieces, (tokens,), generator=generator)
    weight_T = torch.randint(0, 3, (tokens,), generator=generator).to(dtype) / 2
    return hidden_TD, table_V1D, labels_T, weight_T


@pytest.mark.parametrize("tokens", [1, 7, 8, 21])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_in_chunks_it_is_torchs_whole_cross_entropy(
    tokens: int, smoothing: float, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "CHUNK", 8)
    hidden_TD, table_V1D, labels_T, weight_T = given(tokens, 13, dtype=dtype)
    total, nll = SmoothedCrossEntropy(smoothing)(hidden_TD, table_V1D, labels_T, weight_T, 13)
    found = torch.autograd.grad(3 * total, (hidden_TD, table_V1D))
    hidden, table = (x.detach().double().requires_grad_() for x in (hidden_TD, table_V1D))
    scores, weights = hidden @ table[:13].T, weight_T.double()
    losses_T = F.cross_entropy(scores, labels_T, label_smoothing=smoothing, reduction="none")
    expected = torch.autograd.grad(3 * (losses_T * weights).sum(), (hidden, table))
    most = 1e-9 if dtype == torch.float64 else 1e-4
    assert_near(total, (losses_T * weights).sum(), most)
    assert_near(nll, (F.cross_entropy(scores, labels_T, reduction="none") * weights).sum(), most)
    for ours, theirs in zip(found, expected, strict=True):
        assert_near(ours, theirs, most)
    assert not found[1][13].any()  # the start symbol is never predicted


@pytest.mark.gpu
def test_a_gpu_gives_the_same_in_larger_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", 8)
    monkeypatch.setattr(loss, "GPU_SCORES", 13 * 16)  # 16 tokens at once
    found = []
    for device in ("cpu", "cuda"):
        hidden_TD, table_V1D, labels_T, weight_T = (x.detach().to(device) for x in given(41, 13))
        inputs = hidden_TD.requires_grad_(), table_V1D.requires_grad_()
        total, nll = SmoothedCrossEntropy(0.1)(*inputs, labels_T, weight_T, 13)
        found.append([x.cpu() for x in (total, nll, *torch.autograd.grad(total, inputs))])
    for ours, theirs in zip(*found, strict=True):
        assert_near(ours, theirs, 1e-9)


def test_nothing_is_smoothed_in_evaluation_and_no_gradient_flows_to_nll() -> None:
    part = SmoothedCrossEntropy(0.3)
    hidden_TD, table_V1D, _, weight_T = given(9, 11)
    labels_T = (hidden_TD @ table_V1D[:11].T).argmax(1)  # smoothing costs most where the label was likely
    total, nll = part(hidden_TD, table_V1D, labels_T, weight_T + 1, 11)
    assert total > 1.01 * nll
    assert not nll.requires_grad
    part.eval()
    total, nll = part(hidden_TD, table_V1D, labels_T, weight_T + 1, 11)
    assert torch.equal(total, nll)


@pytest.mark.parametrize("path", ["exact", "onednn", "bf16"])
def test_large_scores_stay_finite_and_right(path: str) -> None:
    hidden_TD, table_V1D, labels_T, weight_T = given(9, 11, dtype=torch.float32)
    with torch.no_grad():
        hidden_TD *= 1e4
    part = SmoothedCrossEntropy(0.1)
    part.product = path
    total, nll = part(hidden_TD, table_V1D, labels_T, weight_T, 11)
    gradients = torch.autograd.grad(total, (hidden_TD, table_V1D))
    assert all(torch.isfinite(x).all() for x in (total, nll, *gradients))
    scores = hidden_TD.detach().double() @ table_V1D.detach()[:11].double().T
    assert_near(nll, (F.cross_entropy(scores, labels_T, reduction="none") * weight_T).sum(), 1e-2)


def test_products_in_bf16_are_near() -> None:
    hidden_TD, table_V1D, labels_T, weight_T = given(300, 50, d_model=32, dtype=torch.float32)
    results = []
    for path in ("exact", "bf16"):
        part = SmoothedCrossEntropy(0.1)
        part.product = path
        total, nll = part(hidden_TD, table_V1D, labels_T, weight_T, 50)
        gradients = torch.autograd.grad(total, (hidden_TD, table_V1D))
        assert all(gradient.dtype == torch.float32 for gradient in gradients)
        results.append((total, nll, *gradients))
    for exact, low in zip(*results, strict=True):
        assert_near(low, exact, 3e-2)


class Largest(TorchFunctionMode):
    """The most entries that any tensor had which a call of torch gave."""

    most = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, torch.Tensor):
                self.most = max(self.most, tensor.numel())
        return made


@pytest.mark.parametrize("training", [True, False])
def test_the_whole_matrix_of_scores_never_exists(training: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", 16)
    tokens, pieces, d_model = 200, 301, 4
    arguments = given(tokens, pieces, d_model)
    part = SmoothedCrossEntropy(0.1).train(training)
    with Largest() as seen:
        total, _ = part(*arguments, pieces)
        total.backward()
    assert seen.most == 16 * pieces  # a chunk of scores is the largest there is
    with Largest() as seen:
        F.cross_entropy(arguments[0] @ arguments[1][:pieces].T, arguments[2])
    assert seen.most == tokens * pieces
