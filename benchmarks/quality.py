"""Runs that are trained, scored and written down once: what the benchmarks of quality share."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import command
import machine
from command import WORK, positive_number, whole_number

Row = dict[str, Any]


def parser(
    doc: str | None, benchmark: str, minutes: float | None = None, setting: str = "--setting"
) -> argparse.ArgumentParser:
    """A command line of one run; ``minutes`` are the default, ``setting`` is the option of values of the recipe."""
    made = command.parser(doc, benchmark, WORK / benchmark)
    made.add_argument("--seed", type=whole_number, default=1)
    made.add_argument("--minutes", type=float, default=minutes)
    made.add_argument("--threads", type=positive_number, default=1)
    made.add_argument("--name", default="recipe", help="what this run tries")
    told = "section.key=value, as regard train has it"
    made.add_argument(setting, dest="settings", action="append", default=[], help=told)
    made.add_argument("--test", action="store_true", help="also score the test part, if any: for final runs only")
    return made


def done(results: Path, row: Row, test: bool) -> bool:
    """Whether the run is scored already, which is said; a test part is scored once. Another run of its name is refused.

    Raises:
        SystemExit: a run of that name has other threads or settings.
    """
    same = [one for one in machine.rows_in(results) if one["run"] == row["run"]]
    if any(one[key] != row[key] for one in same for key in ("threads", "settings")):
        raise SystemExit(f"{row['run']} stands in {results} with other threads or settings; give this one a --name")
    found = any(not test or any(key.startswith("test") for key in one) for one in same)
    if found:
        print(f"{row['run']} stands in {results} already; give another --results and --work to repeat it")
    return found


def trained(asked: argparse.Namespace, row: Row, **given: Any) -> tuple[Any, Path]:
    """The model of a run as asked for, and its folder; one that was stopped goes on.

    Args:
        row: of the run; the minutes of the whole are added where it was not stopped.
        given: what else ``regard.train`` is given.
    """
    import regard
    from regard.training.reporters import LineReporter

    folder = asked.work / row["run"].replace(" ", "-")
    began, fresh = time.monotonic(), not folder.exists()
    model = regard.train(
        output=folder,
        minutes=asked.minutes,
        seed=asked.seed,
        threads=asked.threads,
        reporter=LineReporter(sys.stderr),
        **given,
    )
    if fresh:
        row["whole minutes"] = round((time.monotonic() - began) / 60, 1)
    return model, folder


def entries(folder: Path) -> dict[str, list[Row]]:
    """The log of a run, by kind of entry."""
    found: dict[str, list[Row]] = {"start": [], "step": [], "valid": []}
    for line in (folder / "training" / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        found.setdefault(entry["kind"], []).append(entry)
    return found


def pairs(folder: Path, source: str, target: str) -> dict[str, Path]:
    """The training and validation pairs of Multi30k, as ``regard.train`` takes them."""
    sides = {"source": source, "target": target}
    return {
        f"{prefix}{side}": folder / f"{part}.{language}.gz"
        for prefix, part in (("", "train"), ("valid_", "val"))
        for side, language in sides.items()
    }
