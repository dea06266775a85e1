"""Windows through a model: every answer at its place, whatever was read together."""

import numpy as np
import pytest
import torch

from regard.models import inputs
from regard.models.inputs import Tokens
from regard.tasks.text.task import forward_batches, mean_over_windows


def sums(tokens: Tokens) -> torch.Tensor:
    """A row a sequence: its length and the sum of its ids."""
    rows = tokens.ids_T.split(tokens.sequences.lengths_B[: tokens.sequences.count].tolist())
    return torch.stack([torch.stack([torch.tensor(len(row)), row.sum()]) for row in rows])


def doubles(tokens: Tokens) -> torch.Tensor:
    """A row a token: twice its id, and its place in its sequence."""
    return torch.stack([2 * tokens.ids_T, tokens.sequences.positions_T], 1)


def windows(lengths: list[int]) -> list[np.ndarray]:
    draw = np.random.default_rng(3)
    return [draw.integers(0, 50, length) for length in lengths]


LENGTHS = [[3, 1, 7, 7, 2, 30, 1], [5], [], [1] * 40]


@pytest.mark.parametrize("room", [1, 8, 8192])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_each_window_and_each_token_gets_its_row(lengths: list[int], room: int) -> None:
    given = windows(lengths)
    found = forward_batches(sums, given, inputs.tokens, each=False, room=room)
    assert [row.tolist() for row in found] == [[len(one), one.sum()] for one in given]
    found = forward_batches(doubles, given, inputs.tokens, each=True, room=room)
    for rows, one in zip(found, given, strict=True):
        assert rows.tolist() == [[2 * id, place] for place, id in enumerate(one.tolist())]


def test_no_more_tokens_than_there_is_room_are_read_at_once() -> None:
    seen: list[int] = []

    def counted(tokens: Tokens) -> torch.Tensor:
        seen.append(len(tokens.ids_T))
        return sums(tokens)

    forward_batches(counted, windows([4, 9, 2, 5, 5, 20, 1]), inputs.tokens, each=False, room=10)
    assert sum(seen) == 46
    assert [count for count in seen if count > 10] == [20]  # one alone that is longer


def test_answers_are_full_precision_numbers_without_a_gradient() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16))

        def forward(self, tokens: Tokens) -> torch.Tensor:
            assert torch.is_inference_mode_enabled()
            return sums(tokens) * self.weight

    found = forward_batches(Model(), windows([2, 3]), inputs.tokens, each=False)
    assert [row.dtype for row in found] == [np.float32] * 2


def test_a_text_has_the_mean_of_its_windows() -> None:
    rows, counts = np.random.default_rng(2).normal(size=(7, 3)).astype(np.float32), np.array([1, 4, 2])
    found = mean_over_windows(rows, counts)
    expected = [rows[:1].astype(float).mean(0), rows[1:5].astype(float).mean(0), rows[5:].astype(float).mean(0)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(found[0], rows[0])
    assert mean_over_windows(np.zeros((0, 3), np.float32), np.zeros(0, np.int64)).shape == (0, 3)
