"""Bars to both sides of zero."""

import re
from xml.etree import ElementTree

from regard.explore.pictures import bars


def test_bars_go_to_both_sides_and_have_one_scale() -> None:
    svg = bars.diverging([[("The", 0.5), ("cat", -1.0)], [("<s>", 0.25)]], "es instead of sie")
    ElementTree.fromstring(svg)
    found = {
        name: (float(x), float(width))
        for x, width, name in re.findall(
            r'<rect class="\w+" x="([\d.]+)" y="[\d.]+" width="([\d.]+)".*?<title>(.*?):', svg
        )
    }
    zero = found["The"][0]
    assert found["cat"] == (zero - bars.HALF, bars.HALF)
    assert found["The"] == (zero, bars.HALF / 2)
    assert found["&lt;s&gt;"] == (zero, bars.HALF / 4)


def test_no_bar_is_a_picture_too() -> None:
    ElementTree.fromstring(bars.diverging([[]], "nothing"))
    ElementTree.fromstring(bars.diverging([[("zero", 0.0)]], "zero"))
