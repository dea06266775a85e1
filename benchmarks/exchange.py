"""What the exchange of a step costs, and what that allows: bytes, seconds, and predictions for more cores and hosts.

    python benchmarks/exchange.py                  # measures, appends to results/exchange.jsonl, prints the tables
    python benchmarks/exchange.py --tables         # prints the tables of the last measurement

Two processes exchange gradients and weights of each model's size, in shared memory and as messages over the loopback
interface, medians of several rounds. Seconds of a step are those of one process on 1,024 target tokens of Multi30k with
a vocabulary of 8,000. Predictions are products and sums of these figures, with the assumptions that the page names.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import machine
import torch
from torch._C._distributed_c10d import FileStore

from regard.config import Recipe, recipe_from
from regard.data.batches.batch import Position
from regard.models.presets import PRESETS
from regard.runs.datasets import training_job
from regard.runs.plan import teacher
from regard.runs.workers.group import join, leave
from regard.system.memory import keep_pages
from regard.tasks.protocols import InputFiles
from regard.training.buffers import PrivateBuffers, SharedBuffers, buffers_for
from regard.training.optim import FlatOptimiser, schedule
from regard.training.run import Hooks
from regard.training.update import Updates
from regard.training.world import World

HERE = Path(__file__).resolve().parent
SIZES = ("tiny", "base", "big")
"""Presets whose steps are timed."""
TOKENS = 1024
ROUNDS, STEPS = 15, 3
"""Exchanges, and steps of each preset, that are timed; the first of each is not counted."""
CORES, HOSTS, PER_HOST = (2, 4, 8, 16), (2, 4, 8), 16
LINKS = {"gigabit": 0.117e9, "100 gigabit": 11.7e9}
"""Bytes per second that a link carries in each direction, without the headers of packets."""


def main() -> None:
    """Measure, or read what was measured, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "exchange")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "exchange.jsonl")
    asked = parser.parse_args()
    if not asked.tables:
        torch.set_num_threads(1)
        keep_pages()
        session = {"benchmark": "exchange", "date": machine.now(), "commit": machine.commit()}
        rows = [{"preset": name, **one} for name, one in measured(asked.work).items()]
        machine.append(asked.results, session | {"machine": machine.describe(), "rows": rows})
    print(tables(json.loads(asked.results.read_text(encoding="utf-8").splitlines()[-1])))


def measured(work: Path) -> dict[str, dict[str, float]]:
    """Of each preset its weights, the seconds of a step, and the seconds of an exchange in both ways."""
    found = {}
    for size in SIZES:
        weights, step = step_seconds(size, work)
        shared, messages = (exchange_seconds(weights, local) for local in (True, False))
        found[size] = {"weights": weights, "step": step, "shared": shared, "messages": messages}
        print(size, found[size], flush=True)
    return found


def step_seconds(size: str, work: Path) -> tuple[int, float]:
    """How many weights a preset has, and the seconds of one step of :data:`TOKENS` target tokens by one thread."""
    from processes import write_pairs

    work.mkdir(parents=True, exist_ok=True)
    write_pairs(work)

    def made_by(*given: object) -> Recipe:
        values = {"model": PRESETS[size].model, "text": {"vocabulary": 8000}}
        return recipe_from({**values, "training": {"steps": 100, "tokens": TOKENS, "shards": 1}})

    files = InputFiles(
        source=[work / "train.en"],
        target=[work / "train.de"],
        valid_source=work / "val.en",
        valid_target=work / "val.de",
    )
    job = training_job("translation", files, made_by, lambda text: None, True)
    prepared = job.prepare(work / f"data-{size}", lambda stage, number: None)
    teaching = teacher(job, prepared, torch.device("cpu"), "exact")(job.recipe, "exact")
    optimiser = FlatOptimiser(teaching.model, job.recipe.training)
    rate = schedule(job.recipe.training, job.recipe.model.d_model)
    updates = Updates(teaching, optimiser, job.recipe, rate, Hooks().reseed)
    teaching.model.train()
    seconds = []
    for step, (batch, _) in enumerate(islice(teaching.batches.iterate(Position()), STEPS + 1), 1):
        began = time.perf_counter()
        updates.make(step, [batch])
        seconds.append(time.perf_counter() - began)
    return len(optimiser.weights), statistics.median(seconds[1:])


