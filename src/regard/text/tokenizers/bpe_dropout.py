"""BPE-dropout [Provilkov20 §3.2]: skips merges at random to sample segmentations of a word.

The library's own cannot be seeded; here every draw is a function of (seed, word), so training stays a pure function.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from hashlib import sha256
from random import Random

from regard.system.errors import UsageError
from regard.system.keys import key
from regard.text.tokenizers.tokenizer import Tokenizer


class Segmenter:
    """Draws segmentations of single words with the merges of a tokenizer.

    Args:
        tokenizer: whose merges are applied.
        dropout: the probability p of leaving a merge out, each time it is its turn.
        seed: of the draws.

    Raises:
        UsageError: a tokenizer of characters, which has no merges to leave out.
    """

    def __init__(self, tokenizer: Tokenizer, dropout: float, seed: int) -> None:
        if tokenizer.units == "characters":
            raise UsageError("characters are put together without merges; leave out bpe_dropout", "text.bpe_dropout")
        self.dropout, self.seed = dropout, seed
        self._id = {name: place for place, name in enumerate(tokenizer.names)}
        self._rank = {pair: place for place, pair in enumerate(tokenizer.merges)}

    def plain(self, word: str) -> list[int]:
        """The word's ids without dropout, as the tokenizer has them."""
        return self._merge(word, 0.0, lambda: 1.0)

    def sample(self, word: str, count: int) -> list[list[int]]:
        """``count`` segmentations of a word (in byte letters, see :meth:`Tokenizer.words`), repeats included.

        Repeats keep the probabilities right: each draw is as likely as the method says.
        """
        number = int.from_bytes(sha256(word.encode()).digest()[:8], "little")
        uniform = Random(key(self.seed, "segmentation", number)).random
        return [self._merge(word, self.dropout, uniform) for _ in range(count)]

    def _merge(self, word: str, dropout: float, uniform: Callable[[], float]) -> list[int]:
        """Merge the pair learned earliest, leftmost first; a pair left out may come again after the next merge."""
        letters: list[str] = list(word)
        after = [*range(1, len(letters)), -1]
        before = list(range(-1, len(letters) - 1))
        queue: list[tuple[int, int, str, str]] = []
        skipped: list[tuple[int, int, str, str]] = []

        def offer(place: int) -> None:
            right = after[place]
            if right >= 0 and (rank := self._rank.get((letters[place], letters[right]))) is not None:
                heapq.heappush(queue, (rank, place, letters[place], letters[right]))

        for place in range(len(letters)):
            offer(place)
        while queue:
            entry = heapq.heappop(queue)
            _, place, left, right = entry
            second = after[place]
            if second < 0 or letters[place] != left or letters[second] != right:
                continue  # one of the two was merged meanwhile
            if dropout and uniform() < dropout:
                skipped.append(entry)
                continue
            for again in skipped:
                heapq.heappush(queue, again)
            skipped.clear()
            letters[place], letters[second] = left + right, ""
            after[place] = after[second]
            if after[second] >= 0:
                before[after[second]] = place
            if before[place] >= 0:
                offer(before[place])
            offer(place)
        return [self._id[piece] for piece in letters if piece]
