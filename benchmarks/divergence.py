"""What post-norm needs to be stable: the paper's system with and without warm-up, beside pre-norm.

    python benchmarks/divergence.py                # six ways, two seeds: two hours and a half of one core

Every run is ``recipes/multi30k/paper-en-de.toml`` for 1,000 steps at a rate that falls linearly from the highest of
Noam's schedule there, reached at once or in 100 steps. Told are the loss on the way and, of the first time that the log
has them, the gradient norms of the layers. A run that was stopped resumes when the same command is given again; lines
are appended to ``results/divergence.jsonl``, or to ``--results FILE``. There, on an AMD EPYC (family 25, model 1), a
run begins 10 to 14 minutes after the one before, and 21 to 28 where the machine had other work.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import command
import machine
from command import whole_number
from corpus import data_folder

from regard.system.errors import Diverged

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "divergence.jsonl"
STEPS = 1000
TOLD = (100, 300, 1000)
"""Steps at which the loss is told, the mean of the fifty before."""
PEAK = 128**-0.5 * 1100**-0.5
"""The highest rate of the recipe: d_model^-0.5 · warmup^-0.5."""
WAYS = {
    "post-norm, warm-up": ("post", 100, PEAK),
    "post-norm": ("post", 0, PEAK),
    "pre-norm, warm-up": ("pre", 100, PEAK),
    "pre-norm": ("pre", 0, PEAK),
    "post-norm, warm-up, a third of the rate": ("post", 100, PEAK / 3),
    "post-norm, a third of the rate": ("post", 0, PEAK / 3),
}
"""Where norms stand, steps of warm-up, and the rate."""


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", choices=list(WAYS), action="append", help="default: all")
    parser.add_argument("--seed", type=whole_number, action="append", help="default: 1 and 2")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "divergence")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    """Every run that has no result yet."""
    asked = options()
    for seed in asked.seed or (1, 2):
        for way in asked.way or WAYS:
            run = f"{way} {seed}"
            if not done(asked.results, run):
                measure(asked, run, way, seed)


def done(results: Path, run: str) -> bool:
    """Whether a run stands in the results."""
    return any(row["run"] == run for row in machine.rows_in(results))


def measure(asked: argparse.Namespace, run: str, way: str, seed: int) -> None:
    """One run, appended."""
    import regard
    from regard.training.reporters import LineReporter

    place, warmup, rate = WAYS[way]
    begun = {"benchmark": "divergence", "name": run, "date": machine.now()}
    begun |= {"commit": machine.commit(), "machine": machine.describe()}
    row: dict[str, Any] = {"run": run, "way": way, "seed": seed}
    data, output = data_folder(), asked.work / run.replace(" ", "-").replace(",", "")
    settings = (f"model.norm_place={place}", f"training.steps={STEPS}", f"training.warmup={warmup}")
    try:
        regard.train(
            source=data / "train.en.gz",
            target=data / "train.de.gz",
            valid_source=data / "val.en.gz",
            valid_target=data / "val.de.gz",
            output=output,
            recipe=HERE.parent / "recipes" / "multi30k" / "paper-en-de.toml",
            settings=(*settings, "training.schedule=linear", f"training.rate={rate:.6g}"),
            seed=seed,
            threads=1,
            reporter=LineReporter(sys.stderr),
        )
    except Diverged as error:
        row |= {"failed": str(error)}
    row |= course(output / "training" / "metrics.jsonl")
    machine.append(asked.results, {**begun, "rows": [row]})
    print(json.dumps(row), flush=True)


def course(log: Path) -> dict[str, Any]:
    """The losses on the way, the largest gradient norm, and the norms of layers when they were first told."""
    entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    steps = [entry for entry in entries if entry["kind"] == "step"]
    loss = [entry["loss"] if entry["loss"] is not None else float("nan") for entry in steps]
    found: dict[str, Any] = {
        f"loss at {at}": round(sum(part := loss[max(0, at - 50) : at]) / len(part), 3) for at in TOLD if len(loss) >= at
    }
    valid = [entry["loss"] for entry in entries if entry["kind"] == "valid"]
    first = next((entry for entry in steps if entry.get("norms")), None)
    norms = [entry["norm"] for entry in steps if entry["norm"] is not None]
    return found | {
        "validation loss": round(valid[-1], 3) if valid and valid[-1] is not None else None,
        "largest norm": round(max(norms), 2),
        "norms at": first and first["step"],
        "norms": first and {name: round(value, 4) for name, value in first["norms"].items()},
    }


if __name__ == "__main__":
    command.run(main)
