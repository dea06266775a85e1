"""The parts of ``docs/results.md`` about the runs of ``reading.py`` and ``writing.py``."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from tables import grid

Session = dict[str, Any]
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""Of so many runs the factor of a 95 % interval of their mean, in standard errors."""
HEADINGS = {
    "reading": "## Classes, tags and images, trained from nothing",
    "writing": "## Language models",
}


def seeds(kind: str, runs: list[Session]) -> list[str]:
    """The runs of one runner: means over seeds with their intervals, then every run."""
    rows = {row["run"]: row | {"commit": session.get("commit", "")} for session in runs for row in session["rows"]}
    lines = ["", HEADINGS[kind], ""]
    if averaged := means(list(rows.values())):
        lines += ["Means over seeds, ± half of a 95 % interval (Student's).", "", *grid(averaged), "", "Every run:", ""]
    shown = [{name: row[name] for name in row if name not in ("set", "name", "seed")} for row in rows.values()]
    hosts = [session.get("machine", {}) for session in runs]
    said = dict.fromkeys(f"*{host.get('processor')}, {host.get('cores')} cores*" for host in hosts)
    return [*lines, *grid(shown), "", *said]


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For runs of one set and name that differ in the seed, the mean of every score."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if "set" in row:
            groups.setdefault((row["set"], row["name"], row["settings"]), []).append(row)
    found = []
    for (dataset, name, settings), group in groups.items():
        if len(group) in STUDENT:
            scores = [key for key in group[0] if scored(key) and all(key in row for row in group)]
            minutes = round(fmean(row["train minutes"] for row in group), 1)
            what = {"set": dataset, "with": " ".join(filter(None, [name, settings])), "runs": len(group)}
            found.append(what | {"minutes": minutes} | {key: interval([row[key] for row in group]) for key in scores})
    return found


def scored(name: str) -> bool:
    """Whether a column is a score."""
    return name.startswith(("validation ", "test "))


def interval(values: list[float]) -> str:
    """A mean and half of its 95 % interval."""
    return f"{fmean(values):.2f} ± {STUDENT[len(values)] * stdev(values) / len(values) ** 0.5:.2f}"
