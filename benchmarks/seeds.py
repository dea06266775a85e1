"""The parts of ``docs/results.md`` about the runs of ``reading.py`` and ``writing.py``."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from tables import grid

Session = dict[str, Any]
Row = dict[str, Any]
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""Of so many runs the factor of a 95 % interval of their mean, in standard errors."""
HEADINGS = {
    "reading": "## Classes, tags and images, trained from nothing",
    "writing": "## Language models",
}
PUBLISHED = {
    "trec": "CNN from random vectors 91.2 [Kim14]",
    "sst2": "CNN from random vectors 82.7, taught phrases too",
    "clinc150": "in scope: SVM 91.0, CNN 91.2, BERT 96.9 [Larson19]",
    "snips": "97 to 99, on another cut of the data",
    "ewt": "of the dev part: features made by hand 94.2, BERT base 97.4",
    "wnut17": "best of 2017, with pretrained vectors: 41.9; Flair 49.6",
    "btc": "none that is sure",
    "optdigits": "nearest neighbour 98.0",
}
"""What others reached on the test part, as far as that is known."""
CALIBRATION = "test calibration_error"
SPANS = "test spans f1"
"""What a set of entities is judged by; any other by accuracy."""
BESIDE = (
    "Published for tiny Shakespeare, by nanoGPT: 1.88 in three minutes of a processor (4 layers of 128), 1.4697 on a "
    "graphics card (6 layers of 384)."
)
SCOPE = {
    "recall": "recall",
    "f1": "F1",
    "accuracy": "all texts treated rightly",
    "in_scope_accuracy": "in scope, right and kept",
}
"""What the threshold makes of texts that belong to no class."""
OUTSIDE = {"clinc150": 1000}
"""Texts of no class in a test part. Who names no label for them has them all wrong; the means are of those in scope."""
LEFT_OUT = ("set", "name", "seed", "test texts", "test unlabelled", "test words", "test empty", "curve")
CURVES = "language-models.svg"
"""The chart of all curves, beside the page."""


def seeds(kind: str, runs: list[Session]) -> list[str]:
    """The runs of one runner: means over seeds with their intervals, then every run."""
    rows = {row["run"]: row | where(session) for session in runs for row in session["rows"]}
    lines = ["", HEADINGS[kind], ""]
    groups = grouped(list(rows.values()))
    if groups:
        told = "Means over seeds; ±: half of a 95 % interval (Student's), where there are several. CLINC150: in scope."
        lines += [told, ""]
        lines += grid([mean(group) for group in groups])
    if outside := [group for group in groups if any("out_of_scope" in key for key in group[0])]:
        lines += ["", "Texts of no class, told by a threshold that was fitted on validation texts:", ""]
        lines += grid([named(group) | scope(group) for group in outside])
    shown = [{name: row[name] for name in row if name not in LEFT_OUT and "scope" not in name} for row in rows.values()]
    if any("curve" in row for row in rows.values()):
        lines += ["Validation loss in nats a character over minutes of training (of masked words: in the table):", ""]
        lines += [f"![The curves of the runs]({CURVES})", "", BESIDE]
    return [*lines, "", "Every run:", "", *grid(shown)]


def curves(runs: list[Session]) -> str | None:
    """The chart of the validation losses on the way; masked words are another measure, of another size."""
    from regard.explore.pictures.chart import Axis, Point, Series, chart

    rows = {row["run"]: row for session in runs for row in session["rows"] if "curve" in row}
    rows = {name: row for name, row in rows.items() if not name.startswith("sentences")}
    lines = [Series(name, tuple(Point(x, y) for x, y in row["curve"])) for name, row in rows.items()]
    title = "Validation loss of language models"
    up = Axis("nats a character")
    note = "The rate falls to nothing at the end."
    return chart(lines, title, Axis("minutes of training"), up, note) if lines else None


def where(session: Session) -> Row:
    """Of which commit, on which machine."""
    host = session.get("machine", {})
    return {"commit": session.get("commit", ""), "machine": f"{host.get('processor')}, {host.get('cores')} cores"}


def grouped(rows: list[Row]) -> list[list[Row]]:
    """Runs of one set and name that differ in the seed alone."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if "set" in row:
            groups.setdefault((row["set"], row["name"], row["settings"]), []).append(row)
    return list(groups.values())


def named(group: list[Row]) -> Row:
    """Which runs they are."""
    first = group[0]
    return {"set": first["set"], "with": " ".join(filter(None, [first["name"], first["settings"]])), "runs": len(group)}


def mean(group: list[Row]) -> Row:
    """Their score on validation and test, over seeds."""
    judged, name = (SPANS, "F1 of entities") if SPANS in group[0] else ("test accuracy", "accuracy")
    found = {"minutes of training": round(fmean(row["train minutes"] for row in group), 1), "score": name}
    valid = next((key for key in group[0] if key.startswith("validation ")), "")
    for name, key in (("validation", valid), ("test", judged), ("calibration error", CALIBRATION)):
        found[name] = interval([row[key] * in_scope(row, key) for row in group if key in row])
    return named(group) | found | {"published, test": PUBLISHED.get(group[0]["set"], "")}


def in_scope(row: Row, key: str) -> float:
    """What an accuracy is multiplied by, where texts of no class count as wrong because no such label was named."""
    counted = key == "test accuracy" and row["set"] in OUTSIDE and not any("out_of_scope" in name for name in row)
    return row["test texts"] / (row["test texts"] - OUTSIDE[row["set"]]) if counted else 1.0


def scope(group: list[Row]) -> Row:
    """What the threshold did, over seeds."""
    return {shown: interval([row[f"test out_of_scope {key}"] for row in group]) for key, shown in SCOPE.items()}


def interval(values: list[float]) -> str:
    """A mean and half of its 95 % interval; of a single run its value."""
    if len(values) not in STUDENT:
        return f"{fmean(values):.2f}" if values else ""
    return f"{fmean(values):.2f} ± {STUDENT[len(values)] * stdev(values) / len(values) ** 0.5:.2f}"
