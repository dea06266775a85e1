"""The families side by side on Multi30k: what attention does for a recurrence, and what takes the recurrence's place.

    python benchmarks/compare.py --set attention --minutes 5 --seeds 1 2 3 --test
    python benchmarks/compare.py --set families --minutes 5 --seeds 1 --test
    python benchmarks/compare.py --set shares --minutes 5 --seeds 1 --test
    python benchmarks/compare.py --set norms --minutes 5 --seeds 1 --test

``regard compare`` on the recipes below ``recipes/compare``, German to English. A comparison that was stopped goes on
when the same command is given again; runs that are done are not made, nor scored, again, and the sets share them: each
is kept as a line of ``results/runs/compare-5-minutes.jsonl`` too, so that a new checkout goes on from there. When
all are done, two tables are appended to ``results/compare.jsonl`` (or ``--results FILE``), and the charts written to
``docs/`` (or ``--charts DIR``). Meant to be started detached: ``setsid … > log 2>&1 < /dev/null &``.
"""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path
from typing import Any

import command
import machine
from chart import Axis, Point, Series, chart
from command import HERE, WORK
from corpus import data_folder

RECIPES = HERE.parent / "recipes" / "compare"
ALL = ["elman", "gru", "lstm", "gru-dot", "gru-scaled", "gru-general", "gru-additive", "gru-cosine"]
ALL += ["gru-additive-feeding", "lstm-additive", "transformer"]
THREE = ["gru", "gru-additive", "transformer"]
NORMS = [f"norms/{name}" for name in ("layer", "rms", "batch", "group")]
SETS: dict[str, tuple[str, list[str], tuple[float, ...]]] = {
    "attention": ("Without attention, with it, and attention alone", THREE, (1.0,)),
    "families": ("Families on Multi30k", ALL, (1.0,)),
    "shares": ("Families on parts of Multi30k", THREE, (0.125, 0.25, 0.5, 1.0)),
    "norms": ("Kinds of norm on Multi30k", NORMS, (1.0,)),
}
"""Of each its title, its recipes, and the shares of the training pairs."""


def main() -> None:
    """Compare, and append the tables."""
    parser = command.parser(__doc__, "compare", WORK / "compare")
    parser.add_argument("--set", choices=list(SETS), required=True)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--test", action="store_true", help="also score test_2016: for final runs only")
    parser.add_argument("--charts", type=Path, default=HERE.parent / "docs")
    asked = parser.parse_args()
    begun = machine.begun("compare")
    from regard.cli.io.terminal import Stop
    from regard.runs.compare.compare import RESULTS, Budget, Texts, compare
    from regard.runs.compare.report import ComparisonReport
    from regard.training.reporters import LineReporter

    title, names, shares = SETS[asked.set]
    budget = Budget(asked.minutes, None, tuple(asked.seeds), shares)
    work = asked.work / f"{asked.minutes:g}-minutes"
    kept = asked.results.parent / "runs" / f"compare-{asked.minutes:g}-minutes.jsonl"
    if kept.exists():
        work.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(kept, work / RESULTS)
    data = data_folder()
    train, valid, test = (
        (data / f"{part}.de.gz", data / f"{part}.en.gz") for part in ("train", "val", "test_2016_flickr")
    )
    with Stop() as stop:
        results = compare(
            [RECIPES / f"{name}.toml" for name in names],
            Texts([train[0]], [train[1]], valid, test if asked.test else None),
            budget,
            work,
            threads=asked.threads,
            reporter=LineReporter(sys.stderr),
            should_stop=stop,
            shown=lambda results: keep(work / RESULTS, kept),
        )
    shown = ComparisonReport(results, lowercase=True)
    name = f"{title}, German to English, {asked.minutes:g} minutes each"
    charts = pictures(shown, f"compare-{asked.set}", asked.charts)
    for named, table, figures in (
        (name, shown.table(), charts[1:]),
        (f"{name}, by the length of the source", shown.by_length(), charts[:1]),
    ):
        rows = [dict(zip((flat(heading) for heading in table.headings), row, strict=True)) for row in table.rows]
        seeds = f"Seeds {', '.join(map(str, asked.seeds))}; threads: {asked.threads}."
        note = "\n\n".join([" ".join([seeds, *table.notes]), *(f"![{path.stem}]({path.name})" for path in figures)])
        machine.append(asked.results, {**begun, "name": named, "note": note}, rows)


def keep(runs: Path, kept: Path) -> None:
    """Brings the lines of the runs that are done to where they are kept."""
    if runs.exists():
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(runs, kept)


def pictures(shown: Any, name: str, folder: Path) -> list[Path]:
    """Writes the charts; the one by length comes first."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, picture in charts_of(shown).items():
        paths.append(folder / f"{name}-{kind}.svg")
        paths[-1].write_text(picture, encoding="utf-8")
    return paths


def charts_of(shown: Any) -> dict[str, str]:
    """BLEU by length, loss by time of each recipe's first run and, for several shares, BLEU by share."""
    from regard.runs.compare.report import format_fraction

    score, lengths = Axis(f"{shown.bleu}, {shown.set_name}"), shown.lengths()
    by_length = [
        Series(name, points((float(at), shown.score(runs, shown.part, at)) for at in range(len(lengths))))
        for name, runs in shown.whole.items()
    ]
    by_time = [
        Series(name, tuple(Point(point.seconds / 60, point.loss) for point in runs[0].course.points))
        for name, runs in shown.whole.items()
    ]
    ticks = tuple((float(at), f"{name} ({count:,})") for at, (name, count) in enumerate(lengths))
    words, minutes = Axis("words of the source (sentences)", ticks), Axis("minutes of training")
    loss, note = Axis("loss on the validation set, nats a token"), f"A run each, seed {shown.results[0].seed}."
    found = {
        "by-length": chart(by_length, "Quality by the length of the source", words, score),
        "by-time": chart(by_time, "What is learned by when", minutes, loss, note),
    }
    if len(shown.shares) > 1:
        names = dict.fromkeys(name for name, _ in shown.groups)
        by_share = {name: [share for share in shown.shares if (name, share) in shown.groups] for name in names}
        lines = [
            Series(
                name, points((math.log2(share), shown.score(shown.groups[name, share], shown.part)) for share in some)
            )
            for name, some in by_share.items()
        ]
        ticks = tuple((math.log2(share), format_fraction(share)) for share in shown.shares)
        found["by-share"] = chart(
            lines, "Quality by the amount of data", Axis("share of the training pairs", ticks), score
        )
    return found


def points(values: Any) -> tuple[Point, ...]:
    """Means with half of their intervals, at places."""
    return tuple(Point(place, one.mean, one.half or 0.0) for place, one in values if one is not None)


def flat(heading: str) -> str:
    """A heading on one line."""
    return heading.replace("\n", " ")


if __name__ == "__main__":
    command.run(main)
