import pytest
import torch

from regard.nn.attention.padded_groups import SMALLEST_GROUP, grid
from regard.nn.layout import Layout
from tests.models.small_models import sequences

RANDOM = torch.Generator().manual_seed(5)
MANY = torch.randint(1, 12, (4 * SMALLEST_GROUP + 3,), generator=RANDOM).tolist()


def test_similar_lengths_share_a_group() -> None:
    of = sequences(MANY)
    groups = grid(Layout(of, of), 2, causal=False).groups
    assert len(groups) == 4
    longest = [group.queries.shape[2] for group in groups]
    assert longest == sorted(longest)
    assert longest[0] < longest[-1] == max(MANY)
    cells = sum(len(group.queries.cells_X) for group in groups)
    assert cells < 0.7 * len(MANY) * 2 * max(MANY)


@pytest.mark.parametrize(
    ("short", "long", "padded"), [(8, 30, 8), (9, 30, 16), (15, 30, 16), (17, 30, 17), (9, 12, 12)]
)
def test_rows_that_nearly_fill_a_vector_are_padded_to_it(short: int, long: int, padded: int) -> None:
    of = sequences([short] * SMALLEST_GROUP + [long] * SMALLEST_GROUP)
    first, last = grid(Layout(of, of), 2, causal=True, whole_vectors=True).groups
    assert first.queries.shape[2] == first.keys.shape[2] == padded
    assert last.keys.shape[2] == long
    assert [group.queries.shape[2] for group in grid(Layout(of, of), 2, causal=True).groups] == [short, long]
