"""Detection of misaligned parallel corpora by the correlation of sentence lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CHUNK = 500
SHIFTS = (1, -1, 2, -2, 3, -3)
FEWEST = 100


@dataclass(frozen=True)
class Misalignment:
    """Lines that do not belong together.

    ``begin``: from about which pair on (counted from 0). ``shift``: line i of the source seems to belong to line
    i + shift of the target; 0: to none near it. ``correlation``: of the lengths there. ``share``: of the corpus.
    """

    begin: int
    shift: int
    correlation: float
    share: float


def correlation(left_B: NDArray[np.float64], right_B: NDArray[np.float64]) -> float:
    """Pearson's correlation; 1 where a side is constant, so that nothing is reported."""
    left, right = left_B - left_B.mean(), right_B - right_B.mean()
    spread = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / spread if spread > 1e-3 * len(left_B) else 1.0


def misalignment(source: NDArray[np.integer], target: NDArray[np.integer]) -> Misalignment | None:
    """Detect shifted, shuffled or unrelated lines from their lengths in characters; ``None``: nothing suspect.

    A part of the corpus is suspected where the lengths go together no better than chance, or much better when one side
    is shifted by a few lines. Parts sorted by length say nothing; then only the whole is looked at.
    """
    source_B, target_B = np.log1p(source.astype(np.float64)), np.log1p(target.astype(np.float64))
    if len(source_B) < FEWEST:
        return None
    whole = correlation(source_B, target_B)
    begins = range(0, max(1, len(source_B) - CHUNK // 2), CHUNK)
    suspect = []
    for begin in begins:
        end = len(source_B) if begin == begins[-1] else begin + CHUNK
        part = source_B[begin:end], target_B[begin:end]
        narrow = part[0].std() < 0.5 * source_B.std() or part[1].std() < 0.5 * target_B.std()
        if not narrow and (found := _find_shift(*part)) is not None:
            suspect.append((begin, *found))
    share = len(suspect) / len(begins)
    if suspect and (share >= 0.05 or _lasting([begin for begin, _, _ in suspect], begins[-1])):
        shifts = [shift for _, shift, _ in suspect]
        usual = max(sorted(set(shifts)), key=shifts.count)
        begin = _change(source_B, target_B, usual) if usual else suspect[0][0]
        return Misalignment(begin, usual, float(np.mean([value for _, _, value in suspect])), share)
    return Misalignment(0, 0, whole, 1.0) if whole < 4.0 / np.sqrt(len(source_B)) else None


def _find_shift(source_B: NDArray[np.float64], target_B: NDArray[np.float64]) -> tuple[int, float] | None:
    """The best shift and the actual correlation, if that is suspect."""
    here = correlation(source_B, target_B)
    chance = 4.0 / np.sqrt(len(source_B))
    if here > max(0.35, chance):
        return None
    shifted = {shift: correlation(*_shift(source_B, target_B, shift)) for shift in SHIFTS}
    best = max(shifted, key=shifted.__getitem__)
    if shifted[best] > here + max(0.25, chance):
        return best, here
    return (0, here) if here < chance else None


def _shift(
    source_B: NDArray[np.float64], target_B: NDArray[np.float64], shift: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pair line i of the source with line i + shift of the target."""
    if shift > 0:
        return source_B[:-shift], target_B[shift:]
    return source_B[-shift:], target_B[:shift]


def _change(source_B: NDArray[np.float64], target_B: NDArray[np.float64], shift: int) -> int:
    """From which pair on the shifted target fits better than the plain one: the split with the least misfit in all."""
    usual = np.median(target_B) - np.median(source_B)
    plain = np.abs(target_B - source_B - usual)
    moved = np.abs(np.roll(target_B, -shift) - source_B - usual)
    before = np.concatenate([[0.0], np.cumsum(plain - moved)])
    return int(before.argmin())


def _lasting(begins: list[int], last: int) -> bool:
    """Whether the suspected chunks are the last ones of the corpus, as when a line is missing near the end."""
    return begins == list(range(last - CHUNK * (len(begins) - 1), last + 1, CHUNK)) and len(begins) > 1
