"""What the fake models of these tests share."""


class Numbered:
    """Stands for a tokenizer whose pieces are called by their numbers."""

    def piece(self, id: int) -> str:
        return f"▁{id}"


class Unaware:
    """A model whose folder does not say what training read."""

    target_tokenizer = Numbered()

    def unseen_words(self, text: str) -> None:
        return None
