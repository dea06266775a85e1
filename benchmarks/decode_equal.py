"""Whether a translator's outputs by the engine are those of torch and of CTranslate2; of ``decode_vs_peers.py``.

Where two outputs differ, the torch model tells in float64 how probable both are. Of greedy search it is the first token
that differs; of a beam the whole output. Below :data:`NEAR` rounding decides. Of a beam there is another reason: for
CTranslate2 a finished hypothesis takes no place of the beam, for us it does, so each may find what the other misses.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import decode_models
import numpy as np
from decode_ours import EXTRA
from decode_tools import BASIS, OURS, Tool, Worker, say, tools

NEAR = 1e-5
"""Nats."""
BATCH = 32


def rows(folder: Path, lines: list[str], beam: int, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each other tool and width of the beam."""
    job = {"folders": decode_models.forms(folder), "kind": "translate"}
    by_name = {tool.key: tool for tool in tools()}
    engine, other = by_name[f"{OURS} fp32"], by_name[f"{BASIS} fp32"]
    judge = Judge(folder)
    found = []
    for width in (1, beam):
        ours = outputs(engine, job, lines, width, asked)
        others = {"torch": by_torch(engine, job, lines, width, asked), BASIS: outputs(other, job, lines, width, asked)}
        for name, theirs in others.items():
            row = {"work": "equal", "tool": name, "beam": width, "sentences": len(lines)}
            found.append(row | judge.compared(lines, ours, theirs, width))
            say(f"  {found[-1]}")
    return found


def outputs(tool: Tool, job: dict[str, Any], lines: list[str], beam: int, asked: argparse.Namespace) -> list[list[int]]:
    """What a tool writes for the lines."""
    worker = Worker(tool, job, asked)
    batch = tool.batches[-1] if tool.name == OURS else BATCH
    answer = worker.ask({"do": "translate", "times": 1, "texts": lines, "beam": beam, "batch": batch})
    worker.close()
    return answer["answers"]


def by_torch(
    tool: Tool, job: dict[str, Any], lines: list[str], beam: int, asked: argparse.Namespace
) -> list[list[int]]:
    """What Regard writes without its kernels."""
    os.environ["REGARD_KERNELS"] = "off"
    try:
        return outputs(tool, job, lines, beam, asked)
    finally:
        del os.environ["REGARD_KERNELS"]


class Judge:
    """The torch model in float64, token by token."""

    def __init__(self, folder: Path) -> None:
        import regard
        from regard.models.decoding import stepper

        self.task: Any = regard.load(folder, "cpu")
        self.step = stepper(self.task.model.double())
        self.target = self.task.target_tokenizer

    def log_probabilities(self, text: str, output: list[int]) -> list[float]:
        """Of each token of an output and of its end, given what is before it."""
        state, found, previous = self.step.start([self.ids(text)]), [], self.target.start
        for token in [*output, self.target.end]:
            state, answer = self.step.step(state, np.array([previous]))
            found.append(float(answer.of(np.array([token]))[0]))
            previous = token
        return found

    def ids(self, text: str) -> Any:
        """The encoder's input."""
        source = self.task.source_tokenizer
        return np.append(source.ids_batch([text])[0], source.end).astype(np.int64)

    def compared(
        self, lines: list[str], ours: list[list[int]], theirs: list[list[int]], beam: int
    ) -> dict[str, int | float]:
        """How many outputs are the same, differ by rounding, or are the more probable ones of either side."""
        counts = {"same": 0, "near": 0, "ours more probable": 0, "theirs more probable": 0}
        furthest = 0.0
        for line, *pair in zip(lines, ours, theirs, strict=True):
            # Ours has a limit for each sentence, others have one for a batch: what is behind it is not looked at.
            one, other = (output[: len(self.ids(line)) + EXTRA] for output in pair)
            if one == other:
                counts["same"] += 1
                continue
            difference = self.difference(line, one, other, beam)
            furthest = max(furthest, abs(difference))
            near, more = abs(difference) < NEAR, "ours" if difference > 0 else "theirs"
            counts["near" if near else f"{more} more probable"] += 1
        return counts | {"furthest nats": round(furthest, 7)}

    def difference(self, line: str, one: list[int], other: list[int], beam: int) -> float:
        """Nats by which the first output is more probable; of greedy search at the first token that differs."""
        pair = [self.log_probabilities(line, output) for output in (one, other)]
        if beam > 1:
            return sum(pair[0]) - sum(pair[1])
        ended = [[*output, self.target.end] for output in (one, other)]
        first = next(place for place, (a, b) in enumerate(zip(*ended, strict=False)) if a != b)
        return pair[0][first] - pair[1][first]
