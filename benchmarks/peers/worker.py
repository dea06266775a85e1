"""What every peer's runner shares: its job, requests and answers as lines of JSON, and a meter for those that train.

The conductor (``harness.py``) starts ``python RUNNER`` in the peer's environment, pinned to its cores, and writes the
job as the first line of its input; each further line is a request, which one line answers. Only the standard library
is used here, and torch where a trainer has it: this file runs in every peer's environment.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

EXTRA = 50
"""Tokens that an output may have more than its source, or than the longest of its batch where a tool has one limit."""
Answers = list[list[Any]]
"""Of each text its tokens' ids, or the numbers of its vector."""
Example = dict[str, Any]
"""``text`` and ``label``; or ``words``, ``tags`` and ``spaces``."""
Predict = Callable[[list[Example]], list[Any]]
"""The label, or the tags, of each example; their own are not looked at."""
Opened = Mapping[str, Callable[..., Any]]
"""What can be asked, by name."""


class Job(SimpleNamespace):
    """What is to be done.

    Args:
        folder: the peer's own.
        packages: whose versions are told.
        say: answers.
        threads, device, seed, precision: of training; ``cpu`` or ``cuda``; ``fp32``, ``bf16`` or ``int8``.
        corpus, pieces: of training: folder of the texts, the same as piece names, ``pieces.txt``, ``tokenizer.json``.
        tokens, sentences: of training: target tokens of a batch, or sentences with so many on average.
        steps, warm_up: of training: those that are measured, and those before them.
        layers, d_model, d_ff, heads, dropout, label_smoothing: of training.
        folders, kind: of using: the model by form (``regard``, ``ctranslate2``, ``huggingface``, ``onnx``), and what
            it does: ``translate``, ``encode`` or ``generate``.
        task, spans, language: of reading: ``classification`` or ``tagging``, whether tags are those of entities (BIO).
        splits, ending, part: of reading: folder of the parts, ending of the files that ``regard train`` reads, and the
            part that is used; none: it is learned.
    """

    @property
    def own(self) -> Path:
        """The peer's own folder."""
        return Path(self.folder)

    def text(self, name: str) -> str:
        """Path of a file of the corpus."""
        return f"{self.corpus}/{name}"

    def names(self) -> list[str]:
        """Of all pieces."""
        return Path(self.text("pieces.txt")).read_text().split()

    def pairs(self) -> list[tuple[list[int], list[int]]]:
        """The training sentences as ids, without ``</s>``, for trainers that are given ids rather than text."""
        sides = []
        for language in ("en", "de"):
            lines = Path(self.text(f"pieces.train.{language}")).read_text().removesuffix("\n").split("\n")
            sides.append([[int(name[1:]) for name in line.split()] for line in lines])
        return list(zip(*sides, strict=True))

    def file(self, part: str, ending: str = ".jsonl") -> Path:
        """A file of a part."""
        return Path(self.splits) / f"{part}{ending}"

    def examples(self, part: str) -> list[Example]:
        """The examples of a part."""
        with self.file(part).open(encoding="utf-8", newline="\n") as file:
            return [json.loads(line) for line in file]


class Missing(Exception):
    """A peer has no such precision or model; the message says why."""


def serve(opened: Callable[[Job], Opened]) -> None:
    """Opens what the job is about, as functions by name; tells the versions of the packages; answers until the end."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer

    def say(**answer: Any) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    job = Job(**json.loads(sys.stdin.readline()), say=say)
    try:
        functions = opened(job)
    except Missing as reason:
        say(absent=str(reason))
        return
    say(versions={name: metadata.version(name) for name in job.packages})
    for line in sys.stdin:
        asked = json.loads(line)
        say(**timed(functions[asked.pop("do")], asked.pop("times", 1), asked), whole=whole(), peak=peak())


def timed(do: Callable[..., Any], times: int, asked: dict[str, Any]) -> dict[str, Any]:
    """Seconds of one of so many calls, of the processor and of the clock, and what the last one answered."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(times):
        answers = do(**asked)
    taken = time.process_time() - cpu, time.perf_counter() - wall
    return {"cpu": taken[0] / times, "wall": taken[1] / times, "answers": answers}


def whole() -> float:
    """Processor time of this process since its start, and of those it waited for."""
    every = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in every)


def peak() -> int:
    """Most memory of this process, or of the largest it waited for, in MiB.

    Of its own address space: what ``getrusage`` tells begins with the conductor's, from which the process was forked.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.split("\n") if line.startswith("VmHWM:")]
    return max(int(line.split()[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) // 1024


def reader(learn: Callable[[Job], dict[str, Any]], load: Callable[[Job], Predict]) -> Callable[[Job], Opened]:
    """Opens a reader, in two processes: one learns, one uses what that saved.

    Args:
        learn: learns from the parts ``train`` and ``valid``, saves the model; returns what else is to be told.
        load: the saved model as a function.
    """
    return lambda job: {"use": load(job)} if job.part else {"learn": lambda: learn(job)}


def longest_first(texts: list[list[Any]], batch: int, do: Callable[[list[list[Any]]], Answers]) -> Answers:
    """Batches of texts of similar length, for tools that do not sort; the answers in the texts' order."""
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    found: Answers = [[] for _ in texts]
    for begin in range(0, len(texts), batch):
        places = order[begin : begin + batch]
        for place, answer in zip(places, do([texts[place] for place in places]), strict=True):
            found[place] = answer
    return found


def trainer(train: Callable[[Job, Meter], None]) -> Callable[[Job], Opened]:
    """Opens a trainer: it trains until the meter, which hears every step of every torch optimiser, ends the process."""

    def heard(job: Job) -> None:
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        torch.set_num_threads(job.threads)
        meter = Meter(job)
        register_optimizer_step_post_hook(meter.step)
        train(job, meter)

    return lambda job: {"train": lambda: heard(job)}


class Meter:
    """Counts target tokens of each batch, and takes the time at the end of each optimiser step.

    The runner calls ``count`` with the real target tokens of a batch as the peer's own loss sees them (``</s>``
    included, padding and start symbols not), and ``step`` after each update. Useful tokens per second are those of all
    measured steps over their time; the warm-up steps are left out. After the last step the meter answers, and the
    process ends.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
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
            self.job.say(**self.measured())
            os._exit(0)

    def measured(self) -> dict[str, Any]:
        """What the measured steps took."""
        first, on_gpu = self.job.warm_up, self.job.device != "cpu"
        useful, padded = zip(*self.tokens[first:], strict=True)
        ends = self.ends[first - 1 :]
        cpu, wall = ([after[clock] - before[clock] for before, after in pairwise(ends)] for clock in (0, 1))
        return {
            "useful_tokens": sum(useful),
            "padded_tokens": sum(padded),
            "cpu_seconds": sum(cpu),
            "wall_seconds": sum(wall),
            "step_rates_cpu": [round(tokens / seconds, 1) for tokens, seconds in zip(useful, cpu, strict=True)],
            "peak_mb": sys.modules["torch"].cuda.max_memory_allocated() // 2**20 if on_gpu else peak(),
        }


def watch(owner: Any, name: str, seen: Callable[..., None]) -> None:
    """Calls ``seen`` with the arguments of each call of ``owner.name``, then the function itself."""
    original = getattr(owner, name)

    def watched(*arguments: Any, **named: Any) -> Any:
        seen(*arguments, **named)
        return original(*arguments, **named)

    setattr(owner, name, watched)
