"""What each way can, and how it lays things out; that all are equal is a law (tests/laws/test_ways.py)."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec, patch

import pytest
import torch

from regard.nn.attention.backends import (
    BACKENDS,
    AttentionArgs,
    Native,
    PaddedSDPA,
    Reference,
    Varlen,
    _longest,
    _offsets_B1,
)
from regard.nn.autograd import native
from regard.nn.layout import Layout, Sequences
from regard.system import kernels
from tests.models.small_models import assert_near, sequences


class OnCuda:
    """What ``can`` asks of a tensor, without a device."""

    is_cuda, device = True, torch.device("cuda")

    def __init__(self, dtype: torch.dtype = torch.bfloat16, size: int = 8, requires_grad: bool = False) -> None:
        self.dtype, self.shape, self.requires_grad = dtype, (5, 2, size), requires_grad


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Stands for a GPU of a compute capability; at first one of the Hopper generation."""

    def of(major: int, minor: int) -> None:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (major, minor))

    of(9, 0)
    return of


def question(**changed: object) -> AttentionArgs:
    layout = Layout(sequences([2, 3]), sequences([2, 3]))
    return AttentionArgs(**{"layout": layout, "causal": False, "scale": 1.0, **changed})  # type: ignore[arg-type]


def test_the_reference_is_last_and_can_everything() -> None:
    assert [way.name for way in BACKENDS] == ["varlen", "native", "sdpa", "reference"]
    assert Reference().supports(torch.ones(1, 1, 1), torch.ones(1, 1, 1), question(bias=lambda q, k: q))


def test_kernels_are_for_training_with_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def can(x_THK: torch.Tensor, **changed: object) -> bool:
        return Native().supports(x_THK, x_THK, question(**changed))

    monkeypatch.setattr(kernels, "available", lambda: True)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    taught_THK, layout = torch.ones(5, 2, 4, requires_grad=True), question().layout
    same = Layout(layout.queries, layout.queries)
    assert can(taught_THK)
    assert can(taught_THK.bfloat16())
    assert can(taught_THK, bias=lambda q, k: q, layout=same, causal=True)
    assert not can(taught_THK.detach())
    assert not can(taught_THK.double())
    assert not can(taught_THK, dropout=0.1)
    assert not can(taught_THK, bias=lambda q, k: q)
    assert not can(taught_THK, layout=Layout(sequences([2, 3]), sequences([5, 0])))
    long = sequences([Native.LONGEST + 1, 2])
    assert not can(taught_THK, layout=Layout(long, long))
    assert can(taught_THK, layout=Layout(long, long), causal=True)
    assert not can(taught_THK, layout=Layout(sequences([2, 3]), Sequences.rows(torch.tensor([2, 3]), 3, 4)))
    monkeypatch.setattr(torch, "get_num_threads", lambda: native.THREADS + 1)
    assert not can(taught_THK)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(kernels, "available", lambda: False)
    assert not can(taught_THK)


@pytest.mark.skipif(not kernels.available(), reason="no compiler was there when Regard was installed")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_take_slices_and_narrow_numbers(dtype: torch.dtype) -> None:
    """Of a wide projection, whose parts lie side by side; a gradient that is one number for all."""
    of = sequences([2, 3])
    wide_TX = torch.randn(5, 40, generator=torch.Generator().manual_seed(3)).to(dtype).requires_grad_()
    arguments = question(layout=Layout(of, of), causal=True)
    results = []
    for way in (Native(), Reference()):
        leaf_TX = wide_TX.detach().to(dtype if way.name == "native" else torch.float64).requires_grad_()
        query, key, value = (x.unflatten(1, (2, -1)) for x in leaf_TX.split([14, 14, 12], 1))
        context_THU = way(query, key, value, arguments)
        assert context_THU.dtype == leaf_TX.dtype
        results.append((context_THU, torch.autograd.grad(context_THU.sum(), leaf_TX)[0]))
    for ours, exact in zip(*results, strict=True):
        assert_near(ours.float(), exact, 1e-5 if dtype == torch.float32 else 2e-2)


