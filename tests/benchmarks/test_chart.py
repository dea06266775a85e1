"""Charts show every point in its place, with names spread apart, as valid SVG."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from benchmarks import chart as module
from benchmarks.chart import LINE, LOG, Axis, Point, Series, chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*series: Series, across: Axis | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(chart(series, "A title", across or Axis("words"), Axis("BLEU"), "A note."))


def lines(root: ElementTree.Element) -> list[list[tuple[float, float]]]:
    """The points of each series' line."""
    found = []
    for group in root.iter(f"{SVG}g"):
        line = group.find(f"{SVG}polyline")
        if line is not None:
            found.append([(float(x), float(y)) for x, y in (pair.split(",") for pair in line.attrib["points"].split())])
    return found


def test_points_lie_where_their_numbers_say() -> None:
    values = [(0.0, 10.0), (1.0, 40.0), (2.0, 25.0), (4.0, 0.0)]
    (places,) = lines(drawn(Series("one", tuple(Point(x, y) for x, y in values))))
    (x0, y0), (x1, y1) = places[0], places[1]
    for (x, y), (right, down) in zip(values, places, strict=True):
        assert right == pytest.approx(x0 + x * (x1 - x0), abs=0.02)
        assert down == pytest.approx(y0 + (y - 10) / 30 * (y1 - y0), abs=0.02)
    assert x1 > x0
    assert y1 < y0  # up is more


def test_every_point_has_its_tooltip_and_its_spread() -> None:
    root = drawn(Series("a & <b>", (Point(1, 2.5, 0.5), Point(2, 3.0))), Series("c", (Point(1, 1.0),)))
    told = [title.text for title in root.iter(f"{SVG}title")]
    assert told == ["A title", "a & <b>: 2.5 ± 0.5", "a & <b>: 3", "c: 1"]
    strokes = [line for line in root.iter(f"{SVG}polyline") if "stroke-opacity" in line.attrib]
    assert len(strokes) == 1
    lopsided = drawn(Series("d", (Point(1, 4.0, ends=(1.0, 5.0)), Point(2, 4.0, ends=(4.0, 4.0)))))
    (bar,) = [line for line in lopsided.iter(f"{SVG}polyline") if "stroke-opacity" in line.attrib]
    (top, bottom), ((_, place), _) = (
        [float(end.split(",")[1]) for end in bar.attrib["points"].split()],
        lines(lopsided)[0],
    )
    assert bottom - place == pytest.approx(3 * (place - top), abs=0.05)
    assert [title.text for title in lopsided.iter(f"{SVG}title")][1:] == ["d: 4 (1 to 5)", "d: 4"]
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"A title", "a & <b>", "c", "words", "BLEU", "A note."} <= set(texts)


def test_names_never_lie_on_each_other() -> None:
    near = [Series(f"line {i}", (Point(0, 1.0), Point(1, 1.0 + i / 1000))) for i in range(24)]
    root = drawn(*near, Series("far", (Point(0, 0.0), Point(1, -50.0))))
    names = [text for text in root.iter(f"{SVG}text") if text.attrib.get("class", "").startswith("name")]
    places = sorted(float(name.attrib["y"]) for name in names)
    assert len(places) == 25
    assert all(low - high >= LINE - 0.02 for high, low in pairwise(places))
    assert places[-1] < float(root.attrib["height"])


def test_many_lines_differ_by_ink_dash_or_mark() -> None:
    root = drawn(*[Series(str(i), (Point(0, float(i)), Point(1, float(i)))) for i in range(24)])
    looks = []
    for group in root.iter(f"{SVG}g"):
        line = group.find(f"{SVG}polyline")
        if line is not None:
            mark = group.find(f"{SVG}path")
            assert mark is not None
            looks.append((group.attrib["class"], line.attrib.get("stroke-dasharray"), mark.attrib["d"]))
    assert len(set(looks)) == 24


def test_ticks_are_round_numbers_or_what_is_given() -> None:
    root = drawn(Series("a", (Point(0, 0.0), Point(1, 38.0))), across=Axis("words", ((0.0, "1-8"), (1.0, "9+"))))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"0", "10", "20", "30", "1-8", "9+"} <= set(texts)


def test_equal_ratios_lie_equally_far_apart_on_a_logarithmic_axis() -> None:
    line = Series("a", (Point(16, 0.001), Point(32, 0.01), Point(64, 0.1), Point(1024, 10.0, 9.0)))
    axes = Axis("tokens", scale=LOG), Axis("seconds", scale=LOG)
    root = ElementTree.fromstring(chart([line], "A title", *axes))
    (places,) = lines(root)
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = places
    assert x2 - x1 == pytest.approx(x1 - x0, abs=0.02)
    assert x3 - x2 == pytest.approx(4 * (x1 - x0), abs=0.05)
    assert y1 - y2 == pytest.approx(y0 - y1, abs=0.02)
    assert y2 - y3 == pytest.approx(2 * (y0 - y1), abs=0.05)
    (bar,) = [one for one in root.iter(f"{SVG}polyline") if "stroke-opacity" in one.attrib]
    top, bottom = (float(end.split(",")[1]) for end in bar.attrib["points"].split())
    assert bottom == pytest.approx(y0 - 3 * (y0 - y1), abs=0.05)  # 10 - 9
    assert top < y3
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {"20", "100", "1,000", "0.001", "0.01", "0.1", "1", "10"} <= texts
    assert [text for _, text in LOG.ticks(2e-5, 9e-4)] == ["2·10⁻⁵", "5·10⁻⁵", "10⁻⁴", "2·10⁻⁴", "5·10⁻⁴"]


@pytest.mark.parametrize(("low", "high"), [(1, 10), (3, 4000), (2e-9, 0.5), (0.11, 0.9), (4.2, 4.8)])
def test_ticks_of_a_logarithmic_axis_are_few_and_within(low: float, high: float) -> None:
    found = [value for value, _ in LOG.ticks(low, high)]
    assert 2 <= len(found) <= 8
    assert all(low * (1 - 1e-6) <= value <= high * (1 + 1e-6) for value in found)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.003, 0.0042), (2.5, 4.1), (0, 1e7), (-3, 12), (5, 5)])
def test_round_numbers_are_few_even_and_within(low: float, high: float) -> None:
    found = module._round(low, high)
    assert len(found) <= 8
    values = [value for value, _ in found]
    assert all(low - 1e-9 <= value <= high + 1e-9 * max(1, abs(high)) for value in values)
    if low < high:
        assert len(found) >= 3
        steps = {f"{b - a:.3g}" for a, b in pairwise(values)}
        assert len(steps) == 1
    assert all(re.fullmatch(r"-?[\d,.e-]+", text) for _, text in found)


@pytest.mark.parametrize("points", [(Point(1, 0.0),), (Point(1, 5.0), Point(1, 5.0)), (Point(1, -2.0), Point(2, -2.0))])
def test_degenerate_lines_can_be_drawn(points: tuple[Point, ...]) -> None:
    (places,) = lines(drawn(Series("a", points)))
    assert len(places) == len(points)
    assert all(0 < x < 600 and 0 < y < 400 for x, y in places)


def test_a_series_without_points_is_left_out_and_no_point_at_all_is_an_error() -> None:
    assert len(lines(drawn(Series("a", ()), Series("b", (Point(0, 1.0),))))) == 1
    with pytest.raises(ValueError):
        chart([Series("a", ())], "t", Axis("x"), Axis("y"))
