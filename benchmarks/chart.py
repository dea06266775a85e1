"""Line charts as SVG, with error bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from regard.inspection.pictures import svg
from regard.text.counts import counted
from regard.text.terminal import visible

LIGHT = ("#1a4fc4", "#b3400a", "#1a7f37", "#8250df", "#bf3989", "#0b7285", "#9a6700", "#57606a")
DARK = ("#79b8ff", "#ffa657", "#56d364", "#d2a8ff", "#ff9bce", "#56d4dd", "#e3b341", "#b1bac4")
"""Line colours, by rank; further lines reuse them with dashes."""
DASHES = ("", "7 4", "2 4", "9 3 2 3")
MARKS = (
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "M-3 -3h6v6h-6z",
    "M0 -4l4 7h-8z",
    "M0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z",
    "M0 4l4 -7h-8z",
)
"""Marker shapes (circle, square, triangle, diamond, inverted triangle), so that lines differ without colour."""
LEFT, ABOVE, WIDE, HIGH = 64.0, 56.0, 480.0, 300.0
LINE = 17.0
"""Pixels between names."""


@dataclass(frozen=True)
class Point:
    """A data point.

    Args:
        spread: half the height of its error bar.
    """

    x: float
    y: float
    spread: float = 0.0

    @property
    def bar(self) -> tuple[float, float]:
        """The lower and the upper end of its error bar."""
        return self.y - self.spread, self.y + self.spread

    @property
    def told(self) -> str:
        """The value and what it is between, in words."""
        return f"{self.y:.4g} ± {self.spread:.2g}" if self.spread else f"{self.y:.4g}"


@dataclass(frozen=True)
class Series:
    """A line and its name."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Axis:
    """An axis.

    Args:
        title: of what; with its unit.
        ticks: places and what stands there; none: round numbers.
    """

    title: str
    ticks: Sequence[tuple[float, str]] = field(default=())


@dataclass(frozen=True)
class _Plane:
    """Maps data to pixels."""

    across: tuple[float, float]
    up: tuple[float, float]

    @classmethod
    def of(cls, series: Sequence[Series], across: Axis) -> _Plane:
        """The smallest range that holds every point, with some room above and below; from zero where it starts near."""
        points = [point for one in series for point in one.points]
        places = [point.x for point in points] + [place for place, _ in across.ticks]
        low, high = min(point.bar[0] for point in points), max(point.bar[1] for point in points)
        room = 0.05 * (high - low or abs(high) or 1.0)
        return cls((min(places), max(places)), (0.0 if 0 <= low < high / 2 else low - room, high + room))

    def x(self, value: float) -> float:
        """The x coordinate in pixels; a single value is centred."""
        (first, last), room = self.across, 24.0
        share = (value - first) / (last - first) if last > first else 0.5
        return LEFT + room + share * (WIDE - 2 * room)

    def y(self, value: float) -> float:
        """The y coordinate in pixels."""
        low, high = self.up
        return ABOVE + HIGH * (1 - (value - low) / (high - low))


def chart(series: Iterable[Series], title: str, across: Axis, up: Axis, note: str = "") -> str:
    """A self-contained line chart for light and dark themes, with each name next to the end of its line.

    Args:
        series: those without a point are left out.
        title: stands above the picture.
        across, up: the axes.
        note: a line below it.

    Raises:
        ValueError: there is no point at all.
    """
    kept = [one for one in series if one.points]
    if not kept:
        raise ValueError("a chart needs a point at least")
    plane = _Plane.of(kept, across)
    body = [_style(), *_axes(plane, across, up)]
    for number, one in enumerate(kept):
        body += _draw_series(one, number, plane)
    body += _names(kept, plane)
    names = max(svg.text_width(visible(one.name)[: svg.LABEL], 12) for one in kept)
    width = max(LEFT + WIDE + 40 + names + svg.MARGIN, 2 * svg.MARGIN + svg.text_width(note, 11))
    below = max(ABOVE + HIGH, ABOVE + LINE * len(kept)) + 44
    if note:
        body.append(svg.small_text(svg.MARGIN, below + 14, note))
    ends = (f"{visible(one.name)} from {one.points[0].y:.4g} to {one.points[-1].y:.4g}" for one in kept)
    told = f"{up.title} by {across.title}, {counted(len(kept), 'line')}. {'; '.join(ends)}."
    return svg.document(width, below + (30 if note else 14), title, told, body)


