"""What every runner shares: the job it is given, and a meter of useful tokens and time inside its process.

A runner is started by ``train_vs_peers.py`` as ``python peers/train_NAME.py JOB.json`` in its peer's environment. It
writes the peer's configuration, opens the meter, and calls the peer's own trainer; the meter ends the process when the
steps are done. Only the standard library and torch are used here: this file runs in every peer's environment.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Job:
    """One run of one trainer: what is trained, on what, for how many steps. Written by the conductor as JSON."""

    corpus: str
    """Folder of the corpus: texts, the same as piece names, ``pieces.txt``, ``tokenizer.json``."""
    scratch: str
    """Folder for the peer's own files; emptied before each run."""
    result: str
    """Where the meter writes what it measured."""
    precision: str
    """``fp32`` or ``bf16``."""
    group: bool
    """Sort sentences by length where that is the trainer's option (Hugging Face)."""
    tokens: int
    """Target tokens of a batch."""
    sentences: int
    """Sentences with that many target tokens on average, for trainers that count sentences."""
    pieces: int
    steps: int
    warm_up: int
    threads: int
    layers: int
    d_model: int
    d_ff: int
    heads: int
    dropout: float
    label_smoothing: float
    seed: int
    device: str = "cpu"
    """``cpu`` or ``cuda``."""

    @property
    def folder(self) -> Path:
        """The scratch folder."""
        return Path(self.scratch)

    def text(self, name: str) -> str:
        """Path of a file of the corpus."""
        return str(Path(self.corpus) / name)


def job() -> Job:
    """The job named on the command line."""
    return Job(**json.loads(Path(sys.argv[1]).read_text()))


class Meter:
    """Counts target tokens of each batch, and takes the time at the end of each optimiser step.

    The runner calls ``count`` with the real target tokens of a batch as the peer's own loss sees them (``</s>``
    included, padding and start symbols not), and ``step`` after each update. Useful tokens per second are those of all
    measured steps over their time; the warm-up steps are left out. After the last step the process ends.
    """

    def __init__(self, job: Job, *distributions: str) -> None:
        self.job = job
        self.distributions = ("torch", *distributions)
        self.useful = self.padded = 0
        self.ends: list[tuple[float, float]] = []
        self.tokens: list[tuple[int, int]] = []

    def count(self, useful: int, padded: int) -> None:
        """A batch has ``useful`` real target tokens among ``padded`` computed ones."""
        self.useful += useful
        self.padded += padded

    def step(self, *_: object) -> None:
        """An update has ended.

        A GPU works behind the program: it is waited for where the measured steps begin and where they end.
        """
        if self.job.device != "cpu" and len(self.ends) + 1 in (self.job.warm_up, self.job.warm_up + self.job.steps):
            import torch

            torch.cuda.synchronize()
        self.ends.append((time.process_time(), time.perf_counter()))
        self.tokens.append((self.useful, self.padded))
        self.useful = self.padded = 0
        if len(self.ends) == self.job.warm_up + self.job.steps:
            self.write()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def write(self) -> None:
        """Writes what the measured steps took."""
        first = self.job.warm_up
        measured = self.tokens[first:]
        cpu = [b[0] - a[0] for a, b in zip(self.ends[first - 1 :], self.ends[first:], strict=False)]
        wall = [b[1] - a[1] for a, b in zip(self.ends[first - 1 :], self.ends[first:], strict=False)]
        result = {
            "useful_tokens": sum(useful for useful, _ in measured),
            "padded_tokens": sum(padded for _, padded in measured),
            "cpu_seconds": sum(cpu),
            "wall_seconds": sum(wall),
            "step_rates_cpu": [round(useful / seconds, 1) for (useful, _), seconds in zip(measured, cpu, strict=True)],
            "peak_mb": self.peak(),
            "versions": {name: metadata.version(name) for name in self.distributions},
        }
        Path(self.job.result).write_text(json.dumps(result))

    def peak(self) -> int:
        """Most memory in MiB: of the process, or of what it took of the GPU."""
        if self.job.device == "cpu":
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        import torch

        return torch.cuda.max_memory_allocated() // 2**20


def open_meter(job: Job, *distributions: str) -> Meter:
    """A meter that hears every step of every torch optimiser in this process."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    torch.set_num_threads(job.threads)
    meter = Meter(job, *distributions)
    register_optimizer_step_post_hook(meter.step)
    return meter


def before(owner: Any, name: str, watch: Callable[..., None]) -> None:
    """Calls ``watch`` with the arguments of each call of ``owner.name``, then the function itself."""
    original = getattr(owner, name)

    def watched(*arguments: Any, **named: Any) -> Any:
        watch(*arguments, **named)
        return original(*arguments, **named)

    setattr(owner, name, watched)


def pairs(job: Job) -> list[tuple[list[int], list[int]]]:
    """The training sentences as ids, without ``</s>``, for trainers that are given ids rather than text."""
    sides = []
    for language in ("en", "de"):
        lines = Path(job.text(f"pieces.train.{language}")).read_text().removesuffix("\n").split("\n")
        sides.append([[int(name[1:]) for name in line.split()] for line in lines])
    return list(zip(*sides, strict=True))
