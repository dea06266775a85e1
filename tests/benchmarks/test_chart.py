"""Charts draw whatever there is; the pictures of the documents are compared elsewhere."""

from xml.etree import ElementTree

import pytest

from benchmarks.chart import Axis, Point, Series, chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*series: Series) -> ElementTree.Element:
    return ElementTree.fromstring(chart(series, "A title", Axis("words"), Axis("BLEU"), "A note."))


def lines(root: ElementTree.Element) -> list[list[tuple[float, float]]]:
    """The points of each series' line."""
    found = [group.find(f"{SVG}polyline") for group in root.iter(f"{SVG}g")]
    pairs = [[pair.split(",") for pair in line.attrib["points"].split()] for line in found if line is not None]
    return [[(float(x), float(y)) for x, y in points] for points in pairs]


def test_points_lie_where_their_numbers_say_with_a_tooltip() -> None:
    values = [(0.0, 10.0), (1.0, 40.0), (2.0, 25.0), (4.0, 0.0)]
    root = drawn(Series("a & <b>", tuple(Point(x, y) for x, y in values)))
    (places,) = lines(root)
    (x0, y0), (x1, y1) = places[0], places[1]
    for (x, y), (right, down) in zip(values, places, strict=True):
        assert right == pytest.approx(x0 + x * (x1 - x0), abs=0.02)
        assert down == pytest.approx(y0 + (y - 10) / 30 * (y1 - y0), abs=0.02)
    assert (x1 > x0, y1 < y0) == (True, True)  # up is more
    told = [title.text for title in root.iter(f"{SVG}title")]
    assert told == ["A title", *(f"a & <b>: {y:g}" for _, y in values)]
