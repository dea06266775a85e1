"""What is to be kept, put in place of what a model wrote for it: an address or a number that it spelled otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence
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


def find_copies(copy: str, output: str) -> list[Place]:
    """Where a translation has a copy as a word of its own, with any white space for its white space."""
    return _find(r"\s+".join(map(re.escape, copy.split())), copy, output)


def _find(pattern: str, copy: str, output: str) -> list[Place]:
    left = r"(?<!\w)" if copy[0].isalnum() else "(?<!%)" if copy[0] == "%" else ""
    right = r"(?!\w)" if copy[-1].isalnum() else ""
    return [found.span() for found in re.finditer(f"{left}{pattern}{right}", output)]


def lacks(text: str, output: str, kept: Sequence[Place]) -> bool:
    """Whether a translation has something less often than its text keeps it."""
    own = [text[begin:end] for begin, end in kept]
    return any(len(find_copies(one, output)) < own.count(one) for one in set(own))


def put_copies(text: str, output: str, kept: Sequence[Place], share_JI: Shares | None) -> str:
    """A translation with copies of what it lacks, where something like them stands at their places.

    Args:
        text: of a sentence.
        output: its translation.
        kept: the characters of what is kept.
        share_JI: how much the units of the translation belong to those of the text; ``None``: it is not known.
    """
    known = {text[begin:end]: set(find_copies(text[begin:end], output)) for begin, end in kept}
    left = {copy: len(places) for copy, places in known.items()}
    found = list[tuple[int, int, str]]()
    for begin, end in kept:
        copy = text[begin:end]
        if left[copy] > 0:
            left[copy] -= 1
            continue
        divided = r"\s*".join(map(re.escape, "".join(copy.split())))  # with blanks in it, as "% s"
        places = [place for place in _find(divided, copy, output) if place not in known[copy]]
        if share_JI is not None and (place := _place(text, output, (begin, end), share_JI)):
            places.append(place)
        free = [one for one in places if not any(one[0] < other[1] and other[0] < one[1] for other in found)]
        if free:
            found.append((*free[0], copy))
    for begin, end, copy in sorted(found, reverse=True):
        output = output[:begin] + copy + output[end:]
    return output


def _place(text: str, output: str, kept: Place, share_JI: Shares) -> Place | None:
    """The words of a translation that stand for what is kept, and are like it."""
    own = [n for n, (begin, end) in enumerate(units_of(text)) if kept[0] < end and begin < kept[1]]
    own_J, units_J, copy = share_JI[:, own].sum(1), units_of(output), text[kept[0] : kept[1]]
    if not len(own_J) or own_J.max() < HALF:
        return None
    first = last = int(np.argmax(own_J))
    while first > 0 and own_J[first - 1] >= HALF:
        first -= 1
    while last + 1 < len(own_J) and own_J[last + 1] >= HALF:
        last += 1
    words = [found.span() for found in re.finditer(r"\S+", output)]
    place = (
        next(word for word in words if word[0] <= units_J[first][0] < word[1])[0],
        next(word for word in words if word[0] < units_J[last][1] <= word[1])[1],
    )
    for edge, sign in ((0, 1), (1, -1)):
        while place[0] < place[1] and (at := output[place[0] if edge == 0 else place[1] - 1]) in _AROUND:
            if (copy[0] if edge == 0 else copy[-1]) == at:
                break
            place = (place[0] + sign, place[1]) if edge == 0 else (place[0], place[1] + sign)
    like = SequenceMatcher(None, output[place[0] : place[1]].lower(), copy.lower(), autojunk=False).ratio()
    return place if like >= ALIKE else None
