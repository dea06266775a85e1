"""The benchmarks count what they say and report what was measured; nothing here measures a speed."""

import argparse
import json
import os
import re
import signal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def make_job(worker: ModuleType, folder: Path, **changed: Any) -> Any:
    return worker.Job(
        **{"corpus": str(folder), "folder": str(folder), "steps": 2, "warm_up": 2, "device": "cpu", **changed}
    )


def test_the_meter_leaves_the_warm_up_out_and_adds_micro_batches(load: Any, tmp_path: Path, monkeypatch: Any) -> None:
    worker = load("worker")
    ended: list[int] = []
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(worker.os, "_exit", ended.append)
    cpu, wall = iter([1.0, 2.0, 4.0, 7.0]), iter([10.0, 20.0, 40.0, 70.0])
    monkeypatch.setattr(worker.time, "process_time", lambda: next(cpu))
    monkeypatch.setattr(worker.time, "perf_counter", lambda: next(wall))
    meter = worker.Meter(make_job(worker, tmp_path, say=lambda **answer: said.append(answer)))
    for useful in ([999], [999], [30, 10], [60]):
        assert not ended
        for tokens in useful:
            meter.count(tokens, 2 * tokens)
        meter.step()
    assert ended == [0]
    (result,) = said
    assert (result["useful_tokens"], result["padded_tokens"]) == (100, 200)
    assert (result["cpu_seconds"], result["wall_seconds"]) == (5.0, 50.0)
    assert result["step_rates_cpu"] == [20.0, 20.0]


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


def test_every_trainer_has_a_runner_and_every_environment_exact_versions(load: Any) -> None:
    environments = load("environments").ENVIRONMENTS
    for trainer in load("train_vs_peers").trainers():
        assert (FOLDER / trainer.runner).is_file()
        assert trainer.environment in {None, *(environment.name for environment in environments)}
    for environment in environments:
        lines = environment.requirements.read_text().split()
        assert environment.torch in {"", *lines}
        assert all(re.fullmatch(r"[A-Za-z0-9_.\-]+==[\w.]+", line) for line in lines)


RUNNER = """
import sys
sys.path.insert(0, {peers!r})
from worker import Meter, serve

def train(job):
    if job.precision == "bf16":
        raise ValueError("no such thing")
    print("noise of a library")
    meter = Meter(job)
    while True:
        meter.count(job.tokens * job.seed, 2 * job.tokens * job.seed)
        sum(range(10_000))
        meter.step()

serve(lambda job: {{"train": lambda: train(job)}})
"""


def test_runs_are_counted_and_one_that_fails_is_a_line_of_the_table(load: Any, tmp_path: Path, capsys: Any) -> None:
    harness, conductor = load("harness"), load("train_vs_peers")
    (tmp_path / "runner.py").write_text(RUNNER.format(peers=str(FOLDER / "peers")))
    asked = {"work": tmp_path, "cores": [min(os.sched_getaffinity(0))], "one_python": False, "timeout": 60.0}
    setting = {"tokens": 8, "steps": 3, "warm_up": 1, "threads": 1, "device": "cpu"}
    arguments = argparse.Namespace(**asked, instructions="", clock="cpu")
    chosen = [
        harness.Peer("counting", "Counting", str(tmp_path / "runner.py"), None, ("numpy",), precision)
        for precision in ("fp32", "bf16")
    ]

    def do(peer: Any, turn: int, item: dict[str, Any]) -> str:
        return str(conductor.run(peer, {**item, "seed": turn + 1}, arguments))

    harness.in_turns(chosen, 2, do, [setting])
    counting, failed = map(conductor.row, chosen)
    assert (failed["precision"], failed["absent"]) == ("bf16", "failed: ValueError: no such thing")
    assert [run["useful_tokens"] for run in counting["runs"]] == [24, 48]
    assert (counting["useful"], set(counting["versions"])) == (0.5, {"numpy"})
    assert counting["per_cpu_second"] > 0
    assert capsys.readouterr().err.count("no such thing") == 1  # it is not tried again


def test_a_run_that_takes_too_long_is_ended(load: Any, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import sys\nfor line in sys.stdin: print('{\"versions\": {}}', flush=True)\n")
    harness = load("harness")
    asked = argparse.Namespace(work=tmp_path, cores=[min(os.sched_getaffinity(0))], one_python=False)
    worker = harness.Worker(
        harness.Peer("slow", "Slow", str(tmp_path / "slow.py"), None, ()), {"folder": str(tmp_path)}, asked
    )
    worker.process.send_signal(signal.SIGSTOP)
    with pytest.raises(harness.Absent, match="not done after 0 seconds"):
        worker.ask({"do": "train"}, 0.1)
    assert worker.process.returncode


def test_the_page_shows_the_newest_session_of_each_setting(load: Any, tmp_path: Path) -> None:
    page = load("report").page
    new = {"benchmark": "start_up", "date": "2026-01-02", "rows": [{"program": "new", "seconds": 0.25}]}
    old = {"benchmark": "start_up", "date": "2026-01-01", "rows": [{"program": "old", "seconds": 9.5}]}
    other = new | {"machine": {"processor": "P", "cores": 2}, "rows": [{"program": "new", "seconds": 0.5}]}
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(session) + "\n" for session in (new, old)))
    (tmp_path / "more.jsonl").write_text(json.dumps(other) + "\n")
    assert "| new | 0.25–0.5 |" in page(tmp_path)
    assert "old" not in page(tmp_path)
    (tmp_path / "more.jsonl").write_text('{"benchmark": "x"}\n')
    with pytest.raises(SystemExit, match=r"more\.jsonl:1"):
        page(tmp_path)


def test_a_run_is_scored_once_and_another_one_of_its_name_is_refused(load: Any, tmp_path: Path) -> None:
    done, results = load("quality").done, tmp_path / "runs.jsonl"
    run = {"run": "recipe-en-de-1-30", "threads": 1, "settings": ""}
    assert not done(results, run, test=True)
    results.write_text(json.dumps({"rows": [run | {"val beam 5 lc": 40.0}]}) + "\n")
    assert done(results, run, test=False)
    assert not done(results, run, test=True)
    with results.open("a") as file:
        file.write(json.dumps({"rows": [run | {"test_2016_flickr beam 5 lc": 39.0}]}) + "\n")
    assert done(results, run, test=True)
    with pytest.raises(SystemExit, match="--name"):
        done(results, run | {"settings": "model.dropout=0.3"}, test=False)


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
