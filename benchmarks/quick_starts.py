"""Translators from the same pairs in the same minutes: Regard with nothing configured, others by their quick starts.

    python benchmarks/quick_starts.py --sets multi30k --minutes 5 --threads 1
    python benchmarks/quick_starts.py --table                       # of what is in the results, in Markdown

A cell is a system, a set, minutes, a seed and threads; one that is in ``results/quick_starts.jsonl``, or in
``--results FILE``, is not run again. ``peers/quick_start.py`` has the commands, and the page that each value is from.
Minutes count from the first step, as ``regard train --minutes`` counts them; preparing is told beside. Each system runs
on as many cores as ``--threads``, its last state translates the validation part (``--test``: the test part) by its
quick start's own search, and all outputs are scored alike. The peers see the validation part in training; Regard splits
some pairs off.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import command
import machine
from command import data_file, positive_number, whole_number
from corpus import DATA
from environments import Absent
from harness import OURS, Peer, Row, Worker, parser, say
from tables import grid, pivot

from regard.system.errors import RegardError
from regard.text.lines import lines

RUNNER = "peers/quick_start.py"
PEERS = {
    OURS: Peer(OURS, "Regard, nothing configured", RUNNER, None, ("torch",)),
    "joeynmt": Peer("joeynmt", "JoeyNMT, notebook Joey NMT Demo", RUNNER, "joeynmt", ("joeynmt", "torch")),
    "eole": Peer("eole", "Eole, Quickstart", RUNNER, "eole", ("eole", "torch")),
    "marian": Peer("marian", "Marian, Quick start", RUNNER, "marian", ("pymarian",)),
}
NOTES = {
    "joeynmt": "made for a GPU: 6+6 layers, 256 wide, batches of 4,096 tokens; it validates every 2,000 steps",
    "eole": "made for a GPU: 32,000 pieces, SGD; by its page the predictions 'are going to be quite terrible'",
    "marian": "made for a GPU: a recurrent model 1,024 wide, 32,000 pieces a side, beam 12; its wheel knows no AVX2",
}
FLICKR = ("multi30k/train.{}.gz", "multi30k/val.{}.gz", "multi30k/test_2016_flickr.{}.gz")
SETS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "multi30k-5k": ("en", "de", FLICKR),
    "multi30k": ("en", "de", FLICKR),
    "tatoeba": ("en", "de", tuple(f"tatoeba/{part}.en-de.tsv.gz" for part in ("train", "val", "test"))),
    "ddtp": ("en", "de", ("ddtp/train.en-de.tsv.xz", "ddtp/dev.en-de.tsv.gz", "ddtp/test.en-de.tsv.gz")),
    "pydocs": ("en", "fr", ("pydocs-en-fr/train.tsv.xz", "pydocs-en-fr/dev.tsv.gz")),
    "tanaka": ("en", "ja", tuple(f"tanaka-en-ja/{part}.{{}}.gz" for part in ("train", "dev", "test"))),
}
"""Of each set its languages, and its files of training, validation and test: of a side each, or of both."""
PARTS = ("train", "dev", "test")
FIRST = {"multi30k-5k": 5000}
"""Sets of the first so many pairs."""


def sides(name: str, part: str) -> list[list[str]]:
    """Sources and targets of a part.

    Raises:
        RegardError: the set has no such part.
    """
    *languages, files = SETS[name]
    if (place := PARTS.index(part)) >= len(files):
        raise RegardError(f"{name} has no part {part}; leave --test out")
    paths = [data_file(DATA / files[place].format(language)) for language in languages]
    if "{}" in files[place]:
        found = [list(lines(path)) for path in paths]
    else:
        rows = [line.split("\t")[-2:] for line in lines(paths[0])]
        found = [list(side) for side in zip(*rows, strict=True)]
    return [side[: FIRST.get(name) if part == "train" else None] for side in found]


def written(name: str, work: Path) -> Path:
    """The folder of a set's texts, a file for each side of each part, written once."""
    folder = work / "quick_starts" / "sets" / name
    for part in PARTS[: len(SETS[name][2])]:
        for language, side in zip(SETS[name][:2], sides(name, part), strict=True):
            if not (path := folder / f"{part}.{language}").exists():
                folder.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(f"{line}\n" for line in side), encoding="utf-8", newline="\n")
    return folder


