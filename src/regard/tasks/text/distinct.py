"""Several outputs of a text that differ in more than case, punctuation and spaces."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence

from regard.decoding.hypotheses import Hypothesis

MOST = 100
"""The widest beam."""
Find = Callable[[Sequence[int], int], list[list[Hypothesis]]]
"""From places of sources and the width of a beam to all hypotheses of the beam for each."""


def core(text: str) -> str:
    """What makes a text another: all but case, punctuation, spaces and control characters."""
    return "".join(one for one in text.casefold() if unicodedata.category(one)[0] not in "PZC")


def distinct(line: Iterable[Hypothesis], text: Callable[[tuple[int, ...]], str]) -> list[Hypothesis]:
    """The first of those whose texts are nearly the same, in order."""
    found = dict[str, Hypothesis]()
    for one in line:
        found.setdefault(core(text(one.tokens)), one)
    return [*found.values()]


def search_distinct(
    find: Find, sources: int, n: int, beam: int, text: Callable[[tuple[int, ...]], str]
) -> list[list[Hypothesis]]:
    """The n best distinct outputs of each source; fewer where the widest beam has no more.

    A source with fewer is searched again with twice the beam; how wide it becomes depends on the source alone.

    Args:
        find: searches.
        sources: how many there are.
        n: outputs of each.
        beam: of the first search.
        text: of an output's tokens.
    """
    found, places = [list[Hypothesis]() for _ in range(sources)], [*range(sources)]
    while places:
        for place, line in zip(places, find(places, beam), strict=True):
            found[place] = distinct(line, text)
        beam *= 2
        places = [place for place in places if len(found[place]) < n and beam <= MOST]
    return [line[:n] for line in found]
