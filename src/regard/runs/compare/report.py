"""Comparison reports of several training runs: tables of means over seeds with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Literal

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
        self.part, self.set_name = ("test", "test set") if self.tested else ("valid", "validation set")
        self.bleu = "BLEU lc" if lowercase else "BLEU"
        self.whole = {name: found for (name, share), found in self.groups.items() if share == self.shares[-1]}
        """The results on the largest share of the data, by recipe."""

    def table(self) -> Table:
        """Size, speed, the paper's Table 1 by formula, and quality at equal steps, at equal time and at the end."""
        steps = f"{self.step:,.0f} steps" if self.step else "equal steps"
        time = "equal time"
        if self.seconds:
            time = f"{self.seconds:.0f} s" if self.seconds < 90 else f"{self.seconds / 60:.1f} min"
        headings = ["recipe", *(["share of\nthe data"] if len(self.shares) > 1 else [])]
        headings += ["parameters", "target\ntokens/s", "sequential\nsteps", "path: target\nto source"]
        headings += ["path within\nthe source", "steps\nmade", f"loss at\n{steps}", f"greedy BLEU\nat {steps}"]
        headings += [f"loss at\n{time}", f"{self.bleu}\nvalidation", *([f"{self.bleu}\ntest"] if self.tested else [])]
        rows = [tuple(self._row(name, share, found)) for (name, share), found in self.groups.items()]
        return Table(tuple(headings), tuple(rows), tuple(self._notes()))

    def _row(self, name: str, share: float, results: list[Result]) -> Iterable[str]:
        good = [result for result in results if result.failed is None]
        shape = next((result.shape for result in good if result.shape), None)
        yield name
        if len(self.shares) > 1:
            yield format_fraction(share)
        yield f"{results[0].course.parameters:,}"
        yield _format_estimate(estimate([result.course.tokens_per_second for result in results]), 0)
        for count in (shape.sequential, shape.across, shape.within) if shape else (None, None, None):
            value = "" if count is None or count.formula == str(count.value) else f" = {count.value:,}"
            yield NOTHING if count is None else f"{count.formula}{value}"
        yield _format_estimate(estimate([float(result.course.steps) for result in good]), 0)
        yield _format_estimate(_estimate_at(good, "step", self.step, "loss"), 3)
        yield _format_estimate(_estimate_at(good, "step", self.step, "bleu"), 1)
        yield _format_estimate(_estimate_at(good, "seconds", self.seconds, "loss"), 3)
        for part in ("valid", "test") if self.tested else ("valid",):
            yield DIVERGED if len(good) < len(results) else _format_estimate(self.score(good, part), 1)

    def score(self, results: Sequence[Result], part: str, place: int | None = None) -> Estimate | None:
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
            yield f"{self.bleu}: {signature}, searched as the recipe says."
        if any(len(results) > 1 for results in self.groups.values()):
            yield "±: half of the 95 % interval of the mean over seeds (Student's t)."

    def by_length(self) -> Table:
        """BLEU by source length, on the largest share of the data."""
        names = self.lengths()
        headings = ("recipe", *(f"{name} words\n({count:,})" for name, count in names))
        rows = (
            (recipe, *(_format_estimate(self.score(results, self.part, i), 1) for i in range(len(names))))
            for recipe, results in self.whole.items()
        )
        note = f"{self.bleu} on the {self.set_name} by words of the source; in brackets how many sentences."
        return Table(headings, tuple(rows), (note,))

    def lengths(self) -> list[tuple[str, int]]:
        """The length buckets of the set, and their numbers of sentences."""
        found = (getattr(result, self.part) for results in self.whole.values() for result in results)
        quality = next((one for one in found if one), None)
        return [(part.name, part.sentences) for part in quality.by_length] if quality else []


def _estimate_at(results: Sequence[Result], axis: Axes, place: float | None, score: str) -> Estimate | None:
    """A score at the same point of all runs; ``None`` if any run has none there."""
    found = [at(result.course.points, axis, place, score) for result in results] if place is not None else []
    values = [value for value in found if value is not None]
    return estimate(values) if len(values) == len(results) else None


def _format_estimate(found: Estimate | None, decimals: int) -> str:
    """``31.4 ± 0.6``."""
    if found is None:
        return NOTHING
    spread = "" if found.half is None else f" ± {found.half:,.{decimals}f}"
    return f"{found.mean:,.{decimals}f}{spread}"


def format_fraction(share: float) -> str:
    """``1/8`` for a unit fraction, else the number."""
    parts = round(1 / share)
    return f"{share:g}" if parts == 1 or abs(share * parts - 1) > 1e-9 else f"1/{parts}"


def page(compared: ComparisonReport) -> str:
    """The report in Markdown."""
    tables = compared.table().markdown(), compared.by_length().markdown()
    return f"# Compared\n\n{tables[0]}\n\n## By the length of the source\n\n{tables[1]}\n"
