"""Models that answer at once, for tests of what a command does with their answers."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from regard.config import TASKS
from regard.tasks.translation.translator import Hypothesis


def answering(command: str, task: Callable[[], Any]) -> Any:
    """A fixture: the command, whose model folder holds such a task."""

    @pytest.fixture
    def run(regard: Any, loaded: Any) -> Any:
        loaded(task())
        return partial(regard, command, "model")

    return run


class Unaware:
    """A model whose folder says neither what training read nor which confidence is usual."""

    assets = SimpleNamespace(doubted_below=None)
    target_tokenizer = SimpleNamespace(piece=lambda id: f"▁{id}")
    device = device_name = "cpu"
    engine = None
    is_zero_shot = False

    def guess_language(self, text: str) -> None:
        return None

    def unseen_words(self, text: str) -> None:
        return None

    def unseen_words_batch(self, texts: list[str]) -> None:
        return None


class Shouts(Unaware):
    """A translator into capitals."""

    info = TASKS["translation"]

    def nbest(
        self, texts: list[str], n: int = 1, beam: int | None = None, first: int = 1, scores: bool = True
    ) -> list[list[Hypothesis]]:
        return [[Hypothesis(text.upper() + "!" * i, (len(text), i), -0.5 - i) for i in range(n)] for text in texts]