def test_padding_needs_keys() -> None:
    query_THK = torch.ones(5, 2, 4)
    can = PaddedSDPA().supports
    assert can(query_THK, query_THK, question(dropout=0.1, causal=True))
    assert can(query_THK, query_THK, question(bias=lambda q, k: q))
    assert not can(query_THK, query_THK, question(layout=Layout(sequences([2, 3]), sequences([5, 0]))))
    assert can(query_THK, query_THK, question(layout=Layout(sequences([5, 0]), sequences([2, 3]))))
    fewer_keys = Layout(sequences([2, 3]), sequences([2, 2]))
    assert can(query_THK, query_THK, question(layout=fewer_keys))
    assert not can(query_THK, query_THK, question(layout=fewer_keys, causal=True))  # the first query sees nothing


@pytest.mark.usefixtures("gpu")
def test_varlen_needs_a_gpu_half_precision_and_equal_sizes() -> None:
    can = Varlen().supports
    assert can(OnCuda(), OnCuda(), question())
    assert can(OnCuda(torch.float16), OnCuda(torch.float16), question(causal=True))
    assert not can(torch.ones(5, 2, 8).bfloat16(), torch.ones(5, 2, 8).bfloat16(), question())
    assert not can(OnCuda(torch.float32), OnCuda(torch.float32), question())
    assert not can(OnCuda(), OnCuda(size=16), question())
    assert not can(OnCuda(), OnCuda(), question(dropout=0.1))
    assert not can(OnCuda(), OnCuda(), question(bias=lambda q, k: q))
    rows = Sequences.rows(torch.tensor([2, 3]), 3, 4)
    assert not can(OnCuda(), OnCuda(), question(layout=Layout(sequences([1, 1]), rows)))


@pytest.mark.parametrize(
    ("capability", "expected"),
    [((7, 0), "sdpa"), ((7, 5), "sdpa"), ((8, 0), "varlen"), ((8, 9), "varlen"), ((12, 0), "varlen")],
)
def test_a_gpu_before_ampere_attends_by_padding(gpu, capability: tuple[int, int], expected: str) -> None:
    gpu(*capability)
    assert chosen(OnCuda()) == expected
    assert chosen(OnCuda(torch.float16)) == expected


@pytest.mark.usefixtures("gpu")
def test_varlen_leaves_sizes_of_heads_it_cannot_to_padding() -> None:
    assert {size for size in range(1, 600) if chosen(OnCuda(size=size)) == "varlen"} == set(range(8, 257, 8))
    taught = {size for size in range(1, 600) if chosen(OnCuda(size=size, requires_grad=True)) == "varlen"}
    assert taught == set(range(8, 257, 8)) - {200, 208, 216, 224}


@pytest.mark.usefixtures("gpu")
def test_varlen_needs_a_token_on_both_sides() -> None:
    some, none = sequences([2, 3]), sequences([0, 0], tail=5)
    for layout in (Layout(none, some), Layout(some, none), Layout(none, none)):
        assert not Varlen().supports(OnCuda(), OnCuda(), question(layout=layout))


@pytest.mark.usefixtures("gpu")
def test_varlen_has_a_block_of_the_grid_for_each_sequence() -> None:
    """A grid has 65,535; one is of the tokens behind the last sequence."""
    for count, can in ((65_534, True), (65_535, False)):
        many = sequences([1] * count)
        assert Varlen().supports(OnCuda(), OnCuda(), question(layout=Layout(many, many))) is can


def chosen(of: OnCuda) -> str:
    """The way that attention takes for tensors like this."""
    return next(way.name for way in BACKENDS if way.supports(of, of, question()))


