"""Models that answer at once, for tests of what a command does with their answers."""

from types import SimpleNamespace

from regard.config import TASKS
from regard.tasks.translation.translator import Hypothesis


class Unaware:
    """A model whose folder says neither what training read nor which confidence is usual."""

    assets = SimpleNamespace(doubted_below=None)
    target_tokenizer = SimpleNamespace(piece=lambda id: f"▁{id}")
    device = device_name = "cpu"
    engine = None

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
