"""Running text prepared for text to text: windows as pairs, by span corruption [Raffel20 §3.1.4]."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from regard.config import Recipe
from regard.data.batches.language_modelling import SpanWindows, Windows
from regard.data.corpora.corpus import one_line
from regard.data.prepare.shards import Side
from regard.tasks.text.gaps import decode_with_symbols
from regard.tasks.translation.text_to_text.corpus import PrefixedPair, PreparedPrefixed


class PreparedSpans(PreparedPrefixed):
    """Prepared running text, its windows as pairs; of the validation text ``data.validation`` windows at most."""

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        super().__init__(folder)
        tokenizer, length = self.tokenizer, max(1, recipe.data.max_tokens - 2)  # both sides then fit into max_tokens

        def sides(windows: Windows, most: int | None = None) -> list[SpanWindows]:
            given = tokenizer, recipe.text_to_text, recipe.seed, most
            return [SpanWindows(windows, target, *given) for target in (False, True)]

        self.source, self.target = sides(Windows(self.text, length, recipe.seed))
        held = Windows(self.validation_text, length, None)
        self.validation_source, self.validation_target = sides(held, recipe.data.validation)
        self.pairs = self.source.count
        self.sizes = (self.pairs,)
        self.start = tokenizer.start

    def validation_examples(self) -> list[PrefixedPair]:
        """The validation windows as texts."""

        def texts(side: Side) -> list[str]:
            ids, lengths_B = side.gather(0, np.arange(side.count))
            sentinels, rows = frozenset(self.tokenizer.sentinels), np.split(ids, lengths_B.cumsum()[:-1])
            return [one_line(decode_with_symbols(self.tokenizer, row.tolist(), sentinels)) for row in rows]

        both = zip(texts(self.validation_source), texts(self.validation_target), strict=True)
        return [PrefixedPair("", source, target) for source, target in both]