SINCE = {"scale": (2, 11), "window_size": (2, 11)}
"""The version of torch in which ``varlen_attn`` first takes a keyword."""


@pytest.mark.parametrize("causal", [False, True])
def test_the_lower_bound_of_torch_is_what_varlen_asks_of_it(causal: bool) -> None:
    from torch.nn.attention import varlen  # slow to import: it brings a compiler

    asked: Any = create_autospec(varlen.varlen_attn, side_effect=lambda query, *_, **__: query)
    with patch.object(varlen, "varlen_attn", asked):  # a call that the torch at hand would refuse is an error
        x_THK = torch.ones(5, 2, 8)
        Varlen()(x_THK, x_THK, x_THK, question(causal=causal))
    needed = max(SINCE[keyword] for keyword in asked.call_args.kwargs)
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (bound,) = (line.removeprefix("torch>=") for line in project["dependencies"] if line.startswith("torch>="))
    assert tuple(map(int, bound.split("."))) == needed


@pytest.mark.parametrize(("lengths", "tail", "spare"), [([3, 2], 0, 0), ([3, 2], 4, 0), ([3, 0, 2], 4, 3), ([4], 9, 1)])
def test_offsets_cover_the_axis_once(lengths: list[int], tail: int, spare: int) -> None:
    of = sequences(lengths, tail, spare)
    offsets_B1 = _offsets_B1(of)
    assert offsets_B1.dtype == torch.int32
    assert offsets_B1.tolist()[:-1] == [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    assert offsets_B1[-1] == of.size == sum(lengths) + tail
    assert _longest(of) == max(*lengths, tail, 0)
    assert offsets_B1.diff().max() == _longest(of)


@pytest.mark.parametrize("causal", [False, True])
def test_padding_in_bf16_rounds_its_results_only(causal: bool) -> None:
    of = sequences([3, 1, 6], tail=2)
    layout = Layout(of, of if causal else sequences([2, 5, 4], tail=1))
    shapes = ((layout.queries.size, 2, 4), (layout.keys.size, 2, 4), (layout.keys.size, 2, 3))
    low = [torch.randn(shape).bfloat16().requires_grad_() for shape in shapes]
    exact = [x.detach().double().requires_grad_() for x in low]
    asked = AttentionArgs(layout, causal, 0.5)
    found, expected = PaddedSDPA()(*low, asked), Reference()(*exact, asked)
    direction = torch.randn(expected.shape).bfloat16()
    ours = (found, *torch.autograd.grad(found, low, direction))
    theirs = (expected, *torch.autograd.grad(expected, exact, direction.double()))
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == torch.bfloat16
        assert_near(one.float(), other, 6e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tail", [0, 3])
def test_varlen_equals_the_reference_on_a_gpu(causal: bool, tail: int) -> None:
    queries = sequences([3, 17, 0, 5], tail)
    layout = Layout(on(queries), on(queries if causal else sequences([9, 2, 4, 30], tail)))
    shapes = ((layout.queries.size, 2, 16), (layout.keys.size, 2, 16), (layout.keys.size, 2, 16))
    half = [torch.randn(s, device="cuda", dtype=torch.bfloat16, requires_grad=True) for s in shapes]
    exact = [x.detach().double().requires_grad_() for x in half]
    asked = AttentionArgs(layout, causal, 0.25)
    assert Varlen().supports(half[0], half[2], asked)
    found, expected = Varlen()(*half, asked), Reference()(*exact, asked)
    direction = torch.randn_like(expected)
    for ours, theirs in zip(
        (found, *torch.autograd.grad(found, half, direction.bfloat16())),
        (expected, *torch.autograd.grad(expected, exact, direction)),
        strict=True,
    ):
        assert_near(ours.float().cpu(), theirs.cpu(), 2e-2)


def on(of: Sequences) -> Sequences:
    return Sequences(of.starts_B.cuda(), of.lengths_B.cuda(), of.count, of.longest, of.size)
