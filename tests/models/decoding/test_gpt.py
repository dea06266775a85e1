"""The step of a decoder-only model against its forward pass: prompts, beams, rows that come and go, sliding windows."""

import numpy as np
import pytest
import torch

from regard.models.decoding import gpt as gpt_stepper
from regard.models.decoding import stepper
from regard.models.decoding.gpt import GptStepper
from tests.models.decoding import rows_by_hand
from tests.models.small_models import PIECES, gpt, texts

RANDOM = np.random.default_rng(5)


def prompts(lengths: list[int]) -> list[np.ndarray]:
    return [RANDOM.integers(0, PIECES, length) for length in lengths]


def seen(read: list[int], prompt: int, window: int | None) -> list[int]:
    """The tokens that the newest one sees, by the rule in plain words, token by token."""
    if window is None:
        return read
    held = read[max(0, prompt - (window - 1)) : prompt]
    for token in read[prompt:]:
        if len(held) == window:
            held = held[window - window // 2 :]
        held = [*held, token]
    return held


class Rows(rows_by_hand.Rows):
    """Rows of prompts, which are of what is read."""

    def expected(self, source: np.ndarray, read: list[int]) -> np.ndarray:
        whole = seen([*source.tolist(), *read], len(source), self.step.window)
        with torch.no_grad():
            scores = self.step.model.scores(self.step.model(texts([np.array(whole, np.int64)])))
        return scores.log_softmax(1)[-1].numpy()


@pytest.mark.one_of(10)
@pytest.mark.parametrize(
    "choices", [{}, {"norm_place": "post", "positions": "relative", "d_k": 2, "d_v": 5}, {"positions": "sinusoidal"}]
)
@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_random_search_is_the_forward_pass_of_each_row(choices, window, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = Rows(GptStepper(gpt(**choices), window=window), prompts([4, 0, 7]))
    for _ in range(9):
        rows.read(random.integers(0, PIECES, len(rows.rows)).tolist())
        kept = np.repeat(np.arange(len(rows.rows)), random.integers(0, 3, len(rows.rows)))
        rows.select(kept[:6].tolist() or [0])
        if random.random() < 0.4:
            rows.admit(prompts(random.integers(0, 9, 2).tolist()))


def test_all_prompts_may_be_empty() -> None:
    rows = Rows(GptStepper(gpt()), prompts([0, 0]))
    rows.read([3, 4])
    rows.admit(prompts([0]))
    rows.read([5, 6, 7])


def test_arenas_grow_beyond_their_first_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpt_stepper, "ROOM", 1)
    rows = Rows(GptStepper(gpt()), prompts([2, 0]))
    for length in range(12):
        rows.read([2 + (length + row) % 7 for row in range(len(rows.rows))])
        if length == 3:
            rows.select([1, 1, 0])
    assert rows.state.pasts[0].stride >= 12


def test_learned_positions_are_a_window_and_never_run_out() -> None:
    step = stepper(gpt(max_positions=6))
    assert step.window == 6
    rows = Rows(step, prompts([3, 20, 6]))
    for length in range(20):
        rows.read([2 + length % 7, 3, 4])
        assert rows.state.lengths_N.max() <= 6


@pytest.mark.one_of(3)
@pytest.mark.parametrize("window", [1, 2, 3])
def test_the_smallest_windows(window: int) -> None:
    rows = Rows(stepper(gpt(), window=window), prompts([0, 4]))
    for length in range(6):
        rows.read([2 + length, 5])


def test_a_narrower_window_than_the_positions_and_a_wider_one() -> None:
    assert stepper(gpt(max_positions=6), window=4).window == 4
    assert stepper(gpt(max_positions=6), window=40).window == 6
    assert stepper(gpt(positions="none"), window=40).window == 40
    assert stepper(gpt(positions="none")).window is None


def test_no_gradient_is_kept() -> None:
    step = GptStepper(gpt())
    state, answer = step.step(step.start(prompts([3])), np.array([4]))
    assert not state.pasts[0].key_SHK.requires_grad
    assert answer.all().shape == (1, PIECES)
    assert answer.context() is None
