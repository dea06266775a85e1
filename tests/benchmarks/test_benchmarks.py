"""The benchmarks count what they say and report what was measured; nothing here measures a speed."""

import argparse
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree


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


def test_a_chart_has_each_line_its_points_and_their_bars(load: Any) -> None:
    made = load("chart")
    lines = [
        made.Series("plain", (made.Point(1, 2), made.Point(3, 4))),
        made.Series("a < b", (made.Point(1, 10.0, 0.5), made.Point(3, 30.0, 2.0))),
        made.Series("empty", ()),
    ]
    picture = ElementTree.fromstring(
        made.chart(lines, "Scores", made.Axis("minutes"), made.Axis("BLEU"), "A run each.")
    )
    told = [one.text for one in picture.iter() if one.tag.endswith("title")]
    assert told[1:] == ["plain: 2", "plain: 4", "a < b: 10 ± 0.5", "a < b: 30 ± 2"]
    words = [one.text for one in picture.iter() if one.tag.endswith("text")]
    assert {"plain", "a < b", "minutes", "BLEU", "A run each.", "0", "10", "20", "30"} <= set(words)
    assert "empty" not in words
    lines = [one for one in picture.iter() if one.tag.endswith("polyline")]
    assert len(lines) == 2 + 2  # and a bar of each point with a spread


def test_strings_are_reversed_and_sorted_and_those_tested_are_unseen(load: Any) -> None:
    made = load("text_to_text").strings({"train": 300, "valid": 20, "test": 50}, seed=3)
    sources = {part: {source for _, source, _ in rows} for part, rows in made.items()}
    assert {part: len(texts) for part, texts in sources.items()} == {"train": 300, "valid": 20, "test": 50}
    assert not sources["test"] & (sources["train"] | sources["valid"])
    for prefix, source, target in made["test"]:
        assert 1 <= len(source) <= 20
        assert list(target) == (sorted(source) if prefix == "sort" else [*reversed(source)])
    assert load("text_to_text").strings({"train": 300, "valid": 20, "test": 50}, seed=3) == made
