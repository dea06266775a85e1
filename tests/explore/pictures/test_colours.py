"""A larger weight is never shown fainter, in any colour mode."""

import re
from itertools import pairwise

import pytest

from regard.explore.pictures.heatmap import (
    RAMP_256,
    SHADES_ASCII,
    ColourScheme,
    colour,
    ground,
    luminance,
    paint,
    scale,
    shade,
)
from regard.text.terminal_cells import width

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def cube(index: int) -> tuple[int, int, int]:
    """The colour of an xterm 256 index, from the definition of its cube and its greys."""
    if index >= 232:
        return (8 + 10 * (index - 232),) * 3
    levels = (0, 95, 135, 175, 215, 255)
    red, rest = divmod(index - 16, 36)
    return levels[red], levels[rest // 6], levels[rest % 6]


def test_luminance_rises_with_the_weight() -> None:
    lights = [luminance(colour(i / 100)) for i in range(101)]
    assert all(a < b for a, b in pairwise(lights))
    lights = [luminance(cube(index)) for index in RAMP_256]
    assert all(a < b for a, b in pairwise(lights))


@pytest.mark.parametrize("unicode", [True, False])
def test_shades_rise(unicode: bool) -> None:
    look = ColourScheme(unicode=unicode)
    places = [look.shades.index(shade(i / 50, look)) for i in range(51)]
    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] == len(look.shades) - 1


@pytest.mark.parametrize("colours", ["true", "256", "16", "none"])
@pytest.mark.parametrize("share", [-1.0, 0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("cells", [1, 2, 4])
def test_a_cell_has_its_cells(colours: str, share: float, cells: int) -> None:
    cell = paint(share, "30", cells, ColourScheme(colours))
    assert width(ESCAPE.sub("", cell)) == cells


def test_without_colour_there_is_no_escape() -> None:
    assert "\x1b" not in paint(0.7, "70", 4, ColourScheme("none")) + scale(0.7, ColourScheme("none"))


def test_ascii_stays_ascii() -> None:
    assert scale(0.5, ColourScheme(unicode=False)).isascii()
    assert SHADES_ASCII.isascii()


def test_front_and_back_name_the_same_colour() -> None:
    assert ground(0.5, ColourScheme("true")).replace("[48;", "[38;") == ground(0.5, ColourScheme("true"), front=True)
