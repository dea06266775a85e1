"""Numbers as they stand on the page, compared with those of Python; how they are rounded is tested in ``web/tests``."""

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NEAR = 2e-5
"""By how much two computations of one number may differ: all that is seen of it has far fewer digits."""
NUMBER = re.compile(r"([<>] )?(-?[\d.]+)(e-?\d+)?( %)?")
GAZE = re.compile(r"(.+?) ((?:[<>] )?\d+ %)")


def shows(said: str, value: float) -> bool:
    """Whether a number on the page, a share or another, is this one in as many digits as are shown."""
    if not math.isfinite(value):
        return said == "−∞"
    found = NUMBER.fullmatch(said.replace("−", "-").replace(",", ""))
    if not found:
        return False
    bound, digits, power, hundredth = found.groups()
    unit = float(f"1{power or ''}") * (0.01 if hundredth else 1)
    shown, far = float(digits) * unit, NEAR * abs(value) + 1e-6
    if bound:
        return value < shown + far if bound == "< " else value > shown - far
    return abs(value - shown) <= 0.5 * unit * 10.0 ** -len(digits.partition(".")[2]) + far


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
        assert shows(share, value), f"{said}: {value}"
        there = {names[at] for at in np.flatnonzero(np.abs(weight_K - value) < NEAR)}
        name = name.removeprefix("“").removesuffix("”")
        assert name.removeprefix("·") in there, f"{said}: {name}"
