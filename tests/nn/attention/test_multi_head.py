import logging

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.nn.attention import multi_head
from regard.nn.attention.multi_head import MultiHeadAttention, attend
from regard.nn.dropout import reseed
from regard.nn.layout import Layout
from tests.models.small_models import arrays, assert_near, only, sequences, stir
from tests.reference import equations


def tensors(queries: int, keys: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((queries, 2, 4), (keys, 2, 4), (keys, 2, 3))
    query_THK, key_SHK, value_SHU = (torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes)
    return query_THK, key_SHK, value_SHU


def by_hand(query_THK, key_SHK, value_SHU, layout: Layout, causal: bool) -> np.ndarray:
    context = np.zeros((len(query_THK), query_THK.shape[1], value_SHU.shape[2]))
    for b in range(layout.queries.count):
        q, k = (slice(int(s.starts_B[b]), int(s.starts_B[b] + s.lengths_B[b])) for s in (layout.queries, layout.keys))
        for head in range(query_THK.shape[1]):
            query, key, value = (x.numpy()[p, head] for x, p in ((query_THK, q), (key_SHK, k), (value_SHU, k)))
            context[q, head] = equations.attention(query, key, value, causal)
    return context


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=4), st.integers(0, 2))
def test_attend_is_the_equation_sequence_by_sequence(lengths, tail) -> None:
    """Under ``causal`` the last query stands at the last key, of the same tokens or of others."""
    queries, keys = (sequences([pair[side] for pair in lengths], tail) for side in (0, 1))
    for causal, layout in ((False, Layout(queries, keys)), (True, Layout(queries, keys)), (True, Layout(keys, keys))):
        given_QKV = tensors(layout.queries.size, layout.keys.size)
        assert_near(attend(*given_QKV, layout, causal=causal), by_hand(*given_QKV, layout, causal), 1e-12)


@pytest.mark.parametrize(("d_k", "d_v"), [(4, 4), (2, 5)])
def test_multi_head_attention_is_the_papers(d_k: int, d_v: int) -> None:
    part = MultiHeadAttention(6, 3, d_k, d_v).double()
    stir(part)
    x_TD, memory_SD = torch.randn(7, 6, dtype=torch.float64), torch.randn(8, 6, dtype=torch.float64)
    own, other = Layout(sequences([3, 4]), sequences([3, 4])), Layout(sequences([3, 4]), sequences([6, 2]))
    weights = arrays(part)
    for causal in (False, True):
        expected = [equations.multi_head(x, x, weights, 3, causal) for x in (x_TD[:3].numpy(), x_TD[3:].numpy())]
        assert_near(part(x_TD, x_TD, own, causal=causal), np.concatenate(expected), 1e-12)
    halves = ((x_TD[:3], memory_SD[:6]), (x_TD[3:], memory_SD[6:]))
    expected = [equations.multi_head(x.numpy(), m.numpy(), weights, 3) for x, m in halves]
    assert_near(part(x_TD, memory_SD, other, causal=False), np.concatenate(expected), 1e-12)


def test_weights_are_dropped_while_training_only() -> None:
    part = MultiHeadAttention(6, 3, 2, 2, dropout=0.5)
    x_TD, layout = torch.randn(9, 6), Layout(sequences([9]), sequences([9]))
    part.eval()
    still_TD = part(x_TD, x_TD, layout, causal=False)
    part.train()
    for allowed in ((), multi_head.BACKENDS):
        with only(*allowed):
            reseed(1)
            dropped_TD = part(x_TD, x_TD, layout, causal=False)
            assert not torch.allclose(dropped_TD, still_TD)
            reseed(1)
            assert torch.equal(part(x_TD, x_TD, layout, causal=False), dropped_TD)


def test_the_way_is_logged_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_head, "_seen", set())
    monkeypatch.setattr(multi_head._LOG, "disabled", False)  # the import contract's tool switches off loggers it finds
    layout = Layout(sequences([2]), sequences([2]))
    with caplog.at_level(logging.INFO, logger="regard"):
        for _ in range(2):
            attend(*tensors(2, 2), layout, causal=False)
    assert [record.getMessage() for record in caplog.records] == ["attention is computed the sdpa way"]
