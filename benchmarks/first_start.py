"""What ``auto`` chooses at a run's first start, how long that takes, and how fast each path of products then trains.

    python benchmarks/first_start.py            # alone
    python benchmarks/first_start.py --busy     # beside a program that keeps the same core busy

For the demonstration's model and a small one (3 + 3 layers of 256), on one pinned core: ten first starts each, of which
the choice and the seconds of measuring are kept; then runs of ``auto`` and of every path in turns, whose speed counts
from the step after the warm-up to the last, by processor time. A line is appended to ``results/first_start.jsonl``, or
to ``--results FILE``. Nothing else should run on the core.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import machine
from neighbours import neighbours

HERE = Path(__file__).resolve().parent
SMALL = {
    "text": {"vocabulary": 8000},
    "model": {"encoder_layers": 3, "decoder_layers": 3, "d_model": 256, "d_ff": 1024, "heads": 4, "norm_place": "pre"},
    "training": {"tokens": 4096},
}
WARM_UP, STEPS = 5, {"demonstration": 45, "small": 14}
MEASURES, MEASURED = "measuring how this processor", "products: "
"""How the events begin between which paths are timed."""


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", choices=STEPS, help="only this one")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--busy", action="store_true", help="beside a program that keeps the core busy")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "first_start")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "first_start.jsonl")
    parser.add_argument("--run", nargs=3, metavar=("MODEL", "PRODUCT", "STEPS"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Both models in turn; one line of results."""
    asked = options()
    asked.work.mkdir(parents=True, exist_ok=True)
    if asked.run:
        print(json.dumps(train(asked.work, asked.run[0], asked.run[1], int(asked.run[2]))))
        return
    os.sched_setaffinity(0, {asked.core})
    session = {"benchmark": "first_start", "date": machine.now(), "commit": machine.commit()}
    with neighbours(int(asked.busy)):  # it inherits the core
        rows = [measure(asked, name) for name in ([asked.model] if asked.model else STEPS)]
    session |= {"setting": {"busy": asked.busy}} if asked.busy else {}
    machine.append(asked.results, session | {"machine": machine.describe(), "rows": rows})
    for row in rows:
        print(json.dumps(row))


def measure(asked: argparse.Namespace, name: str) -> dict[str, Any]:
    """A row: the choices of all first starts, and the speed of every path."""
    started(asked.work, name, "auto", 1)  # prepares the data
    starts = [started(asked.work, name, "auto", 1) for _ in range(asked.starts)]
    products = Counter(start["product"] for start in starts)
    paths = [part.split()[0] for part in starts[0]["measured"].split(": ")[1].split(";")[0].split(" (")[0].split(", ")]
    speeds: dict[str, list[float]] = {path: [] for path in ("auto", *paths)}
    for _ in range(asked.rounds):
        for path, found in speeds.items():
            found.append(started(asked.work, name, path, STEPS[name])["speed"])
    medians = {path: round(statistics.median(found)) for path, found in speeds.items()}
    return {
        "model": f"{name}, core shared" if asked.busy else name,
        "starts": asked.starts,
        "chosen": dict(products),
        "validation": dict(Counter(start["exact"] for start in starts)),
        "slowest": max(start["seconds"] for start in starts),
        "speeds": medians,
        "of the best": round(medians["auto"] / max(medians[path] for path in paths), 2),
        "each": {path: [round(speed) for speed in found] for path, found in speeds.items()},
    }


def started(work: Path, name: str, product: str, steps: int) -> dict[str, Any]:
    """What a first start in a process of its own found."""
    command = [sys.executable, __file__, "--work", str(work), "--run", name, product, str(steps)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    print(name, found, file=sys.stderr, flush=True)
    return found


def train(work: Path, name: str, product: str, steps: int) -> dict[str, Any]:
    """One first start, and the steps after it."""
    import regard
    from regard.runs.demo.translation import RECIPE
    from regard.system.errors import Stopped
    from regard.training.checkpoints import resolved
    from regard.training.log import Reporter, StepMetrics

    class Clock(Reporter):
        """The times of the two events, and of every step."""

        def __init__(self) -> None:
            self.events: dict[str, float] = {}
            self.steps: list[tuple[float, int]] = []

        def on_event(self, text: str) -> None:
            self.events |= {begin: time.perf_counter() for begin in (MEASURES, MEASURED) if text.startswith(begin)}

        def on_step(self, metrics: StepMetrics) -> None:
            self.steps.append((time.process_time(), metrics.tokens))

    output, prepared = work / "model", work / f"data-{name}"
    shutil.rmtree(output, ignore_errors=True)
    if prepared.exists():
        shutil.copytree(prepared, output / "training" / "data")
    clock = Clock()
    settings = ["training.shards=1", "training.select=loss", "training.validate_every=100000"]
    settings += [f"training.product={product}"] * (product != "auto")
    with suppress(Stopped):
        regard.train(
            **files(work, name),
            output=output,
            recipe=RECIPE if name == "demonstration" else SMALL,
            settings=settings,
            steps=100_000,
            threads=1,
            device="cpu",
            reporter=clock,
            should_stop=lambda: len(clock.steps) >= steps,
        )
    if not prepared.exists():
        shutil.copytree(output / "training" / "data", prepared)
    fields = resolved.read_fields(output / "training")
    seconds = clock.events.get(MEASURED, 0.0) - clock.events.get(MEASURES, 0.0)
    found = {field: fields.get(f"chosen.{field}") for field in ("product", "exact", "measured")}
    return found | {"seconds": round(seconds, 2), "speed": rate(clock.steps)}


def rate(steps: Sequence[tuple[float, int]]) -> float:
    """Target tokens per second of processor time, warm-up left out."""
    if len(steps) <= WARM_UP + 1:
        return 0.0
    counted = steps[WARM_UP:]
    return sum(tokens for _, tokens in counted[1:]) / (counted[-1][0] - counted[0][0])


def files(work: Path, name: str) -> dict[str, Any]:
    """The corpus of a model: the grammar's sentences, or Multi30k's."""
    if name == "demonstration":
        from regard.runs.demo.grammar import corpus
        from regard.runs.demo.translation import write

        return write(corpus(20_000, 100, 1, 1), work / name)
    from processes import write_pairs

    write_pairs(work)
    sides = {"source": "train.en", "target": "train.de", "valid_source": "val.en", "valid_target": "val.de"}
    return {side: work / file for side, file in sides.items()}


if __name__ == "__main__":
    main()
