"""Speed alone and beside busy neighbours: what a user gets by default, beside what one thread and other settings give.

    python benchmarks/neighbours.py                              # every work, three rounds in turns
    python benchmarks/neighbours.py --work train-1024 --busy 0   # one work, alone

Each work of training runs for ``--seconds`` after its first steps and is then stopped; its speed is tokens per second
of wall time, as ``metrics.jsonl`` has them. ``translate`` and ``evaluate`` answer 300 lines by a model that is trained
once here; their speed is lines per second of the whole command. A *neighbour* is a process that keeps a core busy. The
settings of a work take turns; a figure is the median over rounds. Results are appended to
``results/neighbours.jsonl``, or to ``--results FILE``. Nothing else may run on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import command
import machine
from corpus import DATA, data_folder, lines

HERE = Path(__file__).resolve().parent
RECIPE = HERE.parent / "recipes" / "multi30k" / "en-de.toml"
TREC = DATA / "cls-trec" / "train.txt.gz"
WARM_UP = 8
"""Steps that are not counted."""
LINES = 300
LONGEST = 240
"""Seconds after which a run that has not made its first steps is stopped; what it made until then counts."""
BUSY = "while True: pass"
PAIRS = ["--source", "train.en", "--target", "train.de", "--valid-source", "val.en", "--valid-target", "val.de"]
SETTINGS: dict[str, list[str]] = {
    "default": [],
    "one thread": ["--threads", "1", "--processes", "1"],
    "two threads": ["--threads", "2", "--processes", "1", "--set", "training.shards=1"],
    "two processes": ["--processes", "2", "--set", "training.shards=2"],
}
"""Settings of training; beside neighbours only the first two are of interest."""
ANSWERING: dict[str, list[str]] = {
    "default": [],
    "one thread": ["--threads", "1"],
    "two processes": ["--processes", "2"],
}


@dataclass(frozen=True)
class Work:
    """What is timed: a training by its options, or a command that answers lines."""

    train: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, list[str]]:
        """The options of each setting."""
        return SETTINGS if self.train else ANSWERING


WORKS = {
    "train-1024": Work(("--recipe", str(RECIPE), *PAIRS)),
    "train-4096": Work(("--recipe", str(RECIPE), *PAIRS, "--set", "training.tokens=4096")),
    "classifier": Work(
        ("--task", "classification", "--train", str(DATA / "cls-trec" / "train.txt.gz"), "--columns", "label:rest text")
    ),
    "tagger": Work(("--task", "tagging", "--train", str(DATA / "ner-wnut17" / "train.conll.gz"))),
    "language-model": Work(("--task", "language-model", "--train", str(DATA / "lm-tinyshakespeare" / "input.txt.gz"))),
    "translate": Work(answer=("translate", "captions", "--input", "few.en", "--output", "few.out")),
    "evaluate": Work(answer=("evaluate", "captions", "--source", "few.en", "--reference", "few.de")),
}


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", action="append", choices=WORKS, help="default: all")
    parser.add_argument("--busy", type=command.whole_number, action="append", help="default: 0, 1 and 2")
    parser.add_argument("--setting", action="append", help="default: all alone, the default alone beside neighbours")
    parser.add_argument("--rounds", type=command.positive_number, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, default=HERE.parent / ".bench" / "neighbours")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "neighbours.jsonl")
    return parser.parse_args()


def main() -> None:
    """The works in turn; a line of results."""
    asked = options()
    asked.folder.mkdir(parents=True, exist_ok=True)
    write_files(asked.folder)
    rows = []
    for name in asked.work or WORKS:
        work = WORKS[name]
        if work.answer:
            train_captions(asked.folder)
        cells = [
            (busy, setting)
            for busy in (asked.busy or (0, 1, 2))
            for setting in asked.setting or (work.settings if not busy else ["default"])
            if setting in work.settings
        ]
        found: dict[tuple[int, str], list[float]] = {cell: [] for cell in cells}
        for number in range(asked.rounds):
            for busy, setting in cells:
                with neighbours(busy):
                    speed = measure(asked.folder, name, work.settings[setting], asked.seconds)
                found[busy, setting].append(speed)
                print(f"{name}, {busy} busy, {setting}, round {number + 1}: {speed:,.1f}", flush=True)
        rows += [
            {
                "work": name,
                "busy": busy,
                "setting": setting,
                "speed": round(statistics.median(speeds), 1),
                "each": speeds,
            }
            for (busy, setting), speeds in found.items()
        ]
    session = {"benchmark": "neighbours", "date": machine.now(), "commit": machine.commit()}
    machine.append(asked.results, session | {"machine": machine.describe(), "rows": rows})


def write_files(folder: Path) -> None:
    """Multi30k's texts, and its first validation lines."""
    for language in ("en", "de"):
        for name, part, most in (("train", "train", 8000), ("val", "val", 100), ("few", "test_2016_flickr", LINES)):
            path = folder / f"{name}.{language}"
            if not path.exists():
                some = lines(data_folder() / f"{part}.{language}.gz")[:most]
                path.write_text("".join(f"{line}\n" for line in some), encoding="utf-8")


