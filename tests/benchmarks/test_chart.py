"""Charts draw whatever there is; the pictures of the documents are compared elsewhere."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from benchmarks.chart import LINE, Axis, Point, Series, chart

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


def test_names_never_lie_on_each_other() -> None:
    near = [Series(f"line {i}", (Point(0, 1.0), Point(1, 1.0 + i / 1000))) for i in range(24)]
    root = drawn(*near, Series("far", (Point(0, 0.0), Point(1, -50.0))))
    names = [text for text in root.iter(f"{SVG}text") if text.attrib.get("class", "").startswith("name")]
    places = sorted(float(name.attrib["y"]) for name in names)
    assert len(places) == 25
    assert all(low - high >= LINE - 0.02 for high, low in pairwise(places))
    assert places[-1] < float(root.attrib["height"])


@pytest.mark.parametrize("points", [(Point(1, 0.0),), (Point(1, 5.0), Point(1, 5.0)), (Point(1, -2.0), Point(2, -2.0))])
def test_degenerate_lines_can_be_drawn_and_no_point_at_all_is_an_error(points: tuple[Point, ...]) -> None:
    (places,) = lines(drawn(Series("a", points), Series("none", ())))
    assert len(places) == len(points)
    assert all(0 < x < 600 and 0 < y < 400 for x, y in places)
    with pytest.raises(ValueError):
        drawn(Series("a", ()))
