"""The demonstration with one idea of the paper taken out at a time, several seeds: what each idea is for.

    python benchmarks/without.py --seed 1 --seed 2 --seed 3

Each is `regard demo --without IDEA` below ``--work`` and resumes after a stop. Seeds draw corpus and weights. A row in
``results/without.jsonl``, or ``--results FILE``, of this processor is not repeated.
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
    """A line of results for each seed and idea."""
    from regard.runs.demo.without import ABSENT

    parser = command.parser(__doc__, "without", WORK / "without")
    parser.add_argument("--seed", type=int, action="append", required=True)
    parser.add_argument("--idea", choices=ABSENT, action="append", help="default: every one")
    parser.add_argument("--tokens", type=int, default=1024, help="of a step; the demonstration has 2,048")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    for seed in asked.seed:
        for idea in asked.idea or ABSENT:
            if (seed, idea) in known(asked.results):
                print(f"seed {seed} without {idea} stands in {asked.results} already")
                continue
            begun = machine.begun("without")
            machine.append(asked.results, begun, [measured(asked.work / f"seed-{seed}", seed, idea, asked)])


def known(results: Path) -> set[tuple[int, str]]:
    """Seeds and ideas that have a line of this processor."""
    here, sessions = machine.describe()["processor"], machine.sessions_in(results)
    mine = [one for one in sessions if one["machine"]["processor"] == here]
    return {(row["seed"], row["idea"]) for one in mine for row in one["rows"]}


def measured(folder: Path, seed: int, idea: Any, asked: Any) -> dict[str, Any]:
    """What the whole model and one without an idea do."""
    from regard.runs.demo.without import demonstrate_without
    from regard.training.reporters import LineReporter

    told, training = LineReporter(sys.stderr), {"tokens": asked.tokens, "shards": 1}
    found = demonstrate_without(idea, folder, seed, reporter=told, threads=asked.threads, training=training)
    spent = {name: entries(folder / place)["step"][-1]["seconds"] for name, place in places(idea).items()}
    minutes = {name: round(seconds / 60, 1) for name, seconds in spent.items()}
    return {"seed": seed, "idea": idea, "tokens": asked.tokens, "minutes": minutes, **found.to_dict()}


def places(idea: str) -> dict[str, str]:
    """The folder of each model inside the demonstration's."""
    return {"whole": "model", "without": f"without-{idea}"}


if __name__ == "__main__":
    command.run(main)
