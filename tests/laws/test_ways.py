"""The law of ways: every way of attention is the reference way, forward and gradient."""

import pytest
import torch

from regard.nn.attention import backends
from regard.nn.attention.backends import AttentionArgs, Native, PaddedSDPA, Reference, _torch_sdpa
from regard.nn.attention.multi_head import attend
from regard.nn.attention.padded_groups import SMALLEST_GROUP
from regard.nn.autograd import native
from regard.nn.hooks import intervene
from regard.nn.layout import Layout
from regard.nn.positions import Relative
from regard.system import kernels
from tests.laws.families import DTYPES, Family, held
from tests.models.small_models import assert_near, only, sequences, tolerance

RANDOM = torch.Generator().manual_seed(11)
MANY = torch.randint(1, 9, (2 * SMALLEST_GROUP + 5,), generator=RANDOM).tolist()
VECTORS = [*torch.randint(5, 15, (2 * SMALLEST_GROUP,), generator=RANDOM).tolist(), 21, 18, 17]
"""Groups of these are padded to whole vectors."""
LAYOUTS = {
    "even": ([4, 4, 4], [4, 4, 4]),
    "one": ([1], [1]),
    "uneven": ([3, 1, 7, 2], [3, 1, 7, 2]),
    "empty sequences": ([0, 3, 0, 5], [0, 3, 0, 5]),
    "keys without queries": ([0, 3, 2], [4, 3, 6]),
    "many": (MANY, MANY),
    "many and empty": (MANY + [0] * (2 * SMALLEST_GROUP), MANY + [0] * (2 * SMALLEST_GROUP)),
    "whole vectors": (VECTORS, VECTORS),
    "all empty": ([0, 0], [0, 0]),
    "cross": ([3, 1, 7, 2], [5, 2, 1, 9]),
    "cross, many": (MANY, MANY[::-1]),
    "cross, whole vectors": (MANY[: len(VECTORS)], VECTORS),
    "more keys": ([3, 1, 7, 2], [5, 2, 9, 2]),
}
SAME = {"even", "one", "uneven", "empty sequences", "many", "many and empty", "whole vectors", "all empty"}
CAUSAL = SAME | {"more keys", "keys without queries"}


def padded_with_gradient(*asked) -> torch.Tensor:
    assert PaddedSDPA().supports(asked[0], asked[2], asked[3])
    return PaddedSDPA()(*asked)


def by_kernels(*asked) -> torch.Tensor:
    assert Native().supports(asked[0], asked[2], asked[3])
    return Native()(*asked)


WAYS = {"padded": padded_with_gradient, "torch": _torch_sdpa, "native": by_kernels}


def lacks(way: str, dtype: torch.dtype) -> bool:
    """Whether a way does not compute in a precision here."""
    can = kernels.available() and torch.get_num_threads() <= native.THREADS
    return way == "native" and (dtype == torch.float64 or not can)


@pytest.mark.one_of(10)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("tail", [0, 4])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "causal"), [(name, causal) for causal in (False, True) for name in (sorted(CAUSAL) if causal else LAYOUTS)]
)
def test_ways(name: str, causal: bool, way: str, tail: int, dtype: torch.dtype) -> None:
    if lacks(way, dtype):
        return
    queries, keys = LAYOUTS[name]
    of = sequences(queries, tail, spare=2)
    layout = Layout(of, of if name in SAME else sequences(keys, tail, spare=2))
    if layout.queries.longest == 0:
        given = tensors(layout, dtype)
        for padded_or_not in (PaddedSDPA(), Native()):
            assert not padded_or_not.supports(given[0], given[2], AttentionArgs(layout, causal, 0.4))
        assert not attend(*given, layout, causal=causal).any()
        return
    compare(layout, causal, way, dtype)


def tensors(layout: Layout, dtype: torch.dtype, gradient: bool = True) -> list[torch.Tensor]:
    """Queries, keys and values of two heads."""
    sizes = ((layout.queries.size, 4), (layout.keys.size, 4), (layout.keys.size, 3))
    return [torch.randn(size, 2, d, dtype=dtype).requires_grad_(gradient) for size, d in sizes]


def compare(layout: Layout, causal: bool, way: str, dtype: torch.dtype, relates: bool = False) -> None:
    """One way and the reference: the context and every gradient, that of a table of relative positions too."""
    given, ours = tensors(layout, dtype), relative(not causal, dtype)
    exact, theirs = [x.detach().double().requires_grad_() for x in given], relative(not causal)
    theirs.load_state_dict({"weight": ours.weight})
    biases = (ours.bias(), theirs.bias()) if relates else (None, None)
    found = WAYS[way](*given, AttentionArgs(layout, causal, 0.4, biases[0]))
    expected = Reference()(*exact, AttentionArgs(layout, causal, 0.4, biases[1]))
    assert_near(found, expected, tolerance(dtype), "context")
    direction = torch.randn(expected.shape, dtype=torch.float64)
    our = torch.autograd.grad(found, [*given, *([ours.weight] * relates)], direction.to(dtype))
    their = torch.autograd.grad(expected, [*exact, *([theirs.weight] * relates)], direction)
    most = max(float(gradient.abs().max()) for gradient in their)  # a lone key's gradient is all rounding
    for part, one, other in zip(("query", "key", "value", "table")[: len(our)], our, their, strict=True):
        assert_near(one, other, tolerance(dtype) * max(1.0, most / max(float(other.abs().max()), 1e-30)), part)


