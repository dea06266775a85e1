"""Numbers as the page rounds them: what ``web/src/lib/numbers.ts`` does, once more in Python."""

import math
import re
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

Rounded = Callable[[float], str]
NEAR = 2e-5
"""By how much two computations of one number may differ: all that is seen of it has far fewer digits."""
GAZE = re.compile(r"(.+?) ((?:[<>] )?\d+ %)")


def weight(value: float) -> str:
    """A weight: 0.83; small ones keep a digit that says something."""
    if 0 < value < 0.005:
        return "< 0.001" if value < 0.0005 else f"{value:.3f}"
    return f"{value:.2f}"


def percent(value: float, more: int = 0) -> str:
    """A share, in whole hundredths, or with so many digits more."""
    hundred, least = value * 100, 10.0**-more
    if hundred > 0 and float(f"{hundred:.{more}f}") == 0:
        return f"< {least:.{more}f} %"
    if hundred < 100 and float(f"{hundred:.{more}f}") == 100:
        return f"> {100 - least:.{more}f} %"
    return f"{hundred:.{more}f} %"


def chance(value: float, more: int = 0) -> str:
    """A probability that may be tiny."""
    if value >= 0.005:
        return percent(value, more)
    if value < 1e-5:
        return number(value, 3 + more)
    return f"{float(f'{value * 100:.{2 + more}g}'):g} %"


def apart(rounded: Callable[[float, int], str], one: float, other: float) -> set[tuple[str, str]]:
    """How two numbers that were computed once more elsewhere may be told apart, by as few digits as can."""
    found = set()
    for a, b in product(*([value - NEAR * abs(value), value, value + NEAR * abs(value)] for value in (one, other))):
        every = ((rounded(a, more), rounded(b, more)) for more in range(5))
        found.add(next((two for two in every if two[0] != two[1]), (rounded(a, 0), rounded(b, 0))))
    return found


def number(value: float, digits: int = 3) -> str:
    """A number of any size in few digits."""
    size = abs(value)
    if size != 0 and (size < 1e-3 or size >= 1e7):
        head, tail = f"{value:.{max(1, digits - 2)}e}".split("e")
        return f"{head}e{int(tail)}".replace("-", "−")
    power = math.floor(math.log10(size)) if size else 0
    places = 0 if size >= 1000 else max(0, digits - 1 - (power + 1 if power < 0 else power))
    return f"{value:,.{places}f}".replace("-", "−")


def places(value: float, count: int = 2) -> str:
    """A number with so many places behind the point."""
    if value == -math.inf:
        return "−∞"
    found = f"{value:.{count}f}"
    return (found.replace("-", "") if float(found) == 0 else found).replace("-", "−")


def like(rounded: Rounded, value: float) -> set[str]:
    """How a number may be rounded that was computed once more, elsewhere."""
    far = NEAR * abs(value) + 1e-6
    return {rounded(value + by) for by in (-far, 0.0, far)} if math.isfinite(value) else {rounded(value)}


def clean(piece: str) -> str:
    """A piece without the sign of the space before it."""
    return re.sub("[▁Ġ]", " ", piece).strip() or "␣"


def check_looks(said: str, who: str, names: Sequence[str], weight_K: NDArray[np.floating]) -> None:
    """That a sentence says of this token what :func:`check_gaze` checks."""
    begins, _, looks = said.partition(" looks at ")
    assert begins.removeprefix("·") == who
    check_gaze(looks, names, weight_K)


def check_gaze(said: str, names: Sequence[str], weight_K: NDArray[np.floating], most: int = 4) -> None:
    """That a sentence names the tokens a row of weights gives most to, the first first.

    Args:
        said: ``looks at “animal” 83 % · “street” 9 %``.
        names: of the tokens; those that go on with a word have a dot on the page.
        weight_K: what each gets.
        most: tokens that are named.
    """
    found = [part.groups() for part in map(GAZE.fullmatch, said.removeprefix("looks at ").split(" · ")) if part]
    ranked_K = np.sort(weight_K)[::-1]
    assert min(most, (ranked_K > 0.005 + NEAR).sum()) <= len(found) <= most, said
    for (name, share), value in zip(found, map(float, ranked_K), strict=False):
        assert share in like(percent, value), f"{said}: {value}"
        there = {names[at] for at in np.flatnonzero(np.abs(weight_K - value) < NEAR)}
        name = name.removeprefix("“").removesuffix("”")
        assert name.removeprefix("·") in there, f"{said}: {name}"
