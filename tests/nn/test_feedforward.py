"""Feed-forwards: the gated one is the product of two projections, against plain products and transformers' T5."""

import pytest
import torch
from torch import nn

from regard.nn.layers import FeedForward
from tests.models.small_models import arrays, assert_near, stir

X_TD = torch.randn(6, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("activation", [nn.GELU("tanh"), nn.SiLU(), nn.ReLU()], ids=["gelu", "swish", "relu"])
def test_what_the_activation_opens_lets_the_other_projection_through(activation: nn.Module, biases: bool) -> None:
    part = FeedForward(10, 14, activation, biases=biases, gated=True).double()
    stir(part)
    weights = arrays(part)

    def line(name: str, x) -> torch.Tensor:
        product = torch.as_tensor(x) @ torch.as_tensor(weights[f"{name}.weight"]).T
        return product + torch.as_tensor(weights[f"{name}.bias"]) if biases else product

    opened = activation(line("inner", X_TD)) * line("gate", X_TD)
    assert_near(part(X_TD), line("outer", opened), 1e-12)
    assert any(name.endswith("bias") for name in weights) == biases


def test_it_is_the_one_of_t5() -> None:
    modeling = pytest.importorskip("transformers.models.t5.modeling_t5")
    from transformers import T5Config

    theirs = modeling.T5DenseGatedActDense(T5Config(d_model=10, d_ff=14, dense_act_fn="gelu_new", dropout_rate=0.0))
    theirs = theirs.double().eval()
    part = FeedForward(10, 14, nn.GELU("tanh"), biases=False, gated=True).double()
    names = {"inner": "wi_0", "gate": "wi_1", "outer": "wo"}
    part.load_state_dict({f"{our}.weight": getattr(theirs, their).weight for our, their in names.items()})
    assert_near(part(X_TD), theirs(X_TD), 1e-9)


@pytest.mark.parametrize("gated", [False, True])
def test_it_is_position_wise_and_drops_inside(gated: bool) -> None:
    part = FeedForward(10, 14, nn.SiLU(), dropout=0.5, gated=gated).double()
    assert not torch.allclose(part(X_TD), part(X_TD))
    part.eval()
    assert torch.equal(part(X_TD), part(X_TD))
    order_T = torch.randperm(6)
    assert_near(part(X_TD)[order_T], part(X_TD[order_T]), 1e-12)


def test_every_weight_of_it_is_learned() -> None:
    part = FeedForward(10, 14, nn.SiLU(), gated=True).double()
    stir(part)
    part(X_TD).square().sum().backward()
    for name, parameter in part.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_a_plain_one_without_biases_has_none() -> None:
    part = FeedForward(10, 14, nn.ReLU(), biases=False).double()
    assert sorted(arrays(part)) == ["inner.weight", "outer.weight"]
    assert not part(torch.zeros(3, 10, dtype=torch.float64)).any()
