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
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import command
import machine
from environments import Absent
from harness import OURS, Peer, Worker, parser, say
from reading_splits import FOLDS, SETS, Example, Set, ending, splits_of
from tables import Row

BOTH = ("classification", "tagging")
LANGUAGES = {"legal-de": "de"}
"""Of sets that are not English."""


@dataclass
class Reader(Peer):
    """A tool that reads labels.

    Args:
        tags: whether it reads tags, too.
        drawn: whether it begins from random numbers, so that seeds differ.
    """

    tags: bool = False
    drawn: bool = True


READERS = (
    Reader(OURS, "Regard", "ours.py", None, ("torch", "numpy"), tags=True),
    Reader("svm", "SVM", "peers/read_svm.py", "svm", ("scikit-learn", "scipy", "numpy"), drawn=False),
    Reader("fasttext", "fastText", "peers/read_fasttext.py", "fasttext", ("fasttext", "numpy")),
    Reader("spacy", "spaCy", "peers/read_spacy.py", "spacy", ("spacy", "thinc", "numpy"), tags=True),
)
PEERS = {reader.name: reader for reader in READERS}
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


def options() -> argparse.Namespace:
    """The command line."""
    made = parser(__doc__, "reading_vs_peers", PEERS, "--peer")
    made.add_argument("--set", nargs="+", default=list(READ), choices=[*READ, *FOLDS], metavar="NAME")
    made.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    made.add_argument("--test", action="store_true", help="score the test part as well: for final runs only")
    made.add_argument("--again", action="store_true", help="repeat finished runs: the newest counts")
    made.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)), help="the core that runs are pinned to")
    asked = made.parse_args()
    asked.cores = [asked.core]
    asked.set = [name for one in asked.set for name in FOLDS.get(one, (one,))]
    return asked


def main() -> int:
    """The runs, one after the other; exit code 1 if one was not done."""
    asked = options()
    failed = [run.name for run in runs_of(asked) if not carry_out(run, asked)]
    compare(asked.results)
    if failed:
        say(f"not done: {', '.join(failed)}")
    return 1 if failed else 0


def runs_of(asked: argparse.Namespace) -> list[Run]:
    """What was asked for; the first seed of everything comes first, and is the only one where nothing is drawn."""
    return [
        Run(name, peer, seed)
        for place, seed in enumerate(asked.seeds)
        for peer in asked.peers
        for name in asked.set
        if (READ[name].task == "classification" or PEERS[peer].tags) and (PEERS[peer].drawn or not place)
    ]


def carry_out(run: Run, asked: argparse.Namespace) -> bool:
    """Learns and scores what is not done yet; false where that failed."""
    parts = ("valid", "test") if asked.test else ("valid",)
    found = {} if asked.again else {row["part"]: row for row in newest(asked.results) if row["run"] == run.name}
    folder = asked.work / "readers" / run.name.replace(" ", "-")
    if all(part in found for part in ("train", *parts)):
        return True
    if "train" not in found or not folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
        parts = ("train", *parts)
    for part in parts:
        if part in found and part != "train":
            continue
        begun = machine.begun("reading_vs_peers", name=f"{run.name} {part}")
        try:
            row = stage(run, part, folder, asked)
        except Absent as reason:
            say(f"{run.name} {part}: {reason}")
            shutil.rmtree(folder, ignore_errors=True)
            return False
        machine.append(asked.results, begun, [row])
    return True


def stage(run: Run, part: str, folder: Path, asked: argparse.Namespace) -> Row:
    """Learns (``train``), or uses what was learned on a part; the row that says what came of it.

    Raises:
        Absent: the peer cannot be installed, or it failed.
    """
    peer, splits, learns = replace(PEERS[run.peer]), splits_of(run.set, asked.work), part == "train"
    folder.mkdir(parents=True, exist_ok=True)
    spans = run.data.score == "f1"
    job = {"task": run.data.task, "spans": spans, "language": LANGUAGES.get(run.set, "en"), "seed": run.seed}
    job |= {"splits": str(splits), "ending": ending(run.data), "folder": str(folder), "part": "" if learns else part}
    examples = read_lines(splits / f"{part}.jsonl")
    with closing(Worker(peer, job, asked)) as worker:
        found = worker.ask({"do": "learn"} if learns else {"do": "use", "examples": examples})
    row: Row = {"run": run.name, "set": run.set, "peer": run.peer, "seed": run.seed, "part": part}
    row |= found["answers"] if learns else scored(examples, found["answers"], spans)
    seconds = round(found["whole"], 2) if learns else round(found["cpu"], 5)
    return row | {"seconds": seconds, "peak MB": found["peak"], "versions": peer.versions}


def read_lines(path: Path) -> list[Any]:
    """The values of JSON lines."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def scored(examples: list[Example], said: list[Any], spans: bool) -> dict[str, Any]:
    """The score of predictions, and the counts of each example."""
    from bootstrap import counts_of, packed

    from regard.tasks.metrics.labels import tag_scores

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
    return latest(machine.rows_in(results))


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
            machine.append(results, machine.begun("reading_vs_peers", name=row["run"]), [row])


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
    command.run(main)
