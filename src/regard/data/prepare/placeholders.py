"""Placeholders in pairs that are learned from, so that a translator learns to carry inline tags to their words.

They stand behind a run of words, and behind those that are linked to these alone by a lexical model, which is learned
from the pairs before; the other pairs stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from random import Random

from regard.data.alignment.hmm import LEARNED, WordAligner
from regard.data.alignment.links import Links
from regard.data.corpora.corpus import TextPair
from regard.system.keys import key
from regard.text.placeholders import SIGNS, plain, with_placeholders, words_of

LONGEST = 4
"""Words of a tag at most."""
TAGS = 3
"""Tags of a pair at most."""
NESTED = 0.5
"""Share of the further tags that are within the first, if they can."""
KEYS = 1 << 64
Run = tuple[range, frozenset[int]]
"""Source words, and the target words that belong to them alone."""


class PairPlaceholders:
    """Puts placeholders into a share of the pairs, a pure function of seed and pair.

    Args:
        share: of the pairs, 0 to 1.
        seed: of the draw.
        pairs: that the lexical model is learned from, the first ones.
    """

    def __init__(self, share: float, seed: int, pairs: Iterable[TextPair]) -> None:
        self._share, self._seed = share, seed
        self._aligner = WordAligner(*map(_spelled, _sides(list(islice(pairs, LEARNED)))))

    def __call__(self, pairs: Sequence[TextPair]) -> list[TextPair]:
        """The pairs, some with placeholders."""
        found, keys = list(pairs), [key(self._seed, "\n".join(["tags", *pair])) for pair in pairs]
        chosen = [place for place, one in enumerate(keys) if one < self._share * KEYS]
        sides = _sides([pairs[place] for place in chosen])
        every = self._aligner.align(*map(_spelled, sides))
        for place, *words, links in zip(chosen, *sides, every, strict=True):
            tags = _drawn(list(_runs(links, words[0])), Random(keys[place]))
            if all(plain(text) == text for text in pairs[place]):
                some = ([(sign, run[side]) for sign, run in zip(SIGNS, tags, strict=False)] for side in (0, 1))
                found[place] = TextPair(*map(with_placeholders, words, some))
        return found


def _sides(pairs: Sequence[TextPair]) -> tuple[list[list[str]], list[list[str]]]:
    return [words_of(pair.source) for pair in pairs], [words_of(pair.target) for pair in pairs]


def _spelled(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[word.strip().lower() for word in words] for words in sentences]


def _runs(links: Links, words: Sequence[str]) -> Iterator[Run]:
    for first in range(len(words)):
        for last in range(first + 1, min(first + LONGEST, len(words)) + 1):
            run = range(first, last)
            own = frozenset(j for i, j in links if i in run)
            alone = all(i in run for i, j in links if j in own)
            if own and alone and any(map(str.isalnum, "".join(words[first:last]))):
                yield run, own


def _drawn(runs: Sequence[Run], draw: Random) -> list[Run]:
    """Some of them, none across another."""
    found = list[Run]()
    for _ in range(draw.randint(1, TAGS) if runs else 0):
        inner = [run for run in runs if found and set(run[0]) < set(found[0][0])]
        one = draw.choice(inner if inner and draw.random() < NESTED else runs)
        meets = [set(one[0]) & set(other[0]) for other in found]
        if all(common in (set(), set(one[0]), set(other[0])) for common, other in zip(meets, found, strict=True)):
            found.append(one)
    return draw.sample(found, len(found))
