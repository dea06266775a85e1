"""How long preparing sentence pairs takes by one process and by several: the scan, the vocabulary, the ids.

200,000 pairs of the demonstration's grammar, whose words are few, and as many of 40,000 made-up words a language. Rows
take turns, each in a fresh process, those of another version (``--before DIR``) too; the time counts from the first
look at the files to the finished folder, without the start of Python and its imports. A process has one core: the
library that learns vocabularies would use all that there are. All files of a corpus must be
equal. A line is appended to ``results/preparing.jsonl``, or to ``--results FILE``. Nothing else may run on the machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import machine

HERE = Path(__file__).resolve().parent
PAIRS = 200_000
WORDS = 40_000
KINDS = ("grammar", "made-up words")
Found = dict[tuple[str, int], list[dict[str, Any]]]
"""Of each version and number of processes what every run took."""


def main() -> None:
    """Every row in turns; one line of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--kind", action="append", choices=KINDS, help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", type=Path, help="where the package of another version lies")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "preparing")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "preparing.jsonl")
    parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: asked.run])
        print(json.dumps(prepare(asked.work, *asked.kind, asked.run)))
        return
    session = {"benchmark": "preparing", "date": machine.now(), "commit": machine.commit()}
    session |= {
        "machine": machine.describe(),
        "rows": [row for kind in asked.kind or KINDS for row in rows(asked, kind)],
    }
    machine.append(asked.results, session)
    for row in session["rows"]:
        print(json.dumps(row))


def rows(asked: argparse.Namespace, kind: str) -> list[dict[str, Any]]:
    """The rows of a corpus."""
    write_pairs(asked.work, kind)
    versions = ({"before": asked.before} if asked.before else {}) | {"now": HERE.parent / "src"}
    found: Found = {(name, count): [] for name in versions for count in asked.processes}
    for _ in range(asked.rounds):
        for (name, count), runs in found.items():
            runs.append(prepared(asked.work, versions[name], kind, count))
            print(kind, name, count, runs[-1], flush=True)
    if len({run["sha256"] for runs in found.values() for run in runs}) > 1:
        sys.exit("the files differ")
    return results(kind, found)


def results(kind: str, found: Found) -> list[dict[str, Any]]:
    """The medians of each version and number of processes, and how much faster that is than its first number."""
    parts = ("scan", "vocabulary", "ids", "seconds")
    medians: list[dict[str, Any]] = []
    for (version, count), runs in found.items():
        row = {"corpus": kind, "version": version, "processes": count, "cores": count}
        row |= {part: round(median(run[part] for run in runs), 2) for part in parts}
        first = next(runs for (other, _), runs in found.items() if other == version)
        ratio = median(run["seconds"] for run in first) / median(run["seconds"] for run in runs)
        medians.append(row | {"times as fast": round(ratio, 2), "each": [round(run["seconds"], 2) for run in runs]})
    return medians


def prepared(work: Path, source: Path, kind: str, count: int) -> dict[str, Any]:
    """What a fresh process took."""
    command = [sys.executable, __file__, "--work", str(work), "--kind", kind, "--run", str(count)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def prepare(work: Path, kind: str, count: int) -> dict[str, Any]:
    """Scan and prepare the pairs; the seconds of each part, and a sum of all files."""
    from dataclasses import replace

    from regard.config import recipe_from
    from regard.runs.datasets import training_job
    from regard.system.memory import keep_pages
    from regard.tasks.protocols import InputFiles

    output = work / "data"
    shutil.rmtree(output, ignore_errors=True)
    keep_pages()
    recipe = recipe_from({"text": {"vocabulary": 8000}})
    files = InputFiles(source=[work / f"{kind}.en"], target=[work / f"{kind}.de"], processes=lambda: count)
    times: dict[str, float] = {}

    def note(stage: str, _: int) -> None:
        times.setdefault(stage, time.perf_counter())

    began = time.perf_counter()
    job = training_job("translation", files, lambda *_: recipe, lambda _: None, True)
    scanned = time.perf_counter()
    replace(job, processes=count).prepare(output, note)
    ended = time.perf_counter()
    found = {"scan": scanned - began, "vocabulary": times["encode"] - scanned, "ids": ended - times["encode"]}
    sums = [f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in sorted(output.iterdir())]
    return found | {"seconds": ended - began, "sha256": hashlib.sha256("\n".join(sums).encode()).hexdigest()}


def write_pairs(folder: Path, kind: str) -> None:
    """The files of a corpus, where they are not there."""
    paths = [folder / f"{kind}.{language}" for language in ("en", "de")]
    if all(path.exists() for path in paths):
        return
    folder.mkdir(parents=True, exist_ok=True)
    sides = list(zip(*(made_up_pairs() if kind == KINDS[1] else grammar_pairs()), strict=True))
    for path, lines in zip(paths, sides, strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def grammar_pairs() -> Iterator[tuple[str, ...]]:
    """Pairs of the demonstration."""
    from regard.runs.demo.grammar.corpus import generate

    return ((pair.source, pair.target) for pair in generate("train", PAIRS))


def made_up_pairs() -> Iterator[tuple[str, ...]]:
    """Pairs of made-up words, of which a few are frequent and most are rare."""
    draw = Random(1)
    languages = [made_up_words(draw, vowels) for vowels in ("aeiou", "aeiouäöü")]
    weights = list(accumulate(1 / (10 + rank) for rank in range(WORDS)))
    for _ in range(PAIRS):
        length = draw.randint(4, 20)
        chosen = (draw.choices(words, cum_weights=weights, k=length + draw.randint(0, 2)) for words in languages)
        yield tuple(" ".join(words).capitalize() + draw.choice(".?!") for words in chosen)


def made_up_words(draw: Random, vowels: str) -> list[str]:
    """Different words of two to five syllables."""
    found: dict[str, None] = {}
    while len(found) < WORDS:
        syllables = (draw.choice("bdfghklmnprstvwz") + draw.choice(vowels) for _ in range(draw.randint(2, 5)))
        found["".join(syllables) + draw.choice(["", "n", "r", "s"])] = None
    return list(found)


if __name__ == "__main__":
    main()
