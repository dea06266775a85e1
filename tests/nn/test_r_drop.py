"""R-Drop's loss in chunks against torch's own cross-entropy and divergence."""

import pytest
import torch
import torch.nn.functional as F

from regard.nn.autograd import r_drop
from regard.nn.loss import SmoothedCrossEntropy
from tests.models.small_models import assert_near

PIECES, ALPHA = 13, 5.0


def given(tokens: int, dtype: torch.dtype = torch.float64) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
    """Hidden vectors of both passes and the table; labels; weights, some of them zero."""
    generator = torch.Generator().manual_seed(tokens)
    shapes = (tokens, 6), (tokens, 6), (PIECES + 1, 6)
    learned = [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]
    labels_T = torch.randint(0, PIECES, (tokens,), generator=generator)
    return learned, labels_T, torch.randint(0, 3, (tokens,), generator=generator).to(dtype) / 2


def ours(part: SmoothedCrossEntropy, learned: list[torch.Tensor], labels_T: torch.Tensor, weight_T: torch.Tensor):
    """The loss, the likelihood and three times the gradient."""
    first_TD, second_TD, table_V1D = learned
    total, nll = part.r_drop(first_TD, second_TD, table_V1D, labels_T, weight_T, PIECES, ALPHA)
    return total, nll, torch.autograd.grad(3 * total, learned)


@pytest.mark.parametrize("tokens", [1, 8, 21])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_in_chunks_it_is_torchs_cross_entropy_and_divergence(
    tokens: int, smoothing: float, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(r_drop, "CHUNK", 8)
    learned, labels_T, weight_T = given(tokens, dtype)
    total, nll, found = ours(SmoothedCrossEntropy(smoothing), learned, labels_T, weight_T)
    doubles = [one.detach().double().requires_grad_() for one in learned]
    scores = [hidden_TD @ doubles[2][:PIECES].T for hidden_TD in doubles[:2]]
    first_TV, second_TV = (one.log_softmax(1) for one in scores)
    losses_T = sum(F.cross_entropy(one, labels_T, label_smoothing=smoothing, reduction="none") for one in scores)
    both = F.kl_div(second_TV, first_TV, log_target=True, reduction="none")
    both = both + F.kl_div(first_TV, second_TV, log_target=True, reduction="none")
    wanted = ((losses_T + ALPHA / 2 * both.sum(1)) * weight_T.double()).sum() / 2
    likelihoods_T = sum(F.cross_entropy(one, labels_T, reduction="none") for one in scores)
    most = 1e-9 if dtype == torch.float64 else 1e-4
    assert_near(total, wanted, most)
    assert_near(nll, (likelihoods_T * weight_T.double()).sum() / 2, most)
    for one, other in zip(found, torch.autograd.grad(3 * wanted, doubles), strict=True):
        assert_near(one, other, most)


def test_two_equal_passes_cost_what_one_does() -> None:
    part = SmoothedCrossEntropy(0.1)
    (first_TD, _, table_V1D), labels_T, weight_T = given(21)
    total, nll = part.r_drop(first_TD, first_TD, table_V1D, labels_T, weight_T, PIECES, ALPHA)
    plain = part(first_TD, table_V1D, labels_T, weight_T, PIECES)
    assert_near(total, plain[0], 1e-9)
    assert_near(nll, plain[1], 1e-9)
    inputs = first_TD, table_V1D
    for one, other in zip(torch.autograd.grad(total, inputs), torch.autograd.grad(plain[0], inputs), strict=True):
        assert_near(one, other, 1e-9)


@pytest.mark.parametrize("path", ["onednn", "bf16"])
def test_other_products_are_near(path: str) -> None:
    learned, labels_T, weight_T = given(21, torch.float32)
    exact, part = SmoothedCrossEntropy(0.1), SmoothedCrossEntropy(0.1)
    part.product = path  # type: ignore[assignment]
    found, wanted = (ours(one, learned, labels_T, weight_T) for one in (part, exact))
    for one, other in zip([*found[:2], *found[2]], [*wanted[:2], *wanted[2]], strict=True):
        assert (one - other).norm() <= 0.03 * other.norm()


def test_certain_predictions_keep_their_gradient_in_mixed_precision() -> None:
    """Where a label has nearly all of the probability, differences of rounded numbers would be noise."""
    generator = torch.Generator().manual_seed(0)
    tokens, pieces, d_model = 64, 8000, 256
    table_V1D = torch.randn(pieces + 1, d_model, generator=generator)
    labels_T = torch.randint(0, pieces, (tokens,), generator=generator)
    passes = [0.06 * table_V1D[labels_T] + 0.05 * torch.randn(tokens, d_model, generator=generator)]
    passes.append(passes[0] + 0.02 * torch.randn(tokens, d_model, generator=generator))
    learned = [one.requires_grad_() for one in (*passes, table_V1D)]
    assert (passes[0] @ table_V1D[:pieces].T).softmax(1)[torch.arange(tokens), labels_T].mean() > 0.95
    found = []
    for path in ("bf16", "exact"):
        part = SmoothedCrossEntropy(0.1)
        part.product = path  # type: ignore[assignment]
        total, _ = part.r_drop(*learned, labels_T, torch.ones(tokens), pieces, ALPHA)
        found.append(torch.autograd.grad(total, learned))
    for one, other in zip(*found, strict=True):
        assert (one - other).norm() <= 0.04 * other.norm()


@pytest.mark.gpu
def test_a_gpu_gives_the_same() -> None:
    learned, labels_T, weight_T = given(21)
    part = SmoothedCrossEntropy(0.1)
    there = [one.detach().cuda().requires_grad_() for one in learned]
    found, wanted = ours(part, there, labels_T.cuda(), weight_T.cuda()), ours(part, learned, labels_T, weight_T)
    for one, other in zip([*found[:2], *found[2]], [*wanted[:2], *wanted[2]], strict=True):
        assert_near(one.cpu(), other, 1e-9)
