import numpy as np
import pytest
import torch

from regard.nn.init import initialise
from regard.nn.recurrent import SSRU, Bridge, Elman, Gru, Lstm, Recurrent, Stack
from tests.models.small_models import arrays, assert_near, sequences, stir
from tests.reference import equations

CELLS = pytest.mark.parametrize("cell", [Elman, Gru, Lstm], ids=lambda cell: cell.__name__)
DIRECTIONS = pytest.mark.parametrize("directions", [1, 2])
LENGTHS = [3, 5, 0, 1, 5, 2]


def layer(cell: type[Recurrent], size_in: int, size: int, directions: int = 1) -> Recurrent:
    made = cell(size_in, size, directions)
    stir(made)
    return made.double()


def stack(cell: type[Recurrent], directions: int = 1, layers: int = 2, size: int = 8) -> Stack:
    return Stack([layer(cell, size, size // directions, directions) for _ in range(layers)], 0.0).eval()


def alone(of: Stack, x_LD: torch.Tensor, first: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """One sequence by torch's module as anybody calls it; its last state as one vector."""
    for part, given in zip(of.layers, first, strict=True):
        states = given.view(part.states, part.directions, part.size)
        given = (states[0], states[1]) if part.states == 2 else states[0]
        x_LD, last = part.kernel(x_LD, given)
    return x_LD, torch.stack(last).flatten() if isinstance(last, tuple) else last.flatten()


@CELLS
@DIRECTIONS
def test_a_packed_batch_is_torch_sequence_by_sequence(cell, directions: int) -> None:
    of, where = stack(cell, directions), sequences(LENGTHS, tail=3, spare=2)
    x_TD = torch.randn(where.size, 8, dtype=torch.float64, requires_grad=True)
    first = [torch.randn(len(LENGTHS), part.state_size, dtype=torch.float64) for part in of.layers]
    hidden_TD, last_BX = of(x_TD, where, first)
    for b, length in enumerate(LENGTHS):
        start = int(where.starts_B[b])
        if length:
            expected, last = alone(of, x_TD[start : start + length], [given[b] for given in first])
            assert_near(hidden_TD[start : start + length], expected, 1e-9)
            assert_near(last_BX[b], last, 1e-9)
        else:
            assert not last_BX[b].any()
    assert not hidden_TD[-3:].any()
    hidden_TD.sum().backward()
    assert not x_TD.grad[-3:].any()
    assert (x_TD.grad[:-3] != 0).any(1).all()


@CELLS
@DIRECTIONS
def test_gradients_are_those_of_torch_s_kernel(cell, directions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    of, where, found = stack(cell, directions), sequences(LENGTHS, tail=2), []
    for unrolled in (True, False):
        of.zero_grad()
        if not unrolled:
            monkeypatch.setattr(Recurrent, "_unroll", Recurrent._by_kernel)
        torch.manual_seed(3)
        x_TD = torch.randn(where.size, 8, dtype=torch.float64, requires_grad=True)
        first = [torch.randn(6, part.state_size, dtype=torch.float64, requires_grad=True) for part in of.layers]
        hidden_TD, last_BX = of(x_TD, where, first)
        (hidden_TD.square().sum() + last_BX.sin().sum()).backward()
        leaves = {"x": x_TD, "first": first[0], "first above": first[1], **dict(of.named_parameters())}
        found.append({"hidden": hidden_TD, "last": last_BX} | {name: leaf.grad for name, leaf in leaves.items()})
    for name, expected in found[1].items():
        assert_near(found[0][name], expected, 1e-9, name)


def test_by_time() -> None:
    where = sequences([2, 0, 3, 2], tail=2, spare=1)
    by_time = where.by_time
    assert by_time.order_N.tolist() == [2, 0, 3]
    assert by_time.live_L.tolist() == [3, 3, 1]
    assert by_time.tokens_R.tolist() == [2, 0, 5, 3, 1, 6, 4]
    x_TD = torch.arange(1.0, 10.0)[:, None]
    gathered = by_time.gather(x_TD)
    assert gathered[:, 0].tolist() == [3, 1, 6, 4, 2, 7, 5]
    assert by_time.back(gathered)[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 0, 0]
    assert sequences([]).by_time.live_L.tolist() == []


@CELLS
def test_without_first_states_they_are_zero(cell) -> None:
    of, where = stack(cell), sequences(LENGTHS)
    x_TD = torch.randn(where.size, 8, dtype=torch.float64)
    zeros = [torch.zeros(len(LENGTHS), part.state_size, dtype=torch.float64) for part in of.layers]
    for found, expected in zip(of(x_TD, where), of(x_TD, where, zeros), strict=True):
        assert torch.equal(found, expected)


@CELLS
@DIRECTIONS
def test_nothing_to_read(cell, directions: int) -> None:
    of = stack(cell, directions)
    hidden_TD, last_BX = of(torch.ones(2, 8, dtype=torch.float64), sequences([0, 0], tail=2))
    assert (hidden_TD.shape, last_BX.shape) == ((2, 8), (2, of.state_size))
    assert not hidden_TD.any()
    assert not last_BX.any()


@pytest.mark.parametrize("layers", [1, 2])
def test_dropout_lies_between_layers_only(layers: int) -> None:
    where, x_TD, of = sequences([3, 2]), torch.randn(5, 8, dtype=torch.float64), stack(Gru, layers=layers).train()
    of.dropout.probability = 0.5
    assert torch.equal(of(x_TD, where)[0], of(x_TD, where)[0]) == (layers == 1)


@pytest.mark.parametrize("layers", [1, 3])
def test_the_bridge(layers: int) -> None:
    bridge = Bridge(6, layers)
    stir(bridge)
    bridge.double()
    last_BX = torch.randn(4, 6, dtype=torch.float64)
    for i, first_BX in enumerate(bridge(last_BX)):
        rows = slice(6 * i, 6 * i + 6)
        weight, bias = (p[rows].detach().numpy() for p in (bridge.project.weight, bridge.project.bias))
        assert_near(first_BX, np.tanh(last_BX.numpy() @ weight.T + bias), 1e-12)


@CELLS
@DIRECTIONS
def test_starting_weights(cell, directions: int) -> None:
    of = cell(24, 16, directions)
    initialise(of, 3)
    for name, parameter in of.kernel.named_parameters():
        for gate, block in enumerate(parameter.detach().chunk(of.gates)):
            if name.startswith("weight_hh"):
                assert_near(block @ block.T, torch.eye(16), 1e-5)
            elif name.startswith("weight_ih"):
                assert 0.9 < block.abs().max() / (6 / 40) ** 0.5 <= 1
            else:
                forget = cell is Lstm and gate == 1 and name.startswith("bias_ih")
                assert (block == float(forget)).all()


def ssru(biases: bool = True, lengths: list[int] = LENGTHS):
    """The unit, sequences of a packed batch, and what enters."""
    part, where = SSRU(8, biases).double(), sequences(lengths, tail=3, spare=2)
    stir(part)
    return part, where, torch.randn(where.size, 8, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("lengths", [LENGTHS, [1], [0, 0], [2, 2]])
def test_an_ssru_is_a_plain_loop_over_each_sequence(biases: bool, lengths: list[int]) -> None:
    part, where, x_TD = ssru(biases, lengths)
    found_TD = part(x_TD, where)
    for start, length in zip(where.starts_B.tolist(), lengths, strict=False):
        expected = equations.ssru(x_TD[start : start + length].detach().numpy(), arrays(part))
        assert_near(found_TD[start : start + length], expected, 1e-12)
    assert not found_TD[-3:].any()


def test_an_ssru_s_gradients_are_exact() -> None:
    part, where, x_TD = ssru()

    def outputs(x_TD: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        names = [name for name, _ in part.named_parameters()]
        return torch.func.functional_call(part, dict(zip(names, weights, strict=True)), (x_TD, where))

    assert torch.autograd.gradcheck(outputs, (x_TD, *part.parameters()))
    part(x_TD, where).sum().backward()
    assert x_TD.grad is not None
    assert not x_TD.grad[-3:].any()


def test_an_ssru_step_by_step_is_all_at_once_to_the_bit() -> None:
    part, where, x_TD = ssru(lengths=[7])
    state_ND = x_TD.new_zeros(1, 8)
    for output_TD, x_ND in zip(part(x_TD, where)[:7].split(1), x_TD.split(1), strict=False):
        found_ND, state_ND = part.step(x_ND, state_ND)
        assert_near(found_ND, output_TD, 1e-15)
