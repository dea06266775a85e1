"""Few labels: Regard begun from a sentence encoder that exists, or from nothing, beside a linear SVM.

    python benchmarks/few_labels.py                                # 100 and 300 labels, three sets and draws
    python benchmarks/few_labels.py --set trec --labels 300 --peer encoder --test    # on the test part as well: once

Of a set's training part so many texts are drawn by the seed (of CLINC150 as many of each intent, two at least) and keep
their labels, which serve for learning and for what Regard holds out. *Encoder* is all-MiniLM-L6-v2, imported, of the
package that ``peers/minilm.txt`` names; Regard learns by its defaults, one thread. What is done is not repeated; lines
are appended to ``results/few_labels.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import command
import machine
from environments import python_for
from harness import OURS, Peer, Worker, parser, say
from reading_splits import splits_of, tsv, write
from reading_vs_peers import PEERS, read_lines, scored
from tables import Row

NAMES = ("trec", "sst2", "clinc150")
BALANCED = {"clinc150": 300}
"""Sets of as many texts of each class, and the fewest labels: two of each intent, so that some can be held out."""
WAYS = {"svm": PEERS["svm"], "labels": PEERS[OURS], "encoder": PEERS[OURS]}
UNPACK = "import all_minilm_l6_v2 as one, sys; one.extract_model(sys.argv[1])"


def main() -> int:
    """Every run that has no result yet."""
    made = parser(__doc__, "few_labels", WAYS, "--peer")
    made.add_argument("--set", nargs="+", default=list(NAMES), choices=NAMES, metavar="NAME")
    made.add_argument("--labels", nargs="+", type=int, default=[100, 300])
    made.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    made.add_argument("--test", action="store_true", help="score the test part as well: for final runs only")
    asked = made.parse_args()
    asked.cores = [min(os.sched_getaffinity(0))]
    for row in rows_of(asked):
        same = (one for one in machine.rows_in(asked.results) if one["run"] == row["run"])
        if not any("test" in one or not asked.test for one in same):
            begun = machine.begun("few_labels", name=row["run"])
            machine.append(asked.results, begun, [measured(row, asked)])
    return 0


def rows_of(asked: argparse.Namespace) -> Iterable[Row]:
    """What was asked for."""
    for count in asked.labels:
        for name in asked.set:
            for seed in () if count < BALANCED.get(name, 0) else asked.seeds:
                for way in asked.peers:
                    run = f"{name} {count} {way} {seed}"
                    yield {"run": run, "set": name, "asked": count, "way": way, "seed": seed}


def measured(row: Row, asked: argparse.Namespace) -> Row:
    """A run: it learns from the drawn texts in a process of its own, and reads the whole parts."""
    whole, folder = splits_of(row["set"], asked.work), asked.work / "few" / row["run"].replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    some = draw(read_lines(whole / "train.jsonl"), row["asked"], row["seed"], row["set"] in BALANCED)
    write(folder / "train.tsv", tsv(some))
    write(folder / "train.jsonl", (f"{json.dumps(one)}\n" for one in some))
    job = {"task": "classification", "spans": False, "language": "en", "seed": row["seed"], "ending": ".tsv"}
    job |= {"splits": str(folder), "folder": str(folder)}
    with closing(Worker(peer_of(row["way"], asked.work), {**job, "part": ""}, asked)) as worker:
        row |= {"labels": len(some), "seconds": round(worker.ask({"do": "learn"})["whole"], 1)}
    for part in ("valid", "test") if asked.test else ("valid",):
        examples = read_lines(whole / f"{part}.jsonl")
        with closing(Worker(peer_of(row["way"], asked.work), {**job, "part": part}, asked)) as worker:
            row[part] = scored(examples, worker.ask({"do": "use", "examples": examples})["answers"], False)["score"]
    shutil.rmtree(folder)
    say(f"{row}")
    return row


def peer_of(way: str, work: Path) -> Peer:
    """Who learns; the encoder is imported once."""
    peer: Peer = replace(WAYS[way])
    if way == "encoder":
        if not (begun := work / "minilm" / "model").exists():
            subprocess.run([python_for("minilm", work), "-c", UNPACK, work / "minilm"], check=True)
            from regard.runs.conversion import import_model

            import_model(work / "minilm" / "all-MiniLM-L6-v2", begun)
        peer.settings = {"begun": str(begun)}
    return peer


def draw(examples: list[Any], count: int, seed: int, balanced: bool) -> list[Any]:
    """So many examples, in order."""
    places = list(range(len(examples)))
    Random(seed).shuffle(places)
    if balanced:
        by_label: dict[str, list[int]] = {}
        for place in places:
            by_label.setdefault(examples[place]["label"], []).append(place)
        places = [place for some in by_label.values() for place in some[: count // len(by_label)]]
        count = len(places)
    return [examples[place] for place in sorted(places[:count])]


if __name__ == "__main__":
    command.run(main)
