import pytest
import torch

from regard.nn.attention.kv_cache import KVCache


def filled(rows: int, stride: int) -> KVCache:
    arena = KVCache.empty((torch.zeros(0, 2, 3), torch.zeros(0, 2, 4)), rows, stride)
    arena.write(torch.arange(rows * stride), torch.randn(rows * stride, 2, 3), torch.randn(rows * stride, 2, 4))
    return arena


def rows(arena: KVCache) -> torch.Tensor:
    both = torch.cat([arena.key_SHK, arena.value_SHU], dim=2)
    return both.unflatten(0, (arena.rows, arena.stride)).clone()


def test_writing_touches_its_places_only() -> None:
    arena = filled(3, 4)
    before = rows(arena)
    arena.write(torch.tensor([1, 10]), torch.ones(2, 2, 3), torch.ones(2, 2, 4))
    changed = (rows(arena) != before).flatten(2).any(2)
    assert changed.nonzero().tolist() == [[0, 1], [2, 2]]


@pytest.mark.parametrize("chosen", [[2, 0, 1], [1, 1, 1], [2], [0, 0, 1, 1, 2, 2, 2], [2, 1]])
def test_rows_are_selected(chosen: list[int]) -> None:
    arena = filled(3, 4)
    before = rows(arena)
    after = rows(arena.select(torch.tensor(chosen), longest=3))
    assert torch.equal(after[: len(chosen), :3], before[chosen][:, :3])


def test_it_grows_and_keeps_what_it_holds() -> None:
    arena = filled(3, 4)
    before = rows(arena)
    larger = arena.grow(5, 9)
    assert (larger.rows, larger.stride) == (5, 9)
    assert torch.equal(rows(larger)[:3, :4], before)
    assert larger.grow(2, 3) is larger
