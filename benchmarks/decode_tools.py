"""Tools that use a model, what they are asked in turns, and what they answer; of ``decode_vs_peers.py``."""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import decode_models
from harness import OURS, Peer, Row, Worker, in_turns

BASIS = "ctranslate2"
"""With what others are compared."""
NEARLY = 1.02
"""Of batches that take at most so many times as long as the fastest, the smallest is measured, with least memory."""


@dataclass
class Tool(Peer):
    """A tool at one precision.

    Args:
        batches: tried; in sentences, of ours in source tokens times beam.
        slow: it takes a part of the sentences.
    """

    batches: tuple[int, ...] = ()
    slow: bool = False


def tools() -> list[Tool]:
    """Every tool at its precisions, ours first."""
    theirs, sentences = "peers/decode_transformers.py", (16, 32, 64)
    onnx = ("onnxruntime", "optimum", "transformers", "torch")
    found = []
    for precision in ("fp32", "int8"):
        found += [
            Tool(OURS, "Regard", "ours.py", None, (OURS, "numpy"), precision, batches=(1024, 2048, 4096, 8192)),
            Tool(BASIS, "CTranslate2", "peers/decode_ctranslate2.py", BASIS, (BASIS,), precision),
            Tool("transformers", "transformers", theirs, "transformers", onnx[2:], precision, {"onnx": False}),
            Tool("onnxruntime", "onnxruntime", theirs, "onnxruntime", onnx, precision, {"onnx": True}),
        ]
    for tool in found[1:]:
        tool.slow = tool.runner == theirs
        tool.batches = tool.batches or (sentences if tool.slow else (*sentences, 128))
    return [tool for tool in found if tool.key != "transformers int8"]


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

    def request(self, kind: str, tool: Tool, batch: int, slow: int) -> Row:
        """What a tool is sent."""
        texts = self.texts[:slow] if tool.slow else self.texts
        given = {"batch": batch} if kind != "generate" else {}
        return {"do": kind, "times": self.times, "texts": texts, **self.asked, **given}


def opened(tool: Tool, job: Row, asked: argparse.Namespace) -> Worker:
    """A tool's process; of ours the weights are packed before.

    Raises:
        Absent: it cannot open the model.
    """
    folders = dict(job["folders"])
    if tool.name == OURS and asked.packed:
        folders["regard"] = str(decode_models.packed(Path(folders["regard"]), tool.precision))
    return Worker(tool, {**job, "folders": folders, "folder": str(asked.scratch), "device": asked.device}, asked)


def measured(kind: str, folder: Path, measures: list[Measure], asked: argparse.Namespace) -> list[Row]:
    """The rows of all tools on one model."""
    job = {"folders": decode_models.forms(folder, asked.forms), "kind": kind}
    chosen = [tool for tool in tools() if tool.name in asked.peers and tool.precision in asked.precision]
    batches: dict[str, dict[str, int]] = {}
    workers: dict[str, Worker] = {}
    found: dict[tuple[str, str], list[Row]] = {}

    def begin(tool: Tool, turn: int, item: None) -> str:
        batches[tool.key] = chosen_batches(tool, job, measures, asked)
        workers[tool.key] = opened(tool, job, asked)
        return f"batches {batches[tool.key]}"

    def do(tool: Tool, turn: int, measure: Measure) -> str:
        batch = batches[tool.key].get(measure.name, tool.batches[-1])
        answer = workers[tool.key].ask(measure.request(kind, tool, batch, asked.slow_sentences))
        found.setdefault((measure.name, tool.key), []).append(answer)
        return f"{measure.name}: {answer[asked.clock]:.3f} s"

    in_turns(chosen, 1, begin, [None])
    in_turns(chosen, asked.rounds, do, measures)
    for worker in workers.values():
        worker.close()
    return [
        row(kind, measure, tool, batches.get(tool.key, {}), found, asked.clock)
        for measure in measures
        for tool in chosen
    ]


def chosen_batches(tool: Tool, job: Row, measures: list[Measure], asked: argparse.Namespace) -> dict[str, int]:
    """The fastest batch for each measure that has one, or a smaller one nearly as fast.

    They are found in a process that ends before anything is measured.
    """
    best = {}
    with closing(opened(tool, job, asked)) as worker:
        for measure in [measure for measure in measures if measure.batched]:
            part = measure.texts[: asked.tried // 4 if tool.slow else asked.tried]
            taken: dict[int, float] = {}
            for batch in tool.batches:
                request = {**measure.request(job["kind"], tool, batch, len(part)), "texts": part}
                worker.ask({**request, "texts": part[:4]})
                taken[batch] = worker.ask(request)[asked.clock]
            best[measure.name] = min(batch for batch in taken if taken[batch] <= NEARLY * min(taken.values()))
    return best


def row(
    kind: str,
    measure: Measure,
    tool: Tool,
    batches: dict[str, int],
    found: dict[tuple[str, str], list[Row]],
    clock: str,
) -> Row:
    """A line of the results."""
    named = {"work": kind, "measure": measure.name, "tool": tool.name, "precision": tool.precision}
    runs = found.get((measure.name, tool.key), [])
    if not runs:
        return {**named, "absent": tool.absent}
    rate = tokens_a_second(kind, runs, clock)
    told = {**named, "tokens/s": round(rate, 1), "ms": round(1000 * median(run[clock] for run in runs), 2)}
    if basis := found.get((measure.name, f"{BASIS} {tool.precision}")):
        told["ratio"] = round(rate / tokens_a_second(kind, basis, clock), 3)
    if equal := found.get((measure.name, f"{BASIS} fp32")):
        told |= likeness(kind, runs[-1]["answers"], equal[-1]["answers"])
    return told | {
        "batch": batches.get(measure.name),
        "texts": len(runs[0]["answers"]),
        "peak MB": max(run["peak"] for run in runs),
        "runs": [{"cpu": round(run["cpu"], 5), "wall": round(run["wall"], 5)} for run in runs],
        "versions": tool.versions,
    }


def tokens_a_second(kind: str, runs: list[Row], clock: str) -> float:
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
