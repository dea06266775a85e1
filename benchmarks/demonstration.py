"""The demonstration with several seeds: how good it is, which head of the encoder finds the noun, and what it costs.

    python benchmarks/demonstration.py --seed 1 --seed 2

Each seed is a `regard demo` of its own below ``--work``, which resumes after a stop; it draws corpus and weights. The
head is chosen on validation, all figures are of the test part, which is scored once. A seed with a line in
``results/demonstration.jsonl``, or ``--results FILE``, of this processor is not repeated.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import command
import machine
from command import WORK
from quality import entries


def main() -> None:
    """A line of results for each seed."""
    parser = command.parser(__doc__, "demonstration", WORK / "demonstration")
    parser.add_argument("--seed", type=int, action="append", required=True)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    for seed in asked.seed:
        if seed in known(asked.results):
            print(f"seed {seed} stands in {asked.results} already")
            continue
        begun = machine.begun("demonstration")
        machine.append(asked.results, begun, [measured(asked.work / f"seed-{seed}", seed, asked.threads)])


def known(results: Path) -> set[int]:
    """The seeds that have a line of this processor."""
    here, sessions = machine.describe()["processor"], machine.sessions_in(results)
    return {row["seed"] for one in sessions if one["machine"]["processor"] == here for row in one["rows"]}


def measured(folder: Path, seed: int, threads: int) -> dict[str, Any]:
    """What one seed makes."""
    from regard.runs.demo.translation import demonstrate
    from regard.training.reporters import LineReporter

    found = demonstrate(folder, seed, threads=threads, reporter=LineReporter(sys.stderr))
    study, shares = found.study, found.encoder.test
    assert study is not None
    looks = f"{found.encoder.layer}·{found.encoder.head}"
    without = next(one.right for one in study.heads if named(one.head) == f"encoder {looks}")
    return {
        "seed": seed,
        "minutes": round(entries(folder / "model")["step"][-1]["seconds"] / 60, 1),
        "exact": round(100 * found.model.exact, 1),
        "bleu": round(found.model.bleu, 1),
        "simple": found.simple.correct,
        "of simple": found.simple.total,
        "simple unseen": found.simple.correct - found.simple_seen.correct,
        "of simple unseen": found.simple.total - found.simple_seen.total,
        "pronouns": found.model.pronoun.correct,
        "of": found.model.pronoun.total,
        "head": looks,
        "antecedent": round(100 * shares.antecedent, 1),
        "rival": round(100 * shares.rival, 1),
        "chance": round(100 * shares.chance, 1),
        "attention in": "sentences whose nouns differ in gender",
        "sentences": study.sentences,
        "right": study.right,
        "commonest": study.commonest,
        "right without it": without,
        "smallest": [named(head) for head in study.smallest.heads] if study.smallest else None,
        "right without smallest": study.smallest.right if study.smallest else None,
        "spare": study.spare,
        "heads": {named(one.head): one.right for one in study.heads},
    }


def named(head: Any) -> str:
    """A head as the walk names it."""
    return f"{head.kind} {head.layer}·{head.head}"


if __name__ == "__main__":
    command.run(main)
