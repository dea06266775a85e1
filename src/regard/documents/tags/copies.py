"""What is to be kept, put in place of what a model wrote for it: an address or a number that it spelled otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from regard.documents.segment import Place
from regard.tasks.translation.align import units_of

Shares = NDArray[np.float64]
"""How much the units of a translation belong to those of its text, ``share_JI``: 0 to 1."""
HALF = 0.5
"""The share from which a unit belongs to what is asked for."""
ALIKE = 0.5
"""How much a copy and what stands for it have in common at least, 0 to 1."""
_AROUND = "\"'«»“”„‚‘’()[]<>.,;:!?…"


def find_copies(copy: str, output: str) -> Iterator[Place]:
    """Where a translation has a copy as a word of its own, with any white space for its white space."""
    left, right = (r"(?<!\w)" if copy[0].isalnum() else ""), (r"(?!\w)" if copy[-1].isalnum() else "")
    between = r"\s+".join(map(re.escape, copy.split()))
    yield from (found.span() for found in re.finditer(f"{left}{between}{right}", output))


def lacks(text: str, output: str, kept: Sequence[Place]) -> bool:
    """Whether a translation has something less often than its text keeps it."""
    own = [text[begin:end] for begin, end in kept]
    return any(len(list(find_copies(one, output))) < own.count(one) for one in set(own))


def put_copies(text: str, output: str, kept: Sequence[Place], share_JI: Shares | None) -> str | None:
    """A translation with copies of what it lacks; ``None`` where nothing like them stands at their places.

    Args:
        text: of a sentence.
        output: its translation.
        kept: the characters of what is kept.
        share_JI: how much the units of the translation belong to those of the text; ``None``: it is not known.
    """
    left = {text[begin:end]: len(list(find_copies(text[begin:end], output))) for begin, end in kept}
    found = list[tuple[int, int, str]]()
    for begin, end in kept:
        copy = text[begin:end]
        if left[copy] > 0:
            left[copy] -= 1
            continue
        place = None if share_JI is None else _place(text, output, (begin, end), share_JI)
        if place is None or any(place[0] < other[1] and other[0] < place[1] for other in found):
            return None
        found.append((*place, copy))
    for begin, end, copy in sorted(found, reverse=True):
        output = output[:begin] + copy + output[end:]
    return output


def _place(text: str, output: str, kept: Place, share_JI: Shares) -> Place | None:
    """The words of a translation that stand for what is kept, and are like it."""
    own = [n for n, (begin, end) in enumerate(units_of(text)) if kept[0] < end and begin < kept[1]]
    own_J, units_J, copy = share_JI[:, own].sum(1), units_of(output), text[kept[0] : kept[1]]
    if not len(own_J) or own_J.max() < HALF:
        return None
    best = int(np.argmax(own_J))
    words = [found.span() for found in re.finditer(r"\S+", output)]
    place = next(word for word in words if word[0] <= units_J[best][0] < word[1])
    for edge, sign in ((0, 1), (1, -1)):
        while place[0] < place[1] and (at := output[place[0] if edge == 0 else place[1] - 1]) in _AROUND:
            if (copy[0] if edge == 0 else copy[-1]) == at:
                break
            place = (place[0] + sign, place[1]) if edge == 0 else (place[0], place[1] + sign)
    like = SequenceMatcher(None, output[place[0] : place[1]].lower(), copy.lower(), autojunk=False).ratio()
    return place if like >= ALIKE else None
