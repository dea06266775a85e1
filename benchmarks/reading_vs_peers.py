"""Reading beside other tools: Regard by its defaults, a linear SVM, fastText and spaCy's blank pipelines.

    python benchmarks/reading_vs_peers.py                                    # everything, scored on validation parts
    python benchmarks/reading_vs_peers.py --set trec --peer svm --seeds 1 --test    # on the test part as well

Nothing is pretrained and nothing tuned. All read the same parts (``reading_splits``); each run is a process of its own
on one core with one thread, in its own environment: it learns, and then uses what it saved on a part. One that was
stopped is begun anew, one that is finished is not repeated but with ``--again``. Predictions are scored here, and where
a part was read by Regard and a peer, the difference gets a paired bootstrap interval. Lines are appended to
``results/reading_vs_peers.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
from environments import WORK, Absent, prepared, python_for
from pinned import last_line, run_pinned, variables
from reading_splits import FOLDS, SETS, Example, Set, ending, splits_of
from tables import Row

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "reading_vs_peers.jsonl"
OURS = "regard"
BOTH = ("classification", "tagging")
LANGUAGES = {"legal-de": "de"}
"""Of sets that are not English."""


@dataclass(frozen=True)
class Peer:
    """A tool that reads.

    Args:
        title: for people.
        runner: of its process.
        environment: where it is installed; none: here.
        tasks: what it learns.
        drawn: whether it begins from random numbers, so that seeds differ.
    """

    title: str
    runner: str
    environment: str | None
    tasks: tuple[str, ...]
    drawn: bool = True


PEERS = {
    OURS: Peer("Regard", "read_ours.py", None, BOTH),
    "svm": Peer("SVM", "peers/read_svm.py", "svm", ("classification",), drawn=False),
    "fasttext": Peer("fastText", "peers/read_fasttext.py", "fasttext", ("classification",)),
    "spacy": Peer("spaCy", "peers/read_spacy.py", "spacy", BOTH),
}
READ = {name: data for name, data in SETS.items() if data.task in BOTH}


@dataclass(frozen=True)
class Run:
    """One peer on one set with one seed."""

    set: str
    peer: str
    seed: int

    @property
    def name(self) -> str:
        """Set, peer and seed."""
        return f"{self.set} {self.peer} {self.seed}"

    @property
    def data(self) -> Set:
        """The set."""
        return SETS[self.set]

    @property
    def spans(self) -> bool:
        """Whether the set is one of entities."""
        return self.data.score == "f1"


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", nargs="+", default=list(READ), choices=[*READ, *FOLDS], metavar="NAME")
    parser.add_argument("--peer", nargs="+", default=list(PEERS), choices=list(PEERS), metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--validation", action="store_true", help="score the validation part alone (the default)")
    which.add_argument("--test", action="store_true", help="score the test part as well: for final runs only")
    parser.add_argument("--again", action="store_true", help="repeat finished runs: the newest counts")
    parser.add_argument("--core", type=int, default=min(cores()), help="the core that runs are pinned to")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of environments, parts and models")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    asked.work = prepared(asked.work)
    asked.set = [name for one in asked.set for name in FOLDS.get(one, (one,))]
    return asked


def cores() -> set[int]:
    """Those that this process may use."""
    return os.sched_getaffinity(0)


def main() -> int:
    """The runs, one after the other; exit code 1 if one was not done."""
    asked = options()
    failed = [run.name for run in runs_of(asked) if not carry_out(run, asked)]
    compare(asked.results)
    if failed:
        print(f"not done: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def runs_of(asked: argparse.Namespace) -> list[Run]:
    """What was asked for; the first seed of everything comes first, and is the only one where nothing is drawn."""
    return [
        Run(name, peer, seed)
        for place, seed in enumerate(asked.seeds)
        for peer in asked.peer
        for name in asked.set
        if READ[name].task in PEERS[peer].tasks and (PEERS[peer].drawn or not place)
    ]


def carry_out(run: Run, asked: argparse.Namespace) -> bool:
    """Learns and scores what is not done yet; false where that failed."""
    parts = ("valid", "test") if asked.test else ("valid",)
    found = {} if asked.again else {row["part"]: row for row in newest(asked.results) if row["run"] == run.name}
    folder = asked.work / "readers" / run.name.replace(" ", "-")
    if all(part in found for part in ("train", *parts)):
        return True
    if "train" not in found or not (folder / "job.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        parts = ("train", *parts)
    for part in parts:
        if part in found and part != "train":
            continue
        begun = {"benchmark": "reading_vs_peers", "name": f"{run.name} {part}", "date": machine.now()}
        begun |= {"commit": machine.commit(), "machine": machine.describe()}
        try:
            row = stage(run, part, folder, asked)
        except Absent as reason:
            print(f"{run.name} {part}: {reason}", file=sys.stderr, flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            return False
        machine.append(asked.results, {**begun, "rows": [row]})
        print(f"{run.name} {part}: {row.get('score', '')} {row['seconds']} s, {row['peak MB']} MB", flush=True)
    return True


def stage(run: Run, part: str, folder: Path, asked: argparse.Namespace) -> Row:
    """Learns (``train``), or uses what was learned on a part; the row that says what came of it.

    Raises:
        Absent: the peer cannot be installed, or it failed.
    """
    peer, splits = PEERS[run.peer], splits_of(run.set, asked.work)
    folder.mkdir(parents=True, exist_ok=True)
    job, result, said = folder / "job.json", folder / "result.json", folder / f"{part}.jsonl"
    result.unlink(missing_ok=True)
    values = {"task": run.data.task, "spans": run.spans, "language": LANGUAGES.get(run.set, "en"), "seed": run.seed}
    values |= {"splits": str(splits), "ending": ending(run.data), "model": str(folder)}
    values |= {"part": "" if part == "train" else part, "result": str(result), "predictions": str(said)}
    job.write_text(json.dumps(values), encoding="utf-8")
    python = python_for(peer.environment, asked.work) if peer.environment else Path(sys.executable)
    log = folder / f"{part}.log"
    run_pinned([python, HERE / peer.runner, job], folder, variables(1, run.peer == OURS), [asked.core], log)
    if not result.exists():
        raise Absent(f"failed: {last_line(log)}")
    row: Row = {"run": run.name, "set": run.set, "peer": run.peer, "seed": run.seed, "part": part}
    row |= json.loads(result.read_text(encoding="utf-8"))
    return row if part == "train" else row | scored(read_lines(splits / f"{part}.jsonl"), read_lines(said), run.spans)


def read_lines(path: Path) -> list[Any]:
    """The values of JSON lines."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def scored(examples: list[Example], said: list[Any], spans: bool) -> dict[str, Any]:
    """The score of predictions, and the counts of each example."""
    from bootstrap import counts_of, packed

    from regard.tasks.metrics.spans import tag_scores

    gold = [one["label"] if "label" in one else one["tags"] for one in examples]
    counts_NK = counts_of(gold, said, spans)
    if "label" in examples[0]:
        score = 100 * sum(right == found for right, found in zip(gold, said, strict=True)) / len(gold)
    else:
        found = tag_scores(gold, said, "bio" if spans else "none")
        score = found.spans.spans.f1 if found.spans else found.accuracy
    words = {} if "label" in examples[0] else {"words": sum(map(len, gold))}
    return {"score": round(score, 2), "texts": len(gold), **words, "counts": packed(counts_NK)}


