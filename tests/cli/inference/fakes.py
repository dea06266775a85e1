"""What the fake models of these tests share."""

from types import SimpleNamespace


class Numbered:
    """Stands for a tokenizer whose pieces are called by their numbers."""

    def piece(self, id: int) -> str:
        return f"▁{id}"


class Unaware:
    """A model whose folder says neither what training read nor which confidence is usual."""

    assets = SimpleNamespace(doubted_below=None)

    target_tokenizer = Numbered()

    def unseen_words(self, text: str) -> None:
        return None

    def unseen_words_batch(self, texts: list[str]) -> None:
        return None
