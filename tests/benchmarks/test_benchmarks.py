"""The benchmarks count what they say and report what was measured; nothing here measures a speed."""

import argparse
import os
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def test_ratios_are_to_the_best_peer_of_the_same_precision(load: Any) -> None:
    def row(key: str, precision: str, cpu: float, wall: float) -> dict[str, Any]:
        return {"key": key, "precision": precision, "per_cpu_second": cpu, "per_wall_second": wall, "runs": [{}]}

    rows = [row("regard", "fp32", 30, 20), row("eole", "fp32", 20, 4), row("torch", "fp32", 10, 5)]
    rows += [row("eole", "bf16", 99, 99), {"key": "regard", "precision": "bf16", "absent": "failed"}]
    ratios = load("train_vs_peers").ratios
    assert ratios(rows, "cpu") == {"fp32": {"best_peer": "eole", "ratio": 1.5}}
    assert ratios(rows, "wall") == {"fp32": {"best_peer": "torch", "ratio": 4.0}}
    rows.append(row("regard", "auto", 33, 33))
    assert ratios(rows, "cpu")["auto"] == {"best_peer": "eole", "ratio": 0.33}


RUNNER = """
import time
from worker import Meter, serve

def train(job):
    meter = Meter(job)
    while True:
        for _ in range(2):
            meter.count(job.tokens * job.seed, 2 * job.tokens * job.seed)
        sum(range(10_000))
        time.sleep(0.02)
        meter.step()

serve(lambda job: {"train": lambda: train(job)})
"""


def test_every_micro_batch_is_counted_and_no_step_of_the_warm_up(load: Any, runner: Any, tmp_path: Path) -> None:
    harness, conductor = load("harness"), load("train_vs_peers")
    asked = {"work": tmp_path, "cores": [min(os.sched_getaffinity(0))], "one_python": False, "timeout": 60.0}
    setting = {"tokens": 8, "steps": 3, "warm_up": 1, "threads": 1, "device": "cpu"}
    arguments = argparse.Namespace(**asked, instructions="", clock="cpu")
    chosen = harness.Peer("counting", "Counting", runner(RUNNER), None, ("numpy",), "fp32")

    def do(peer: Any, turn: int, item: dict[str, Any]) -> str:
        return str(conductor.run(peer, {**item, "seed": turn + 1}, arguments))

    harness.in_turns([chosen], 2, do, [setting])
    counting = conductor.row(chosen)
    assert [run["useful_tokens"] for run in counting["runs"]] == [48, 96]
    assert (counting["useful"], set(counting["versions"])) == (0.5, {"numpy"})
    assert counting["per_cpu_second"] > counting["per_wall_second"] > 0  # it slept


def test_the_page_is_made_of_the_results_and_narrow(load: Any) -> None:
    """Whatever changes a table, a sentence or a picture of what was measured is seen here."""
    report = load("report")
    written = report.written(FOLDER / "results")
    for name, text in written.items():
        assert text == (report.PAGE.parent / name).read_text(encoding="utf-8"), name
    page = written[report.PAGE.name]
    tables = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert max(map(len, tables)) <= 6
    assert max(len(cell.strip("| ")) for row in tables for cell in row) <= 40


def test_strings_are_reversed_and_sorted_and_those_tested_are_unseen(load: Any) -> None:
    made = load("text_to_text").strings({"train": 300, "valid": 20, "test": 50}, seed=3)
    sources = {part: {source for _, source, _ in rows} for part, rows in made.items()}
    assert {part: len(texts) for part, texts in sources.items()} == {"train": 300, "valid": 20, "test": 50}
    assert not sources["test"] & (sources["train"] | sources["valid"])
    for prefix, source, target in made["test"]:
        assert 1 <= len(source) <= 20
        assert list(target) == (sorted(source) if prefix == "sort" else [*reversed(source)])
    assert load("text_to_text").strings({"train": 300, "valid": 20, "test": 50}, seed=3) == made
