"""What an output may be like, for greedy search to verify: several tokens in one pass [Stern18; Leviathan23].

A token is taken where the model itself would have chosen it, so the output is that of search without a draft. Where
they part, what the output goes on with is looked for in the rest of the draft [Yang23].
"""

from __future__ import annotations

from collections.abc import Sequence

FIRST = 4
"""Tokens that are offered at first, and behind a place found again; twice as many each time that all were right."""
WAIT = 2
"""Tokens after which a draft that parted is looked at again; each time that nothing is found, twice as many."""
CREDIT, PASS, LOOK = 6, 3, 2
"""Tokens that a draft may cost more than it gives; what a pass costs, beside what it gives, and a look."""


class Draft:
    """A draft, followed as the output grows.

    Args:
        tokens: of a whole output, its prefix included, without ``</s>``.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = list(tokens)
        self._place = 0
        """Behind the last token that the output has, too."""
        self._read = 0
        """Tokens of the output that were compared."""
        self._parted = False
        self._offer, self._wait, self._credit = FIRST, WAIT, CREDIT

    def ahead(self, output: Sequence[int], most: int) -> list[int]:
        """What may come next, ``most`` tokens of it; nothing where it is not known, or the draft does not pay.

        Args:
            output: its tokens so far; at each call more of them.
            most: see above.
        """
        for place in range(self._read, len(output)):
            self._follow(output[place], output[place - 1] if place else None)
        self._read = len(output)
        if self._parted or self._credit <= 0:
            return []
        some = self._tokens[self._place : self._place + max(0, min(most, self._offer))]
        self._offer *= 2
        self._credit -= PASS
        return some

    def wait(self, most: int) -> int:
        """How many tokens, ``most`` at most, the output may get before the draft is looked at again."""
        if not self._parted or self._place >= len(self._tokens) or self._credit <= 0:
            return most
        self._wait *= 2
        self._credit -= LOOK
        return min(most, self._wait // 2)

    def _follow(self, token: int, before: int | None) -> None:
        """Find the place behind a token that came behind another."""
        tokens, place = self._tokens, self._place
        if not self._parted and place < len(tokens) and tokens[place] == token:
            self._place += 1
            self._credit += 1
            return
        self._parted = True
        there = [at for at in range(place, len(tokens)) if tokens[at] == token]
        both = [at for at in there if at > place and tokens[at - 1] == before]
        if both or len(there) == 1:
            self._place = (both or there)[0] + 1
            self._parted, self._offer, self._wait = False, FIRST, WAIT
