"""Models that answer at once, for tests of what a command does with their answers."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from regard.config import TASKS
from regard.tasks.text.output_options import OutputOptions
from regard.tasks.text.writer import Hypothesis
from regard.tasks.translation.alternatives import Alternative, WordAlternatives
from regard.tasks.translation.word_confidence import Word
from regard.text.confidence import NOT_CALIBRATED


def answering(command: str, task: Callable[[], Any]) -> Any:
    """A fixture: the command, whose model folder holds such a task."""

    @pytest.fixture
    def run(regard: Any, loaded: Any) -> Any:
        loaded(task())
        return partial(regard, command, "model")

    return run


class Unaware:
    """A model whose folder says neither what training read nor which confidence is usual."""

    assets = SimpleNamespace(doubted_below=None, calibration=NOT_CALIBRATED, terms=None)
    target_tokenizer = SimpleNamespace(piece=lambda id: f"▁{id}")
    device = device_name = "cpu"
    engine = None
    others, terminology = (), None
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

    def write(
        self, texts: list[str], options: OutputOptions, first: int = 1, prefixes: list[str] | None = None
    ) -> list[list[Hypothesis]]:
        if options.sample:
            whole = [
                f"{text.upper()} {options.seed} {number} {dict(options.drawing)}"
                for number, text in enumerate(texts, first)
            ]
            return [[Hypothesis(f"{one}.{i}", (i,), -1.0) for i in range(options.n)] for one in whole]
        given = zip(texts, prefixes or [""] * len(texts), strict=True)
        whole = [begin + text.upper() for text, begin in given]
        return [[Hypothesis(text + "!" * i, (len(text), i), -0.5 - i) for i in range(options.n)] for text in whole]

    def words(self, translation: Hypothesis) -> list[Word]:
        return [Word(translation.text, 0, len(translation.text), 0.5)]

    def alternatives(self, text: str, n: int, beam: int | None, best: Any) -> list[WordAlternatives]:
        others = tuple(Alternative(f"{text}{i}", f"all of {i}", 0.5 / (i + 1)) for i in range(n))
        return [WordAlternatives(text.upper(), 0, len(text), others)]