def measured(row: Row, asked: Any) -> Row:
    """A cell: it is trained in a process of its own, and its translations are scored."""
    from regard.tasks.metrics.bleu import score

    peer, (source, target, _) = PEERS[row["system"]], SETS[row["set"]]
    folder = asked.work / "quick_starts" / row["run"].replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    job = {"toolkit": peer.name, "folder": str(folder), "corpus": str(written(row["set"], asked.work))}
    job |= {"source": source, "target": target} | {name: row[name] for name in ("minutes", "seed", "threads")}
    row |= {"quick start": peer.title, **({"note": NOTES[peer.name]} if peer.name in NOTES else {})}
    try:
        with closing(Worker(peer, job, asked)) as worker:
            requests = {"prepare": {}, "train": {}, "translate": {"part": row["part"]}}
            told = {do: worker.ask({"do": do, **more}) for do, more in requests.items()}
    except Absent as reason:
        return row | {"versions": peer.versions, "absent": str(reason)}
    finally:
        say((folder / f"{peer.key}.log").read_text(errors="replace")[-600:])
    references, found = sides(row["set"], row["part"])[1], told["translate"]["answers"]
    if len(found) != len(references):
        return row | {"versions": peer.versions, "absent": f"wrote {len(found)} lines for {len(references)}"}
    for case, lowercase in (("lc", True), ("cased", False)):
        scores = score(found, references, target, lowercase, samples=1)
        row |= {f"BLEU {case}": round(scores.bleu, 2), f"signature {case}": scores.bleu_signature}
    shutil.rmtree(folder)
    row |= {"chrF": round(scores.chrf, 2), "steps": told["train"]["answers"], "versions": peer.versions}
    row |= {f"seconds to {do}": round(one["wall"], 1) for do, one in told.items()}
    cpu = told["train"]["whole"] - told["prepare"]["whole"]
    return row | {"cpu seconds to train": round(cpu, 1), "first outputs": found[:3]}


def table(sessions: list[Row]) -> list[str]:
    """BLEU without regard to case, the mean of the seeds: a row for each system, a column for each set and minutes."""
    if not sessions:
        return ["There are no results yet."]
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in {row["run"]: row for session in sessions for row in session["rows"]}.values():  # the newest of each
        across = f"{row['set']} {row['part']}, {row['minutes']:g} min, {row['threads']} thr."
        cells.setdefault((row["quick start"], across), []).append(row)
    flat: list[Row] = []
    for (title, across), some in sorted(cells.items(), key=lambda one: one[0][1]):
        scores = [row["BLEU lc"] for row in some if "BLEU lc" in row]
        shown = f"{mean(scores):.1f} ×{len(scores)}" if scores else "absent"
        flat.append({"system": title, "cell": across, "BLEU": shown})
    notes = {row["quick start"]: row["note"] for session in sessions for row in session["rows"] if "note" in row}
    machines = [session["machine"] for session in sessions]
    loads = [f"{pick(one['load'] for one in machines):.0f}" for pick in (min, max)]
    where = f"{', '.join(sorted({one['processor'] for one in machines}))}; load at the start {'–'.join(loads)}"
    ends = [f"* {title}: {note}." for title, note in notes.items()]
    told = f"BLEU, lower-cased, ×seeds; {where}."
    return [*grid(pivot(flat, "system", "cell", "BLEU")), "", told, *ends]


def main() -> int:
    """Every cell asked for that has no result; or the table."""
    made = parser(__doc__, "quick_starts", PEERS, "--systems")
    told = f"of {', '.join(SETS)}"
    made.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS, metavar="NAME", help=told)
    made.add_argument("--minutes", nargs="+", type=float, default=[5.0, 15.0, 60.0])
    made.add_argument("--seed", nargs="+", type=whole_number, default=[1])
    made.add_argument("--threads", type=positive_number, default=1)
    made.add_argument("--first-core", type=whole_number, default=0, help="threads are pinned to it and those after it")
    made.add_argument("--test", action="store_true", help="score the test part, in place of validation: for final runs")
    made.add_argument("--table", action="store_true", help="print what is in the results, run nothing")
    asked = made.parse_args()
    if asked.table:
        print("\n".join(table(machine.sessions_in(asked.results))))
        return 0
    asked.cores = list(range(asked.first_core, asked.first_core + asked.threads))
    part = "test" if asked.test else "dev"
    absent = 0
    for minutes, name, seed, system in product(asked.minutes, asked.sets, asked.seed, asked.peers):
        row: Row = {"system": system, "set": name, "minutes": minutes, "seed": seed, "threads": asked.threads}
        run = " ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in (*row.values(), part))
        if all(one["run"] != run for one in machine.rows_in(asked.results)):
            begun = machine.begun("quick_starts", name=run)
            row = measured({"run": run, **row, "part": part}, asked)
            machine.append(asked.results, begun, [row])
            absent += "absent" in row
    return int(absent > 0)


if __name__ == "__main__":
    command.run(main)
