"""Comparison reports of several training runs: means over seeds with intervals, tables and charts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Literal

from regard.explore.pictures.chart import Axis, Point, Series, chart
from regard.runs.compare.results import Result, ScoreSummary, at, common
from regard.text.terminal import Table

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t, 0.975, for one degree of freedom and more."""
NORMAL = 1.96
"""The same for many seeds; close enough beyond the ten above."""
NOTHING = "–"
DIVERGED = "diverged"
Axes = Literal["step", "seconds"]


@dataclass(frozen=True)
class Estimate:
    """The mean of several seeds with half of its 95 % interval; None for one seed."""

    mean: float
    half: float | None = None

    def to_text(self, decimals: int) -> str:
        """``31.4 ± 0.6``."""
        spread = "" if self.half is None else f" ± {self.half:,.{decimals}f}"
        return f"{self.mean:,.{decimals}f}{spread}"


def estimate(values: Sequence[float]) -> Estimate | None:
    """The mean and its interval by Student's t; None without values."""
    if not values:
        return None
    if len(values) == 1:
        return Estimate(values[0])
    freedom = len(values) - 1
    factor = STUDENT[freedom - 1] if freedom <= len(STUDENT) else NORMAL
    return Estimate(mean(values), factor * stdev(values) / math.sqrt(len(values)))


class ComparisonReport:
    """Results in rows, one for each recipe and share of the data, aggregated over seeds.

    Args:
        results: in the order in which they shall stand.
        lowercase: BLEU without regard to case.
    """

    def __init__(self, results: Sequence[Result], lowercase: bool = False) -> None:
        self.results, self.lowercase = results, lowercase
        self.step, self.seconds = common(results, "step"), common(results, "seconds")
        self.groups: dict[tuple[str, float], list[Result]] = {}
        for result in results:
            self.groups.setdefault((result.recipe, result.share), []).append(result)
        self.shares = sorted({share for _, share in self.groups})
        self.tested = any(result.test for result in results)

    @property
    def whole(self) -> dict[str, list[Result]]:
        """The results on the largest share of the data, by recipe."""
        return {name: results for (name, share), results in self.groups.items() if share == self.shares[-1]}

    def table(self) -> Table:
        """Size, speed, the paper's Table 1 by formula, and quality at equal steps, at equal time and at the end."""
        steps = f"{self.step:,.0f} steps" if self.step else "equal steps"
        time = "equal time"
        if self.seconds:
            time = f"{self.seconds:.0f} s" if self.seconds < 90 else f"{self.seconds / 60:.1f} min"
        headings = ["recipe", *(["share of\nthe data"] if len(self.shares) > 1 else [])]
        headings += ["parameters", "target\ntokens/s", "sequential\nsteps", "path: target\nto source"]
        headings += ["path within\nthe source", "steps\nmade", f"loss at\n{steps}", f"greedy BLEU\nat {steps}"]
        headings += [f"loss at\n{time}", f"{self._bleu}\nvalidation", *([f"{self._bleu}\ntest"] if self.tested else [])]
        rows = [tuple(self._row(name, share, found)) for (name, share), found in self.groups.items()]
        return Table(tuple(headings), tuple(rows), tuple(self._notes()))

    @property
    def _bleu(self) -> str:
        return "BLEU lc" if self.lowercase else "BLEU"

    def _row(self, name: str, share: float, results: list[Result]) -> Iterable[str]:
        good = [result for result in results if result.failed is None]
        shape = next((result.shape for result in good if result.shape), None)
        yield name
        if len(self.shares) > 1:
            yield format_fraction(share)
        yield f"{results[0].course.parameters:,}"
        yield _format_estimate(estimate([result.course.tokens_per_second for result in results]), 0)
        for count in (shape.sequential, shape.across, shape.within) if shape else (None, None, None):
            yield NOTHING if count is None else _format_formula(count.formula, count.value)
        yield _format_estimate(estimate([float(result.course.steps) for result in good]), 0)
        yield _format_estimate(_estimate_at(good, "step", self.step, "loss"), 3)
        yield _format_estimate(_estimate_at(good, "step", self.step, "bleu"), 1)
        yield _format_estimate(_estimate_at(good, "seconds", self.seconds, "loss"), 3)
        for part in ("valid", "test") if self.tested else ("valid",):
            yield DIVERGED if len(good) < len(results) else _format_estimate(self._score(good, part), 1)

    def _score(self, results: Sequence[Result], part: str, place: int | None = None) -> Estimate | None:
        """BLEU over seeds, of a whole set or of one length bucket; ``None`` if any result lacks it."""
        found: list[ScoreSummary | None] = [getattr(result, part) for result in results]
        scored = [one if place is None or one is None else one.by_length[place] for one in found]
        values = [None if one is None else one.bleu_lowercase if self.lowercase else one.bleu for one in scored]
        known = [value for value in values if value is not None]
        return estimate(known) if len(known) == len(values) else None

    def _notes(self) -> Iterable[str]:
        shape = next((result.shape for result in self.results if result.shape), None)
        one = next((result.valid for result in self.results if result.valid), None)
        if shape:
            yield (
                "Sequential steps (of learning from one pair) and paths by formula [Vaswani17 §4], a layer at one "
                f"position counting one: n = {shape.source_tokens} source and m = {shape.target_tokens} target tokens, "
                "the means of the validation set."
            )
        yield (
            "At equal steps and equal time: validations on the way, read off between two of them by a straight line; "
            "loss in nats a token, greedy BLEU of the first validation sentences where it was taken by then. A run "
            "that goes on behind that place has not lowered its rate yet, which counts against it there."
        )
        if one:
            signature = one.signature_lowercase if self.lowercase else one.signature
            yield f"{self._bleu}: {signature}, searched as the recipe says."
        if any(len(results) > 1 for results in self.groups.values()):
            yield "±: half of the 95 % interval of the mean over seeds (Student's t)."

    @property
    def part(self) -> str:
        """The evaluated set: the test set if there is one."""
        return "test" if self.tested else "valid"

    @property
    def _set(self) -> str:
        return "test set" if self.tested else "validation set"

    def by_length(self) -> Table:
        """BLEU by source length, on the largest share of the data."""
        names = self._lengths()
        headings = ("recipe", *(f"{name} words\n({count:,})" for name, count in names))
        rows = (
            (recipe, *(_format_estimate(self._score(results, self.part, i), 1) for i in range(len(names))))
            for recipe, results in self.whole.items()
        )
        note = f"{self._bleu} on the {self._set} by words of the source; in brackets how many sentences."
        return Table(headings, tuple(rows), (note,))

    def _lengths(self) -> list[tuple[str, int]]:
        """The length buckets of the set, and their numbers of sentences."""
        found = (getattr(result, self.part) for results in self.whole.values() for result in results)
        quality = next((one for one in found if one), None)
        return [(part.name, part.sentences) for part in quality.by_length] if quality else []

    def charts(self) -> dict[str, str]:
        """Charts by name: BLEU by length, loss by time and, for several shares, BLEU by share."""
        found = {"by-length": self._length_chart(), "by-time": self._time_chart()}
        if len(self.shares) > 1:
            found["by-share"] = self._share_chart()
        return {name: picture for name, picture in found.items() if picture is not None}

    def _length_chart(self) -> str | None:
        names = self._lengths()
        ticks = tuple((float(i), f"{name} ({count:,})") for i, (name, count) in enumerate(names))
        series = [
            Series(name, _points((float(i), self._score(found, self.part, i)) for i in range(len(names))))
            for name, found in self.whole.items()
        ]
        across = Axis("words of the source (sentences)", ticks)
        return _draw_chart(series, "Quality by the length of the source", across, Axis(f"{self._bleu}, {self._set}"))

    def _time_chart(self) -> str | None:
        """The validation loss over time, of each recipe's first run."""
        firsts = {name: found[0] for name, found in self.whole.items()}
        series = [
            Series(name, tuple(Point(point.seconds / 60, point.loss) for point in first.course.points))
            for name, first in firsts.items()
        ]
        note = f"A run each, seed {self.results[0].seed}; its rate falls to nothing at its end."
        up = Axis("loss on the validation set, nats a token")
        return _draw_chart(series, "What is learned by when", Axis("minutes of training"), up, note)

    def _share_chart(self) -> str | None:
        ticks = tuple((math.log2(share), format_fraction(share)) for share in self.shares)
        series = []
        for name in dict.fromkeys(name for name, _ in self.groups):
            there = [(share, self.groups[name, share]) for share in self.shares if (name, share) in self.groups]
            points = _points((math.log2(share), self._score(found, self.part)) for share, found in there)
            series.append(Series(name, points))
        across = Axis("share of the training pairs", ticks)
        return _draw_chart(series, "Quality by the amount of data", across, Axis(f"{self._bleu}, {self._set}"))


