"""Tools in processes of their own, what they are asked in turns, and what they answer; of ``decode_vs_peers.py``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import decode_models
from environments import Absent, python_for
from pinned import run_pinned, variables

HERE = Path(__file__).resolve().parent
OURS = "regard"
BASIS = "ctranslate2"
"""With what others are compared."""
NEARLY = 1.02
"""Of batches that take at most so many times as long as the fastest, the smallest is measured, with least memory."""


@dataclass
class Tool:
    """A tool at one precision; what it measured is kept in it.

    Args:
        name, title: as in results and tables.
        runner: its file.
        environment: of its packages; ``None``: ours.
        precision: ``fp32`` or ``int8``.
        batches: tried; in sentences, of ours in source tokens times beam.
        arguments: further ones of the runner.
        slow: it takes a part of the sentences.
    """

    name: str
    title: str
    runner: str
    environment: str | None
    precision: str
    batches: tuple[int, ...]
    arguments: tuple[str, ...] = ()
    slow: bool = False
    absent: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its name and precision."""
        return f"{self.name} {self.precision}"


def tools() -> list[Tool]:
    """Every tool at its precisions, ours first."""
    sentences = (16, 32, 64, 128)
    table = [
        (OURS, "Regard", "decode_ours.py", None, (1024, 2048, 4096, 8192), (), False),
        (BASIS, "CTranslate2", "peers/decode_ctranslate2.py", "ctranslate2", sentences, (), False),
        ("transformers", "transformers", "peers/decode_transformers.py", "transformers", sentences[:3], (), True),
        ("onnxruntime", "onnxruntime", "peers/decode_transformers.py", "onnxruntime", sentences[:3], ("onnx",), True),
    ]
    return [
        Tool(name, title, runner, environment, precision, batches, arguments, slow)
        for name, title, runner, environment, batches, arguments, slow in table
        for precision in (("fp32",) if name == "transformers" else ("fp32", "int8"))
    ]


@dataclass(frozen=True)
class Measure:
    """What all tools do in turns.

    Args:
        name: as in the tables.
        asked: arguments of the tool's function, without the batch.
        texts: that it is given.
        times: calls in a turn.
        batched: the batch is chosen, and given.
    """

    name: str
    asked: dict[str, Any]
    texts: list[str]
    times: int = 1
    batched: bool = False

    def request(self, kind: str, tool: Tool, batch: int, slow: int) -> dict[str, Any]:
        """What a tool is sent."""
        texts = self.texts[:slow] if tool.slow else self.texts
        given = {"batch": batch} if kind != "generate" else {}
        return {"do": kind, "times": self.times, "texts": texts, **self.asked, **given}


class Worker:
    """A tool's process, which has the model open.

    Raises:
        Absent: it cannot open the model; the message says why.
    """

    def __init__(self, tool: Tool, job: dict[str, Any], asked: argparse.Namespace) -> None:
        own = tool.environment and not asked.one_python
        python = python_for(tool.environment, asked.environments) if own else Path(sys.executable)
        path, log = asked.scratch / f"{tool.key}.json", asked.scratch / f"{tool.key}.log"
        folders = dict(job["folders"])
        if tool.name == OURS and asked.packed:
            folders["regard"] = str(decode_models.packed(Path(folders["regard"]), tool.precision))
        path.write_text(json.dumps({**job, "folders": folders, "precision": tool.precision}))
        if "onnx" in tool.arguments and not Path(job["folders"]["onnx"], tool.precision, "config.json").exists():
            command = [python, HERE / tool.runner, path, "onnx", "export"]
            run_pinned(command, asked.scratch, variables(1, False), asked.cores, log)
        self.log = log.open("w")
        self.process = subprocess.Popen(
            [str(python), str(HERE / tool.runner), str(path), *tool.arguments],
            cwd=asked.scratch,
            env=variables(1, tool.environment is None, asked.device),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, asked.cores),
        )
        tool.versions = self._answer()["versions"]

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and waits for its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """Ends the process."""
        with suppress(BrokenPipeError):
            self.process.communicate()
        self.process.wait()
        self.log.close()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found: dict[str, Any] = json.loads(line) if line else {}
        if not line or "absent" in found:
            self.close()
            said = Path(self.log.name).read_text(errors="replace").strip().split("\n")[-1]
            raise Absent(found.get("absent") or f"failed: {said}")
        return found