def relative(two_way: bool, dtype: torch.dtype = torch.float64) -> Relative:
    """Relative positions of two heads, few enough buckets that distances share them."""
    part = Relative(2, 6, 8, two_way).to(dtype)
    torch.nn.init.normal_(part.weight, generator=torch.Generator().manual_seed(5))
    return part


@pytest.mark.one_of(10)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "causal"),
    [(name, causal) for causal in (False, True) for name in sorted(CAUSAL if causal else SAME) if "all" not in name],
)
def test_ways_with_relative_positions(name: str, causal: bool, way: str, dtype: torch.dtype) -> None:
    """The bias is one table: its gradient, from all sequences and heads together, is the same every way."""
    if lacks(way, dtype) or (way == "native" and name not in SAME):
        return
    queries, keys = LAYOUTS[name]
    of = sequences(queries, 3, spare=1)
    layout = Layout(of, of if name in SAME else sequences(keys, 3, spare=1))
    compare(layout, causal, way, dtype, relates=True)


@pytest.mark.parametrize("causal", [False, True])
def test_the_reference_adds_the_bias_of_each_distance(causal: bool) -> None:
    lengths, part = [3, 9, 1], relative(not causal)
    of = sequences(lengths)
    query_THK, key_THK, value_THU = (torch.randn(of.size, 2, size, dtype=torch.float64) for size in (4, 4, 3))
    found_THU = Reference()(query_THK, key_THK, value_THU, AttentionArgs(Layout(of, of), causal, 0.4, part.bias()))
    begin = 0
    for length in lengths:
        bias_HLM = part.bias()(torch.arange(length), torch.arange(length))
        for head in range(2):
            rows = slice(begin, begin + length)
            for place in range(length):
                seen = place + 1 if causal else length
                score = 0.4 * key_THK[rows, head][:seen] @ query_THK[begin + place, head] + bias_HLM[head, place, :seen]
                expected_U = score.softmax(0) @ value_THU[rows, head][:seen]
                assert_near(found_THU[begin + place, head], expected_U, 1e-12)
        begin += length


@pytest.mark.parametrize("way", ["chosen", "reference"])
@pytest.mark.parametrize("gradient", [False, True], ids=["no_grad", "grad"])
@pytest.mark.parametrize(
    ("queries", "keys", "causal", "alone"),
    [
        ([2, 3, 1], [4, 0, 2], False, [2, 3, 4]),
        ([2, 3, 1], [0, 0, 0], False, [0, 1, 2, 3, 4, 5]),
        ([2, 3, 1], [2, 0, 1], True, [2, 3, 4]),
        ([2, 4, 1], [2, 1, 3], True, [2, 3, 4]),
    ],
)
def test_a_query_without_keys_has_no_context_and_no_gradient(queries, keys, causal, alone, gradient, way) -> None:
    layout = Layout(sequences(queries, tail=2), sequences(keys, tail=1))
    given = tensors(layout, torch.float64, gradient)
    with only(*(() if way == "reference" else backends.BACKENDS)):
        context_THU = attend(*given, layout, causal=causal)
    alone_T = torch.zeros(layout.queries.size, dtype=torch.bool)
    alone_T[[*alone, -1, -2]] = True
    assert torch.equal(context_THU.flatten(1).any(1), ~alone_T)
    if context_THU.requires_grad:  # where no query has a key, nothing leads back
        query_gradient, key_gradient, value_gradient = torch.autograd.grad(context_THU.square().sum(), given)
        assert not query_gradient[alone_T].any()
        assert not key_gradient[-1].any()
        assert not value_gradient[-1].any()
        assert gradient
        assert all(torch.isfinite(x).all() for x in (query_gradient, key_gradient, value_gradient))


def test_tokens_of_no_sequence_touch_nothing_whatever_they_hold() -> None:
    for queries, keys in (([3, 2], [3, 2]), ([2, 3], [4, 1]), (MANY, MANY)):
        layout = Layout(sequences(queries, tail=3), sequences(keys, tail=3))
        given = tensors(layout, torch.float64, gradient=False)
        plain_THU = attend(*given, layout, causal=False)
        for tensor in given:
            tensor[-3:] = 1e30
        assert torch.equal(attend(*given, layout, causal=False), plain_THU)
        assert not plain_THU[-3:].any()


def test_weights_dropped_keep_their_mean() -> None:
    of = sequences([5] * 400)
    given = (torch.randn(of.size, 1, 4), torch.randn(of.size, 1, 4), torch.ones(of.size, 1, 1))
    for allowed in ((), backends.BACKENDS):
        with only(*allowed):
            contexts = [attend(*given, Layout(of, of), causal=False, dropout=0.25) for _ in range(5)]
        assert abs(torch.stack(contexts).mean().item() - 1) < 0.02


@pytest.mark.one_of(14)
@held("rnn", "rnn-encoder")
@DTYPES
def test_ways_of_a_recurrence(family: Family, dtype: torch.dtype) -> None:
    """Written out for training or by torch's kernels, in groups or sequence by sequence: one model, one gradient."""
    found = []
    for looked_at in ("nothing", "*.weight"):
        model, given = family.model(dtype), family.given(dtype, tail=2)
        with intervene(looked_at, lambda value: value):
            said = model(given)
        (said * torch.linspace(-1, 1, said.numel()).view_as(said)).sum().backward()
        found.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
        with torch.no_grad():
            assert_near(model(given), said, tolerance(dtype))
    for name, expected in found[1].items():
        assert_near(found[0][name], expected, tolerance(dtype), name)
