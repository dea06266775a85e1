"""What the fake models of these tests share."""


class Unaware:
    """A model whose folder does not say what training read."""

    def unseen_words(self, text: str) -> None:
        return None