def measured(kind: str, folder: Path, measures: list[Measure], asked: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of all tools on one model."""
    job = {"folders": decode_models.forms(folder, asked.forms), "kind": kind, "device": asked.device}
    chosen = [tool for tool in tools() if tool.name in asked.tools and tool.precision in asked.precision]
    batches = {tool.key: chosen_batches(tool, job, measures, asked) for tool in chosen}
    workers = {tool.key: worker for tool in chosen if (worker := opened(tool, job, asked))}
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for turn in range(asked.rounds):
        for measure in measures:
            for tool in chosen[turn % len(chosen) :] + chosen[: turn % len(chosen)]:
                if tool.absent:
                    continue
                batch = batches[tool.key].get(measure.name, tool.batches[-1])
                try:
                    answer = workers[tool.key].ask(measure.request(kind, tool, batch, asked.slow_sentences))
                except Absent as reason:
                    tool.absent = str(reason)
                    continue
                found.setdefault((measure.name, tool.key), []).append(answer)
                say(f"  {turn + 1}/{asked.rounds} {measure.name}, {tool.key}: {answer[asked.clock]:.3f} s")
    for worker in workers.values():
        worker.close()
    return [row(kind, measure, tool, batches, found, asked.clock) for measure in measures for tool in chosen]


def opened(tool: Tool, job: dict[str, Any], asked: argparse.Namespace) -> Worker | None:
    """A tool's process; ``None`` where it cannot open the model, which is kept in the tool."""
    if tool.absent:
        return None
    try:
        return Worker(tool, job, asked)
    except Absent as reason:
        tool.absent = str(reason)
        say(f"  {tool.key}: absent: {reason}")
    return None


def chosen_batches(
    tool: Tool, job: dict[str, Any], measures: list[Measure], asked: argparse.Namespace
) -> dict[str, int]:
    """The fastest batch for each measure that has one, or a smaller one nearly as fast.

    They are found in a process that ends before anything is measured.
    """
    worker, best = opened(tool, job, asked), {}
    if worker is None:
        return {}
    for measure in [measure for measure in measures if measure.batched]:
        part = measure.texts[: asked.tried // 4 if tool.slow else asked.tried]
        taken: dict[int, float] = {}
        for batch in tool.batches:
            request = {**measure.request(job["kind"], tool, batch, len(part)), "texts": part}
            try:
                worker.ask({**request, "texts": part[:4]})
                taken[batch] = worker.ask(request)[asked.clock]
            except Absent as reason:
                tool.absent = str(reason)
                return {}
        best[measure.name] = min(batch for batch in taken if taken[batch] <= NEARLY * min(taken.values()))
        say(f"  {tool.key}, {measure.name}: " + ", ".join(f"{b}: {s:.2f} s" for b, s in taken.items()))
    worker.close()
    return best


def row(
    kind: str,
    measure: Measure,
    tool: Tool,
    batches: dict[str, dict[str, int]],
    found: dict[tuple[str, str], list[dict[str, Any]]],
    clock: str,
) -> dict[str, Any]:
    """A line of the results."""
    named = {"work": kind, "measure": measure.name, "tool": tool.name, "precision": tool.precision}
    runs = found.get((measure.name, tool.key), [])
    if not runs:
        return {**named, "absent": tool.absent}
    rate = tokens_a_second(measure, kind, runs, clock)
    told = {**named, "tokens/s": round(rate, 1), "ms": round(1000 * median(run[clock] for run in runs), 2)}
    basis = found.get((measure.name, f"{BASIS} {tool.precision}"))
    if basis:
        told["ratio"] = round(rate / tokens_a_second(measure, kind, basis, clock), 3)
    if equal := found.get((measure.name, f"{BASIS} fp32")):
        told |= likeness(kind, runs[-1]["answers"], equal[-1]["answers"])
    return told | {
        "batch": batches[tool.key].get(measure.name),
        "texts": len(runs[0]["answers"]),
        "peak MB": max(run["peak"] for run in runs),
        "runs": [{"cpu": round(run["cpu"], 5), "wall": round(run["wall"], 5)} for run in runs],
        "versions": tool.versions,
    }


def tokens_a_second(measure: Measure, kind: str, runs: list[dict[str, Any]], clock: str) -> float:
    """Tokens written, ``</s>`` counted, or texts read, over the median of the seconds by a clock."""
    answers = runs[-1]["answers"]
    end = {"translate": 1, "generate": 0}.get(kind)
    count = len(answers) if end is None else sum(len(answer) + end for answer in answers)
    return count / median(run[clock] for run in runs)


def likeness(kind: str, answers: list[list[Any]], others: list[list[Any]]) -> dict[str, float]:
    """The share of texts with the same tokens, or the largest difference of vectors over the largest entry."""
    pairs = list(zip(answers, others, strict=False))  # a slow tool has the first texts alone
    if kind != "encode":
        return {"same": round(sum(one == other for one, other in pairs) / len(pairs), 4)}
    largest = max(abs(x) for _, other in pairs for x in other)
    return {"apart": max(abs(x - y) for one, other in pairs for x, y in zip(one, other, strict=True)) / largest}


def say(line: str) -> None:
    """Progress, on stderr."""
    print(line, file=sys.stderr, flush=True)
