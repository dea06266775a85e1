"""Running text as ids with the places where words begin, so that whole words can be hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.data.coding import Coded, DocumentCoding
from regard.data.corpora import Pair
from regard.text.vocabulary import AnyTokenizer


class WordCoding(DocumentCoding):
    """Documents without their ends; on the other side a 1 for each token that begins a word, a 0 for the others.

    Found once, not in each batch: it would take a twentieth of a small model's step.
    """

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        super().__init__(tokenizer, ended=False)

    @property
    def sizes(self) -> tuple[int, int]:
        return self.tokenizer.size, 2

    @property
    def own(self) -> dict[str, Any]:
        return {**super().own, "words": True}

    def coded(self, pairs: Sequence[Pair]) -> list[Coded]:
        return [
            [(ids, self.tokenizer.word_starts(ids.tolist()).astype(np.int64)) for ids, _ in windows]
            for windows in super().coded(pairs)
        ]
