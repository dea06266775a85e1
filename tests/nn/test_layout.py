import pytest
import torch

from regard.nn.layout import Layout
from tests.models.small_models import sequences


def test_positions_and_membership_follow_from_starts_and_lengths() -> None:
    of = sequences([3, 0, 2], tail=2, spare=2)
    assert of.positions_T.tolist() == [0, 1, 2, 0, 1, 0, 0]
    assert of.inside_T.tolist() == [True] * 5 + [False] * 2
    assert not of.covers_all_tokens
    flat = of.grid_BL.flatten()
    for token in range(5):
        assert flat[of.cells_T[token]] == token
        assert of.real_BL.flatten()[of.cells_T[token]]


def test_runs_are_those_of_equal_numbers_in_a_sequence() -> None:
    of = sequences([4, 5, 0, 3], tail=2, spare=1)
    tokens, runs = of.runs(torch.tensor([0, 1, 1, 0, 0, 2, 3, 3, 0, 0, 4, 4, 0, 0]))
    assert tokens.starts_B.tolist() == [0, 1, 3, 4, 5, 6, 8, 9, 10]  # what has no number is alone
    assert tokens.lengths_B.tolist() == [1, 2, 1, 1, 1, 2, 1, 1, 2]
    assert (tokens.count, tokens.longest, tokens.size) == (9, 2, 14)
    assert runs.lengths_B.tolist() == [3, 4, 0, 2]
    assert (runs.starts_B.tolist(), runs.count, runs.longest, runs.size) == ([0, 3, 7, 7], 4, 4, 9)
    _, runs = sequences([2, 2]).runs(torch.tensor([7, 7, 7, 7]))
    assert runs.lengths_B.tolist() == [1, 1]  # no run reaches into the next sequence
    tokens, runs = sequences([0, 0]).runs(torch.zeros(0, dtype=torch.int64))
    assert (tokens.count, tokens.longest, runs.count, runs.longest) == (0, 0, 2, 0)


def test_a_layout_pairs_sequences() -> None:
    with pytest.raises(ValueError):
        Layout(sequences([1, 2]), sequences([1, 2, 3]))
    assert Layout(sequences([0, 2]), sequences([0, 1])).every_query_has_keys(causal=False)
    assert not Layout(sequences([1, 2]), sequences([0, 1])).every_query_has_keys(causal=False)
    assert not Layout(sequences([0, 2]), sequences([0, 1])).every_query_has_keys(causal=True)
    assert Layout(sequences([2, 2]), sequences([2, 9], spare=3)).every_query_has_keys(causal=True)


@pytest.mark.parametrize("causal", [False, True])
def test_what_is_allowed(causal: bool) -> None:
    layout = Layout(sequences([1, 3], spare=1), sequences([4, 3], spare=1))
    allowed_BLM = layout.allowed_BLM(causal)
    for b, (queries, keys) in enumerate([(1, 4), (3, 3)]):
        for query in range(queries):
            for key in range(4):
                assert bool(allowed_BLM[b, query, key]) == (
                    key < keys and (not causal or key <= query + keys - queries)
                )


def test_what_is_derived_is_made_once() -> None:
    layout, made = Layout(sequences([1]), sequences([1])), []
    assert [layout.once("key", lambda: made.append(1) or len(made)) for _ in range(3)] == [1, 1, 1]
    assert layout.once("other", lambda: 5) == 5
    assert made == [1]
