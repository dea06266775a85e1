"""Speed of training by processes: two on two cores, against the best that one process does, and beside other work.

    python benchmarks/processes.py                      # every row, three rounds in turns
    python benchmarks/processes.py --tokens 4096 --rounds 1 --row pair-0

The recipe is that of Multi30k (recipes/multi30k/en-de.toml), with as many target tokens a step as asked. A row is the
median over rounds of real target tokens per second of wall time, from the step after the warm-up to the last; the rows
take turns. A *copy* is a run of its own with one thread; *busy* is a process beside it that keeps a core busy. Results
are appended to ``results/processes.jsonl``, or to ``--results FILE``. Nothing else may run on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import machine

HERE = Path(__file__).resolve().parent
RECIPE = HERE.parent / "recipes" / "multi30k" / "en-de.toml"
PAIRS = 8000
WARM_UP = 10
STEPS = {1024: 90, 2048: 60, 4096: 35, 8192: 22}
"""Steps of a run by its tokens: about a quarter of a minute of one core."""
BUSY = "while True: pass"


@dataclass(frozen=True)
class Row:
    """What runs at the same time.

    Args:
        shards: of a step.
        processes: that divide them.
        threads: of each, where there are no shards.
        copies: independent runs; their speeds are added.
        busy: processes beside them, each bound to a core of its own.
    """

    shards: int = 1
    processes: int = 1
    threads: int = 1
    copies: int = 1
    busy: int = 0


def rows(tokens: int) -> dict[str, Row]:
    """The rows of a number of tokens by name."""
    shards = {1024: (2,), 2048: (2,), 4096: (2, 4), 8192: (2, 4)}[tokens]
    found = {"one": Row(), "threads": Row(threads=2), "copies": Row(copies=2)}
    for count in shards:
        found[f"one-of-{count}"] = Row(count)
        found[f"pair-of-{count}"] = Row(count, 2)
    last = shards[-1]
    found |= {f"pair-busy-{busy}": Row(last, 2, busy=busy) for busy in (1, 2)}
    return found | {"threads-busy-1": Row(threads=2, busy=1)}


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, action="append", choices=sorted(STEPS), help="default: 1024 and 4096")
    parser.add_argument("--row", action="append", help="default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--product", default="auto", help="path of products; default: measured once, then fixed")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "processes")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "processes.jsonl")
    return parser.parse_args()


def main() -> None:
    """The rows in turns; a line of results for each number of tokens."""
    asked = options()
    asked.work.mkdir(parents=True, exist_ok=True)
    write_pairs(asked.work)
    for tokens in asked.tokens or (1024, 4096):
        chosen = {name: row for name, row in rows(tokens).items() if not asked.row or name in asked.row}
        product = asked.product
        found: dict[str, list[float]] = {name: [] for name in chosen}
        for number in range(asked.rounds):
            for name, row in chosen.items():
                speed, product = measure(asked.work, tokens, row, product)
                found[name].append(speed)
                print(f"{tokens:,} tokens, round {number + 1}, {name}: {speed:,.0f} tokens/s ({product})", flush=True)
        session = {"benchmark": "processes", "date": machine.now(), "commit": machine.commit()}
        session |= {"machine": machine.describe(), "setting": {"tokens": tokens, "product": product}}
        machine.append(asked.results, session | {"rows": results(tokens, found)})


def results(tokens: int, found: Mapping[str, list[float]]) -> list[dict[str, object]]:
    """Of each row the median speed, and its ratio to one process, which is the first."""
    medians = {name: statistics.median(each) for name, each in found.items()}
    one = medians.get("one")
    return [
        {
            "row": name,
            "tokens a step": tokens,
            "tokens a second": round(median),
            "of one process": round(median / one, 2) if one else "",
            "each": [round(speed) for speed in found[name]],
        }
        for name, median in medians.items()
    ]


def write_pairs(folder: Path) -> None:
    """The first pairs of Multi30k, and its validation pairs, of which few are enough here."""
    from corpus import data_folder, lines

    for language in ("en", "de"):
        for part, most in (("train", PAIRS), ("val", 50)):
            path = folder / f"{part}.{language}"
            if not path.exists():
                found = lines(data_folder() / f"{part}.{language}.gz")[:most]
                path.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")


def measure(folder: Path, tokens: int, row: Row, product: str) -> tuple[float, str]:
    """Tokens per second of all copies together, and the path of products."""
    outputs = [folder / f"model-{number}" for number in range(row.copies)]
    with ExitStack() as stack:
        for core in range(row.busy):
            command = [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{core}}})\n{BUSY}"]
            stack.callback(subprocess.Popen(command).kill)
        runs = [start(folder, output, tokens, row, product) for output in outputs]
        for run in runs:
            _, said = run.communicate()
            if run.returncode:
                sys.exit(said.decode())
    found = [speed(output / "training" / "metrics.jsonl") for output in outputs]
    settings = (outputs[0] / "training" / "resolved.toml").read_text(encoding="utf-8")
    path = settings.split("\nproduct = ")[1].split('"')[1]
    keep_data(folder, outputs[0])
    return sum(found), path


def start(folder: Path, output: Path, tokens: int, row: Row, product: str) -> subprocess.Popen[bytes]:
    """A run of the recipe on data that was prepared before, if it was."""
    shutil.rmtree(output, ignore_errors=True)
    prepared = folder / "data"
    if prepared.exists():
        shutil.copytree(prepared, output / "training" / "data")
    steps = STEPS[tokens]
    command = [sys.executable, "-m", "regard", "train", "--recipe", str(RECIPE), "--output", str(output)]
    command += ["--source", "train.en", "--target", "train.de", "--valid-source", "val.en", "--valid-target", "val.de"]
    command += ["--steps", str(steps), "--device", "cpu", "--processes", str(row.processes)]
    settings = {"tokens": tokens, "shards": row.shards, "product": product, "validate_every": steps, "select": "loss"}
    for name, value in settings.items():
        command += ["--set", f"training.{name}={value}"]
    if row.shards == 1:
        command += ["--threads", str(row.threads)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "OMP_NUM_THREADS": str(row.threads)}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def speed(metrics: Path) -> float:
    """Real target tokens per second of wall time, warm-up left out."""
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    first, last = steps[WARM_UP], steps[-1]
    return float(sum(line["tokens"] for line in steps[WARM_UP + 1 :]) / (last["seconds"] - first["seconds"]))


def keep_data(folder: Path, output: Path) -> None:
    """Keep what was prepared for the next run."""
    if not (folder / "data").exists():
        shutil.copytree(output / "training" / "data", folder / "data")


if __name__ == "__main__":
    main()
