import pytest
import torch

from regard.nn.attention.padded_groups import SMALLEST_GROUP, grid
from regard.nn.layout import Layout
from tests.models.small_models import sequences

RANDOM = torch.Generator().manual_seed(5)
MANY = torch.randint(1, 12, (4 * SMALLEST_GROUP + 3,), generator=RANDOM).tolist()


@pytest.mark.parametrize("lengths", [[3], [2, 5, 1], [0, 4, 0, 2], MANY, [*MANY, *[0] * 70]])
@pytest.mark.parametrize("tail", [0, 5])
@pytest.mark.parametrize("whole_vectors", [False, True])
def test_every_token_has_one_home_and_finds_back(lengths: list[int], tail: int, whole_vectors: bool) -> None:
    heads, of = 3, sequences(lengths, tail)
    made = grid(Layout(of, of), heads, causal=True, whole_vectors=whole_vectors)
    rows_YK = torch.arange(1.0, of.size * heads + 1)[:, None]
    cells_XK = torch.cat([group.queries.take(rows_YK).flatten(0, 1) for group in made.groups] + [torch.zeros(1, 1)])
    back_XK = cells_XK[made.query_homes_Y]
    inside = sum(lengths) * heads
    assert torch.equal(back_XK[:inside], rows_YK[:inside])
    assert (back_XK[inside:] == 0).all()
    assert len(set(made.query_homes_Y[:inside].tolist())) == inside


def test_what_is_no_token_is_taken_as_zero() -> None:
    of = sequences([3, 1, 2])
    (group,) = grid(Layout(of, of), 2, causal=False).groups
    taken = group.queries.take_real(torch.ones(of.size * 2, 4))
    lengths = sorted([3, 3, 1, 1, 2, 2])  # a row of the grid is a sequence's head
    assert taken[..., 0].sum(1).sort().values.tolist() == lengths


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


def test_the_bias_forbids_what_may_not_be_seen() -> None:
    queries, keys = sequences([2, 3, 1]), sequences([4, 3, 2])
    for causal, layout in ((False, Layout(queries, keys)), (True, Layout(queries, keys)), (True, Layout(keys, keys))):
        (group,) = grid(layout, 1, causal).groups
        order = (layout.queries.lengths_B + layout.keys.lengths_B).argsort(stable=True)
        assert group.bias is not None
        bias_BLM = group.bias.expand(3, -1, -1)
        for row, b in enumerate(order.tolist()):
            length, seen = int(layout.queries.lengths_B[b]), int(layout.keys.lengths_B[b])
            for place in range(length):
                until = seen - length + place + 1 if causal else seen
                allowed = (bias_BLM[row, place] == 0).nonzero()[:, 0].tolist()
                assert allowed == list(range(until))