def _estimate_at(results: Sequence[Result], axis: Axes, place: float | None, score: str) -> Estimate | None:
    """A score at the same point of all runs; ``None`` if any run has none there."""
    found = [at(result.course.points, axis, place, score) for result in results] if place is not None else []
    values = [value for value in found if value is not None]
    return estimate(values) if len(values) == len(results) else None


def _points(values: Iterable[tuple[float, Estimate | None]]) -> tuple[Point, ...]:
    return tuple(Point(place, found.mean, found.half or 0.0) for place, found in values if found is not None)


def _draw_chart(series: Sequence[Series], title: str, across: Axis, up: Axis, note: str = "") -> str | None:
    return chart(series, title, across, up, note) if any(one.points for one in series) else None


def _format_estimate(found: Estimate | None, decimals: int) -> str:
    return NOTHING if found is None else found.to_text(decimals)


def _format_formula(formula: str, value: int) -> str:
    return formula if formula == str(value) else f"{formula} = {value:,}"


def format_fraction(share: float) -> str:
    """``1/8`` for a unit fraction, else the number."""
    parts = round(1 / share)
    return f"{share:g}" if parts == 1 or abs(share * parts - 1) > 1e-9 else f"1/{parts}"


def files(compared: ComparisonReport, name: str) -> dict[str, str]:
    """The report by file name: a Markdown page and its charts."""
    pictures = {f"{name}-{kind}.svg": picture for kind, picture in compared.charts().items()}
    shown = "\n\n".join(f"![{picture.removesuffix('.svg')}]({picture})" for picture in pictures)
    parts = ["# Compared", compared.table().markdown(), "## By the length of the source"]
    return {f"{name}.md": "\n\n".join([*parts, compared.by_length().markdown(), shown]) + "\n", **pictures}
