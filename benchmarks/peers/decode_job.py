"""A tool that uses a model, in a process of its own: requests come as lines of JSON, answers go as lines of JSON.

The conductor (``decode_vs_peers.py``) starts ``python RUNNER JOB.json`` pinned to a core, and asks when it is the
tool's turn. Only the standard library is used here: this file runs in every tool's environment. Seconds are those of
the processor, since others are on the machine too, and of the clock.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

EXTRA = 50
"""Tokens that an output may have more than its source, or than the longest of its batch where a tool has one limit."""
Answers = list[list[Any]]
"""Of each text its tokens' ids, or the first numbers of its vector."""
Tool = dict[str, Callable[..., Answers]]
"""By name: ``translate(texts, beam, batch)``, ``encode(texts, batch)``, ``generate(texts, tokens)``."""


@dataclass(frozen=True)
class Job:
    """What a tool opens.

    Args:
        folders: the model, in the form of each tool: ``regard``, ``ctranslate2``, ``huggingface``, ``onnx``.
        kind: what it does: ``translate``, ``encode`` or ``generate``.
        precision: ``fp32`` or ``int8``.
        device: ``cpu`` or ``cuda``.
    """

    folders: dict[str, str]
    kind: str
    precision: str
    device: str = "cpu"

    def folder(self, form: str) -> Path:
        """Where the model is, in a form."""
        return Path(self.folders[form])


class Missing(Exception):
    """A tool has no such precision or model; the message says why."""


def serve(load: Callable[[Job], Tool], *distributions: str) -> None:
    """Opens the job's model and answers until the input ends.

    Args:
        load: opens the model.
        distributions: whose versions are told.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer

    def say(**answer: Any) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    began = time.perf_counter()
    try:
        tool = load(Job(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
    except Missing as reason:
        say(absent=str(reason))
        return
    versions = {name: metadata.version(name) for name in distributions}
    say(versions=versions, load=round(time.perf_counter() - began, 3))
    for line in sys.stdin:
        asked = json.loads(line)
        say(**timed(tool[asked.pop("do")], asked.pop("times"), asked), peak=peak())


def timed(do: Callable[..., Answers], times: int, asked: dict[str, Any]) -> dict[str, Any]:
    """Seconds of one of so many calls, and what the last one answered."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(times):
        answers = do(**asked)
    taken = time.process_time() - cpu, time.perf_counter() - wall
    return {"cpu": taken[0] / times, "wall": taken[1] / times, "answers": answers}


def peak() -> int:
    """Most memory of this process, in MiB.

    Of its own address space: what ``getrusage`` tells begins with the conductor's, from which the process was forked.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.split("\n") if line.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024


def longest_first(texts: list[list[Any]], batch: int, do: Callable[[list[list[Any]]], Answers]) -> Answers:
    """Batches of texts of similar length, for tools that do not sort; the answers in the texts' order."""
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    found: Answers = [[] for _ in texts]
    for begin in range(0, len(texts), batch):
        places = order[begin : begin + batch]
        for place, answer in zip(places, do([texts[place] for place in places]), strict=True):
            found[place] = answer
    return found