def _style() -> str:
    """The colours for light and dark themes."""
    rules = []
    for inks in (LIGHT, DARK):
        part = "".join(f".s{i} {{ stroke: {ink} }} .s{i} path, .n{i} {{ fill: {ink} }}\n" for i, ink in enumerate(inks))
        rules.append(part if inks is LIGHT else f"@media (prefers-color-scheme: dark) {{\n{part}}}")
    fixed = ".series { fill: none; stroke-width: 1.8; stroke-linejoin: round } .series path { stroke: none }\n"
    return f"<style>\n{fixed}.name {{ font-size: 12px }} .grid {{ stroke-opacity: 0.5 }}\n{''.join(rules)}\n</style>"


def _axes(plane: _Plane, across: Axis, up: Axis) -> list[str]:
    """The frame, grid lines, tick labels and axis titles."""
    left, right, bottom = LEFT, LEFT + WIDE, ABOVE + HIGH
    body = [svg.frame(left, ABOVE, WIDE, HIGH)]
    for value, text in up.ticks or _round(*plane.up):
        if plane.up[0] <= value <= plane.up[1]:
            y = svg.number(plane.y(value))
            body.append(f'<path class="frame grid" d="M{svg.number(left)} {y}H{svg.number(right)}"/>')
            body.append(svg.small_text(left - 8, plane.y(value) + 4, text, "end"))
    for value, text in across.ticks or _round(*plane.across):
        body.append(svg.small_text(plane.x(value), bottom + 16, text, "middle"))
    body.append(svg.small_text(left + WIDE / 2, bottom + 34, across.title, "middle"))
    body.append(svg.small_text(left - 8, ABOVE - 8, up.title, "start"))
    return body


def _round(low: float, high: float) -> list[tuple[float, str]]:
    """About six round numbers from ``low`` to ``high``."""
    raw = (high - low) / 6 or 1.0
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [(i * step, f"{i * step:,.10g}") for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _draw_series(one: Series, number: int, plane: _Plane) -> list[str]:
    """A line, its points with tooltips, and their error bars."""
    dash = DASHES[number // len(LIGHT) % len(DASHES)]
    line = " ".join(f"{svg.number(plane.x(p.x))},{svg.number(plane.y(p.y))}" for p in one.points)
    body = [f'<g class="series s{number % len(LIGHT)}">']
    body.append(f'<polyline points="{line}"{f" stroke-dasharray={chr(34)}{dash}{chr(34)}" if dash else ""}/>')
    for point in one.points:
        x, y = svg.number(plane.x(point.x)), svg.number(plane.y(point.y))
        low, high = point.bar
        if low < high:
            ends = (svg.number(plane.y(end)) for end in (high, low))
            body.append(f'<polyline stroke-opacity="0.6" points="{" ".join(f"{x},{end}" for end in ends)}"/>')
        mark, told = MARKS[number % len(MARKS)], f"{svg.safe(visible(one.name))}: {point.told}"
        body.append(f'<path d="{mark}" transform="translate({x} {y})"><title>{told}</title></path>')
    return [*body, "</g>"]


def _names(series: Sequence[Series], plane: _Plane) -> list[str]:
    """The names at the line ends, spread apart where they would overlap."""
    ends = sorted((plane.y(one.points[-1].y), number) for number, one in enumerate(series))
    places = _spread_apart([y for y, _ in ends])
    body = []
    for (y, number), place in zip(ends, places, strict=True):
        one, ink = series[number], number % len(LIGHT)
        x, right = plane.x(one.points[-1].x) + 6, LEFT + WIDE + 14
        lead = f"M{svg.number(x)} {svg.number(y)}L{svg.number(right)} {svg.number(place)}"
        body.append(f'<path class="frame grid" d="{lead}"/>')
        mark = f'<g class="series s{ink}"><path d="{MARKS[number % len(MARKS)]}"'
        body.append(f'{mark} transform="translate({svg.number(right + 6)} {svg.number(place)})"/></g>')
        corner = f'x="{svg.number(right + 16)}" y="{svg.number(place + 4)}"'
        body.append(f'<text class="name n{ink}" {corner}>{svg.label(one.name)}</text>')
    return body


def _spread_apart(wanted: Sequence[float]) -> list[float]:
    """Ascending positions at least a line apart, moved down only as far as needed."""
    places: list[float] = []
    for y in wanted:
        places.append(max(y, places[-1] + LINE) if places else y)
    lowest = ABOVE + max(HIGH, LINE * len(wanted))
    for i in reversed(range(len(places))):
        places[i] = min(places[i], lowest)
        lowest = places[i] - LINE
    return places
