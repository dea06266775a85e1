"""Runs of several seeds: their means with intervals, and the chart of the language models' curves."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from tables import Row

Session = dict[str, Any]
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""By the number of runs, the factor of a 95 % interval of their mean, in standard errors."""
CALIBRATION = "test calibration_error"
SPANS = "test spans f1"
"""The score of a set of entities; any other has the accuracy."""
OUTSIDE = {"clinc150": 1000}
"""Texts of no class in a test part. A model without such a label misses all; means are of those in scope."""


def groups_of(rows: list[Row]) -> list[list[Row]]:
    """Runs of one set and name that differ in the seed alone."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["name"], row["settings"]), []).append(row)
    return list(groups.values())


def mean(group: list[Row]) -> Row:
    """Their score on validation and test, over seeds."""
    judged = SPANS if SPANS in group[0] else "test accuracy"
    valid = next((key for key in group[0] if key.startswith("validation ")), "")
    return {
        "runs": len(group),
        "minutes": round(fmean(row["train minutes"] for row in group), 1),
        "validation": over_seeds(group, valid),
        "test": over_seeds(group, judged),
    }


def over_seeds(group: list[Row], key: str) -> str:
    """One measure of the runs that have it."""
    return interval([row[key] * in_scope(row, key) for row in group if key in row])


def in_scope(row: Row, key: str) -> float:
    """What an accuracy is multiplied by, where texts of no class count as wrong because no such label was named."""
    counted = key == "test accuracy" and row["set"] in OUTSIDE and not any("out_of_scope" in name for name in row)
    return row["test texts"] / (row["test texts"] - OUTSIDE[row["set"]]) if counted else 1.0


def interval(values: list[float]) -> str:
    """A mean and half of its 95 % interval; of a single run its value."""
    if len(values) not in STUDENT:
        return f"{fmean(values):.2f}" if values else ""
    return f"{fmean(values):.2f} ± {STUDENT[len(values)] * stdev(values) / len(values) ** 0.5:.2f}"


def curves(rows: list[Row]) -> str | None:
    """The chart of the validation losses on the way; masked words are another measure, of another size."""
    from chart import Axis, Point, Series, chart

    drawn = [row for row in rows if "curve" in row and not row["run"].startswith("sentences")]
    lines = [Series(row["run"], tuple(Point(x, y) for x, y in row["curve"])) for row in drawn]
    title = "Validation loss of language models"
    note = "The rate falls to nothing at the end."
    return chart(lines, title, Axis("minutes of training"), Axis("nats a character"), note) if lines else None
