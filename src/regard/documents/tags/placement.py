"""Tags of a text placed in its translation, by how much the words of both belong together.

A pair encloses the run of target units whose share of its own words exceeds a half, summed; a tag inside another looks
only within that one's run, and neighbours take no unit of each other. So every tag comes out once, and nested as it
was. An element without text stays at the word to which it is attached, or goes to the gap that the fewest links cross.
What is kept is found in the translation as it is written, else it goes where an element would.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.documents.segment import Place, SegmentTranslation, Tag
from regard.documents.tags.copies import HALF, Shares, find_copies

Run = tuple[int, int]
"""First unit and end (exclusive)."""
LEAST = 0.1
"""The share below which no unit does, so that the tag encloses nothing."""
FAINT = 1e-6
"""What a unit counts against a run that belongs neither to it nor to others."""
SURE = 1e3
"""What a unit counts for that must be in a run; what must not counts as much against it."""
MOST = 1 << 22
"""Square of the units of a text or its translation, or of twice its tags, above which places are proportional."""


def needs_alignment(tags: Sequence[Tag], units: Sequence[Place]) -> bool:
    """Whether a tag stands neither around all of a text nor at one of its ends."""
    if not units:
        return False
    first, last = units[0][0], units[-1][1]
    return any(not (tag.begin <= first and last <= tag.end) and tag.end > first and tag.begin < last for tag in tags)


def diagonal(size_J: int, size_I: int) -> Shares:
    """The shares of two texts of the same order, where nothing better is known."""
    share_JI = np.zeros((size_J, size_I))
    if size_I:
        share_JI[np.arange(size_J), np.arange(size_J) * size_I // max(size_J, 1)] = 1
    return share_JI


def place_in_proportion(
    tags: Sequence[Tag], source: Sequence[Place], target: str, units: Sequence[Place]
) -> SegmentTranslation:
    """The translation with tags at the same share of its units: for texts that are too long for anything better.

    Args:
        tags: of the text.
        source: the characters of its units.
        target, units: the translation, and the characters of its units.
    """
    begins, places = [begin for begin, _ in source], list[Place]()
    for tag in tags:
        low, high = (bisect_left(begins, at) * len(units) // max(len(source), 1) for at in (tag.begin, tag.end))
        begin = units[low][0] if low < len(units) else len(target)
        end = units[high - 1][1] if low < high else begin
        least, most = places[tag.parent] if tag.parent >= 0 else (0, len(target))
        places.append((min(max(begin, least), most), min(max(end, least), most)))
    return SegmentTranslation(target, tuple(places))


def place_tags(
    tags: Sequence[Tag],
    source: tuple[str, Sequence[Place]],
    target: tuple[str, Sequence[Place]],
    share_JI: Shares,
    written: int | None = None,
) -> SegmentTranslation:
    """The translation of a text with its tags.

    Args:
        tags: of the text.
        source, target: the text and its translation, each with the characters of its words and signs.
        share_JI: how much each unit of the translation belongs to each of the text, 0 to 1.
        written: how many of the tags, the first, are written; what others keep is text. Default: all.
    """
    kept = [tag for tag in tags if tag.kept and source[0][tag.begin : tag.end].strip()]
    units_I, part_OI = _divide(source[1], [(tag.begin, tag.end) for tag in kept])
    draft = _Written(target[0], list(target[1]), share_JI @ part_OI)
    draft.insert_missing(source[0], units_I, kept)
    found = _find(draft.text, {source[0][tag.begin : tag.end].strip() for tag in kept})
    units_J, part_OJ = _divide(draft.units_J, sorted(one for some in found.values() for one in some))
    share_JI = part_OJ.T @ draft.share_JI / np.maximum(part_OJ.sum(0), 1e-9)[:, None]
    placement = Placement(source[0], draft.text, units_I, units_J, tags, share_JI)
    placement.choose_kept(found)
    return placement.run(len(tags) if written is None else written)


def _divide(units: Sequence[Place], spans: Sequence[Place]) -> tuple[list[Place], Shares]:
    """Units of which each span is one, and which share of each old unit lies in which new one, ``share_OU``."""
    found = set(spans)
    for unit in units:
        at = unit[0]
        for begin, end in spans:
            if begin < unit[1] and at < end:
                found |= {(at, begin)} if at < begin else set()
                at = end
        found |= {(at, unit[1])} if at < unit[1] else set()
    new = sorted(found)
    begin_O, end_O = np.array(units).reshape(-1, 2).T
    begin_U, end_U = np.array(new).reshape(-1, 2).T
    both_OU = np.minimum(end_O[:, None], end_U) - np.maximum(begin_O[:, None], begin_U)
    return new, np.maximum(both_OU, 0) / (end_O - begin_O)[:, None]


def _find(target: str, wanted: set[str]) -> dict[str, list[Place]]:
    """Where the translation has what is kept, by what it is; longer ones first, none within another."""
    found, taken = dict[str, list[Place]](), list[Place]()
    for text in sorted(wanted, key=lambda one: (-len(one), one)):
        for begin, end in find_copies(text, target):
            if all(end <= first or last <= begin for first, last in taken):
                taken.append((begin, end))
                found.setdefault(text, []).append((begin, end))
    return found


@dataclass
class _Written:
    """A translation, the characters of its units, and how much they belong to those of the text."""

    text: str
    units_J: list[Place]
    share_JI: Shares

    def insert_missing(self, source: str, units_I: Sequence[Place], kept: Sequence[Tag]) -> None:
        """Put what is kept, but was not written, where the fewest links cross with it."""
        left = {
            text: len(some) for text, some in _find(self.text, {source[t.begin : t.end].strip() for t in kept}).items()
        }
        for tag in kept:
            text = source[tag.begin : tag.end].strip()
            if left.get(text, 0):
                left[text] -= 1
                continue
            unit = next(n for n, (begin, end) in enumerate(units_I) if tag.begin < end and begin < tag.end)
            self._insert(text, unit, source[tag.begin - 1 : tag.begin], source[tag.end : tag.end + 1])

    def _insert(self, text: str, unit: int, before: str, behind: str) -> None:
        gap = _gap(self.share_JI[:, :unit].sum(1), self.share_JI[:, unit + 1 :].sum(1))
        at = self.units_J[gap][0] if gap < len(self.units_J) else len(self.text)
        last = self.text[at - 1] if at else " "
        lead = " " if (before.isspace() and not last.isspace()) or last.isalnum() or last == "%" else ""
        tail = " " if self.text[at : at + 1].isalnum() or (behind.isspace() and at < len(self.text)) else ""
        size = len(lead + text + tail)
        self.text = f"{self.text[:at]}{lead}{text}{tail}{self.text[at:]}"
        later = [(begin + size, end + size) for begin, end in self.units_J[gap:]]
        self.units_J = [*self.units_J[:gap], (at + len(lead), at + len(lead) + len(text)), *later]
        self.share_JI = np.insert(self.share_JI, gap, np.arange(self.share_JI.shape[1]) == unit, axis=0)


def _gap(left_J: NDArray[np.float64], right_J: NDArray[np.float64]) -> int:
    """The gap with most of what belongs to the left before it, and to the right behind it; the last of equal ones."""
    sums = np.concatenate(([0.0], np.cumsum(left_J - right_J)))
    return len(sums) - 1 - int(np.argmax(sums[::-1]))


@dataclass
class Placement:
    """Places of the tags of one text in its translation.

    Args:
        source, target: text and translation.
        units_I, units_J: the characters of their words and signs, in order; what is kept is one unit.
        tags: of the text.
        share_JI: how much each target unit belongs to each source unit.
    """

    source: str
    target: str
    units_I: Sequence[Place]
    units_J: Sequence[Place]
    tags: Sequence[Tag]
    share_JI: Shares
    _kept: dict[int, int] = field(default_factory=dict)
    """Of kept tags that the translation has, the target unit."""

    def __post_init__(self) -> None:
        self._begins_I, self._ends_I = (np.array([unit[side] for unit in self.units_I]) for side in (0, 1))
        self._signs_I = _signs(self.source, self.units_I)
        self._signs_J = _signs(self.target, self.units_J)
        self._runs = list(map(self._source_run, self.tags))
        self._children: dict[int, list[int]] = {}
        for number, tag in enumerate(self.tags):
            self._children.setdefault(tag.parent, []).append(number)
        self._places: dict[int, Place] = {}
        self._words = set[Run]()
        self._inner: dict[int, tuple[Run, Place]] = {-1: ((0, len(self.units_J)), (0, len(self.target)))}

    def choose_kept(self, found: dict[str, list[Place]]) -> None:
        """Give each kept tag the place in the translation that belongs to it most, of those that have its text."""
        units = {begin: number for number, (begin, _) in enumerate(self.units_J)}
        free = {text: [units[begin] for begin, _ in some if begin in units] for text, some in found.items()}
        for number, tag in enumerate(self.tags):
            some = free.get(self.source[tag.begin : tag.end].strip()) if tag.kept else None
            if some:
                first, last = self._runs[number]
                best = max(some, key=lambda unit: self.share_JI[unit, first:last].sum())
                some.remove(best)
                self._kept[number] = best

    def run(self, written: int) -> SegmentTranslation:
        """The translation with all places; what is kept but cannot stay where it was found is moved."""
        for parent in (-1, *range(len(self.tags))):
            if parent in self._inner:
                self._place_children(parent)
        places = [self._places[number] for number in range(len(self.tags))]
        empty = [number for number in self._kept if number < written and places[number][0] == places[number][1]]
        moved = [self.units_J[self._kept[number]] for number in empty]
        return _without(self.target, places, moved)

    def _source_run(self, tag: Tag) -> Run:
        """The source units that a tag encloses, or cuts."""
        first = int(np.searchsorted(self._ends_I, tag.begin, "right"))
        last = int(np.searchsorted(self._begins_I, tag.end, "left"))
        return first, (max(first, last) if tag.begin < tag.end else first)

    def _place_children(self, parent: int) -> None:
        (low, high), within = self._inner[parent]
        children, taken = self._children.get(parent, []), list[Run]()
        for number in children:
            unit = self._kept.get(number, -1)
            if low <= unit < high:
                self._places[number] = self.units_J[unit]
                taken.append((unit, unit + 1))
        own = self._runs[parent] if parent >= 0 else (0, len(self.units_I))
        pairs = [n for n in children if n not in self._places and not self.tags[n].kept and np.diff(self._runs[n])[0]]
        pairs = [number for number in pairs if not self._place_in_word(number, (low, high), taken)]
        certain = {number: self._gain(number, (low, high))[1] for number in pairs}
        for number in sorted(pairs, key=lambda number: -certain[number]):
            whole = self._runs[number] == own and not taken
            run = (low, high) if whole else self._best_run(number, _free(taken, low, high))
            if run is not None and run[0] < run[1]:
                taken.append(run)
                place = within if whole else (self.units_J[run[0]][0], self.units_J[run[1] - 1][1])
                self._places[number], self._inner[number] = place, (run, place)
        gaps = [gap for gap in range(low, high + 1) if not any(begin < gap < end for begin, end in taken)]
        for number in children:
            if number not in self._places:
                gap, at = self._best_gap(number, own, gaps, within)
                self._places[number] = (at, at)
                self._inner[number] = (gap, gap), (at, at)

    def _place_in_word(self, number: int, run: Run, taken: list[Run]) -> bool:
        """Place a pair that stands inside a word, such as the 2 of H2O, in the same word of the translation."""
        tag, (first, last) = self.tags[number], self._runs[number]
        begin, end = self.units_I[first]
        if last - first != 1 or (tag.begin <= begin and end <= tag.end):
            return False
        word, free = self.source[begin:end], _free([one for one in taken if one not in self._words], *run)
        same = [unit for one in free for unit in range(*one) if self.target[slice(*self.units_J[unit])] == word]
        if not same:
            return False
        unit = max(same, key=lambda one: self.share_JI[one, first])
        at = self.units_J[unit][0] - begin
        self._places[number] = (tag.begin + at, tag.end + at)
        self._inner[number] = ((unit, unit), self._places[number])
        self._words.add((unit, unit + 1))
        taken.append((unit, unit + 1))
        return True

    def _best_run(self, number: int, free: Sequence[Run]) -> Run | None:
        found = max((self._gain(number, run) for run in free if run[0] < run[1]), key=lambda one: one[1], default=None)
        return found[0] if found and found[1] > LEAST - HALF else None

    def _gain(self, number: int, run: Run) -> tuple[Run, float]:
        """The run of units within another that belongs most to a tag, and how much."""
        (first, last), (low, high) = self._runs[number], run
        row_J, sign_J = self.share_JI[low:high], self._signs_J[low:high]
        own_J = row_J[:, first:last].sum(1)
        own_J *= (own_J / max(own_J.max(initial=0), FAINT)) ** (1 / (last - first))
        gain_J = own_J - HALF * row_J.sum(1) - FAINT
        if not self._signs_I[first:last].any():
            gain_J[sign_J] = -FAINT
        for other, unit in self._kept.items():
            if low <= unit < high:
                gain_J[unit - low] = SURE if self._is_in(other, number) else -SURE
        if not len(gain_J):
            return (low, low), -np.inf
        sum_J = np.concatenate(([0.0], np.cumsum(gain_J)))
        least_J = np.minimum.accumulate(sum_J)
        end = int(np.argmax(sum_J[1:] - least_J[:-1])) + 1
        begin = int(np.argmin(sum_J[:end]))
        if sign_J.all() and not self._signs_I[first:last].any():
            return (low, low), -np.inf
        if sum_J[end] < sum_J[begin]:  # none belongs to it: the nearest word
            best = int(np.argmax(np.where(sign_J, -np.inf, gain_J)))
            return (low + best, low + best + 1), float(gain_J[best])
        if not self._signs_I[first]:
            begin += int(np.argmin([*sign_J[begin : end - 1], False]))
        if not self._signs_I[last - 1]:
            end -= int(np.argmin([*sign_J[begin + 1 : end][::-1], False]))
        return (low + begin, low + end), float(sum_J[end] - sum_J[begin])

    def _is_in(self, number: int, pair: int) -> bool:
        while number >= 0 and number != pair:
            number = self.tags[number].parent
        return number == pair

    def _best_gap(self, number: int, own: Run, gaps: Sequence[int], within: Place) -> tuple[int, int]:
        """The gap between target units for an element, and the character there."""
        tag, (first, _) = self.tags[number], self._runs[number]
        low, high = gaps[0], gaps[-1]
        before = self.source[tag.begin - 1 : tag.begin]
        attached = bool(before.strip())
        if first <= own[0] or low == high:
            gap = low
        elif first >= own[1]:
            gap = high
        elif attached and before.isalnum():
            column_J = self.share_JI[low:high, first - 1]
            gap = min(gaps, key=lambda one: abs(one - (low + int(column_J.argmax()) + 1)))
        else:
            left_J = self.share_JI[low:high, own[0] : first].sum(1)
            right_J = self.share_JI[low:high, first : own[1]].sum(1)
            sums = np.concatenate(([0.0], np.cumsum(left_J - right_J)))
            gap = max(gaps, key=lambda one: float(sums[one - low]))
        if gap == low:
            return gap, within[0]
        if gap == high:
            return gap, within[1]
        at = self.units_J[gap][0]
        beyond = self.target.count("\n", 0, at) > self.source.count("\n", 0, tag.begin)  # in the next line
        return gap, self.units_J[gap - 1][1] if attached or beyond else at


def _signs(text: str, units: Sequence[Place]) -> NDArray[np.bool_]:
    """Which units have no letter and no digit: at the edge of a run they belong to it only where its text has one."""
    return np.array([not any(map(str.isalnum, text[begin:end])) for begin, end in units], bool)


def _free(taken: Sequence[Run], low: int, high: int) -> list[Run]:
    """What lies between runs."""
    found, at = list[Run](), low
    for begin, end in sorted(taken):
        found.append((at, begin))
        at = end
    return [*found, (at, high)]


def _without(text: str, places: Sequence[Place], spans: Sequence[Place]) -> SegmentTranslation:
    """A translation without some of its characters."""
    for begin, end in sorted(spans, reverse=True):
        stop = end + (text[end : end + 1] == " " and (begin == 0 or text[begin - 1] == " "))
        text = text[:begin] + text[stop:]

        def shift(at: int, begin: int = begin, stop: int = stop) -> int:
            return at if at <= begin else max(begin, at - (stop - begin))

        places = [(shift(first), shift(last)) for first, last in places]
    return SegmentTranslation(text, tuple(places))