def exchange_seconds(weights: int, local: bool) -> float:
    """The median seconds in which two processes exchange gradients and weights."""
    count = weights // 32 * 32

    def work(world: World) -> float:
        buffers = buffers_for(world, torch.zeros(count))
        assert isinstance(buffers, SharedBuffers if local else PrivateBuffers)
        buffers.gradients.fill_(1.0)
        seconds = []
        for _ in range(ROUNDS + 1):
            world.wait()
            began = time.perf_counter()
            buffers.reduce()
            buffers.publish()
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds[1:])

    return in_two(work, local)


def in_two(work: Callable[[World], float], local: bool) -> float:
    """What work gives in the first of two connected processes."""
    with tempfile.TemporaryDirectory() as folder:
        place, found = Path(folder) / "store", Path(folder) / "found"
        children = []
        for rank in range(2):
            if child := os.fork():
                children.append(child)
                continue
            torch.set_num_threads(1)
            os.environ["GLOO_SOCKET_IFNAME"] = "lo"
            world = join(World(2, rank, 2, local), FileStore(str(place), 2))
            seconds = work(world)
            if world.leads:
                found.write_text(str(seconds))
            leave()
            os._exit(0)
        for child in children:
            os.waitpid(child, 0)
        return float(found.read_text())


def tables(session: dict[str, Any]) -> str:
    """What was measured, and what follows from it."""
    rows: list[dict[str, Any]] = session["rows"]
    models = {row["preset"]: row for row in rows}
    lines = [
        f"Measured on {session['machine']['processor']}, commit {session['commit']}; two processes of one thread, full "
        "precision.",
        "",
        "| preset | weights | bytes each process sends in a step | seconds in shared memory | seconds as messages "
        "| seconds of a step of 1,024 tokens |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    for name, one in models.items():
        lines.append(
            f"| {name} | {one['weights'] / 1e6:.1f} M | {4 * one['weights'] / 1e6:.1f} MB | {one['shared']:.4f} "
            f"| {one['messages']:.4f} | {one['step']:.3f} |"
        )
    lines += ["", "| preset | " + " | ".join(f"{cores} cores" for cores in CORES) + " |"]
    lines += ["| --- |" + " --: |" * len(CORES)]
    for name, one in models.items():
        speeds = (f"{speed_up(one, cores):.1f}" for cores in CORES)
        lines.append(f"| {name} | {' | '.join(speeds)} |")
    head = [f"{hosts} hosts, {link}" for link in LINKS for hosts in HOSTS]
    lines += ["", "| preset | " + " | ".join(head) + " |", "| --- |" + " --: |" * len(head)]
    for name, one in models.items():
        speeds = (f"{across(one, hosts, rate):.2f}" for rate in LINKS.values() for hosts in HOSTS)
        lines.append(f"| {name} | {' | '.join(speeds)} |")
    return "\n".join(lines)


def speed_up(one: dict[str, float], cores: int) -> float:
    """Cores that train 1,024 tokens each, against one: the exchange reads each gradient once, by its share of cores.

    The memory's bandwidth is taken to be that of two cores, whatever their number.
    """
    exchange = one["shared"] * 2 * (cores - 1) / cores
    return cores * one["step"] / (one["step"] + exchange * cores / 2)


def across(one: dict[str, float], hosts: int, rate: float) -> float:
    """Hosts of :data:`PER_HOST` cores that train 1,024 tokens on each core, against one such host.

    Each process sends 4 N / P bytes of gradients to each other process, and as many of weights; those on other hosts
    are reached over the host's one link. Sending does not overlap computing.
    """
    processes = hosts * PER_HOST
    sent = PER_HOST * 8 * one["weights"] * (processes - PER_HOST) / processes
    alone = PER_HOST / speed_up(one, PER_HOST) * one["step"]
    return hosts * alone / (alone + sent / rate)


if __name__ == "__main__":
    main()