def train_captions(folder: Path) -> None:
    """The model that answers: three hundred steps of the recipe, once."""
    if not (folder / "captions" / "model.safetensors").exists():
        subprocess.run([*regard("train", "--recipe", str(RECIPE), *PAIRS, "--steps", "300"), "--output", "captions"],
                       cwd=folder, env=environment(), check=True)  # fmt: skip


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Within, so many other processes each keep a core busy."""
    running = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def measure(folder: Path, name: str, given: Sequence[str], seconds: float) -> float:
    """Tokens, or lines, per second of wall time."""
    work = WORKS[name]
    if work.answer:
        began = time.perf_counter()
        (folder / "few.out").unlink(missing_ok=True)
        subprocess.run(regard(*work.answer, *given), cwd=folder, env=environment(), check=True, capture_output=True)
        return LINES / (time.perf_counter() - began)
    output, prepared = folder / "model", folder / f"data-{name}"
    shutil.rmtree(output, ignore_errors=True)
    if prepared.exists():
        shutil.copytree(prepared, output / "training" / "data")
    # No validation falls into the time; the number of steps is given, so that nothing is planned.
    quiet = ["--steps", "100000", "--set", "training.validate_every=100000", "--set", "training.select=loss"]
    run = regard("train", *work.train, *given, *quiet, "--device", "cpu", "--output", "model")
    process = subprocess.Popen(run, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        return watch(process, output / "training" / "metrics.jsonl", seconds)
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
        if not (output / "training" / "metrics.jsonl").exists():
            sys.exit(said.decode())
        if not prepared.exists():
            shutil.copytree(output / "training" / "data", prepared)


def watch(process: subprocess.Popen[bytes], metrics: Path, seconds: float) -> float:
    """Tokens per second from the step after the warm-up on, once so many seconds were trained."""
    latest = time.monotonic() + LONGEST
    while process.poll() is None:
        steps = steps_in(metrics)
        spent = steps[-1]["seconds"] - steps[WARM_UP]["seconds"] if len(steps) > WARM_UP + 1 else 0.0
        if spent >= seconds or time.monotonic() > latest:
            break
        time.sleep(0.2)
    steps = steps_in(metrics)
    begin = min(WARM_UP, max(0, len(steps) - 2))
    if len(steps) < 2:
        return 0.0
    return float(sum(step["tokens"] for step in steps[begin + 1 :]) / (steps[-1]["seconds"] - steps[begin]["seconds"]))


def steps_in(metrics: Path) -> list[dict[str, float]]:
    """The steps that stand in a log, whole lines only."""
    if not metrics.exists():
        return []
    whole = metrics.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
    return [found for found in map(json.loads, whole) if found["kind"] == "step"]


def regard(*arguments: str) -> list[str]:
    """The command line of a command."""
    return [sys.executable, "-m", "regard", *arguments]


def environment() -> dict[str, str]:
    """With this checkout's package."""
    return {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}


if __name__ == "__main__":
    command.run(main)