def newest(results: Path) -> list[Row]:
    """The last row of each run and part; there are none without a file."""
    if not results.exists():
        return []
    sessions = map(json.loads, results.read_text(encoding="utf-8").splitlines())
    return latest(row for session in sessions for row in session["rows"])


def latest(rows: Iterable[Row]) -> list[Row]:
    """The last row of each run and part."""
    return list({(row["run"], row["part"]): row for row in rows}.values())


def compare(results: Path) -> None:
    """Appends the difference of Regard to each peer where there is none, or one of other runs."""
    from bootstrap import paired

    rows = newest(results)
    for name in wholes():
        own = whole_runs(rows, name, OURS)
        for peer in PEERS:
            other = whole_runs(rows, name, peer)
            if peer == OURS or not own or not other:
                continue
            sides = (("ours", OURS), ("theirs", peer))
            row: Row = {"run": f"{name} {peer}", "set": name, "peer": peer, "part": "difference"}
            row |= {
                side: {str(seed): score for seed, score in whole_scores(rows, name, one).items()} for side, one in sides
            }
            if any(row.items() <= one.items() for one in rows):
                continue
            lead, low, high = paired(list(own.values()), list(other.values()))
            row |= {"difference": round(lead, 2), "low": round(low, 2), "high": round(high, 2)}
            begun = {"benchmark": "reading_vs_peers", "name": row["run"], "date": machine.now()}
            machine.append(results, {**begun, "commit": machine.commit(), "machine": machine.describe(), "rows": [row]})


def wholes() -> dict[str, tuple[str, ...]]:
    """The sets as they are told: folds together."""
    inside = {fold for folds in FOLDS.values() for fold in folds}
    return {name: (name,) for name in READ if name not in inside} | FOLDS


def whole_runs(rows: list[Row], name: str, peer: str) -> dict[int, Any]:
    """By seed the counts of every example of a set, all of its folds together; seeds that lack a fold are left out."""
    import numpy as np
    from bootstrap import unpacked

    found = {(row["set"], row["seed"]): row for row in rows if (row["peer"], row["part"]) == (peer, "test")}
    seeds = sorted({seed for _, seed in found})
    parts = wholes()[name]
    return {
        seed: np.concatenate([unpacked(found[one, seed]["counts"]) for one in parts])
        for seed in seeds
        if all((one, seed) in found for one in parts)
    }


def whole_scores(rows: list[Row], name: str, peer: str) -> dict[int, float]:
    """By seed the score on the test part of a set, all of its folds together."""
    from bootstrap import scores_of

    runs = whole_runs(rows, name, peer)
    return {seed: round(float(scores_of(counts_NK.sum(0))), 2) for seed, counts_NK in runs.items()}


if __name__ == "__main__":
    sys.exit(main())
