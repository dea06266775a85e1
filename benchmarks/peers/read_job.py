"""One stage of a run of a reader: learning, or using what was learned on a part; no dependency.

The conductor writes a job; the peer's runner gives :func:`serve` two functions, ``learn`` and ``load``. Seconds are of
processor time, so that others on the machine do not count. Learning is the whole process, from its start to the saved
model.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

Example = dict[str, Any]
"""``text`` and ``label``; or ``words``, ``tags`` and ``spaces``."""
Predict = Callable[[list[Example]], list[Any]]
"""The label, or the tags, of each example; their own are not looked at."""


@dataclass(frozen=True)
class Job:
    """What is to be done. Written by the conductor as JSON.

    Args:
        task: ``classification`` or ``tagging``.
        spans: whether tags are those of entities (BIO).
        language: of the texts.
        splits: folder of the parts.
        ending: of the files of the parts that ``regard train`` reads.
        model: folder of the run.
        part: what the model is used on; empty: it is learned.
        seed: of the run.
        result: where figures are written.
        predictions: where predictions are written, one JSON value a line.
    """

    task: str
    spans: bool
    language: str
    splits: str
    ending: str
    model: str
    part: str
    seed: int
    result: str
    predictions: str

    @property
    def folder(self) -> Path:
        """The folder of the run, in which the model is kept."""
        return Path(self.model)

    def file(self, part: str, ending: str) -> Path:
        """A file of a part."""
        return Path(self.splits) / f"{part}{ending}"

    def examples(self, part: str) -> list[Example]:
        """The examples of a part."""
        with self.file(part, ".jsonl").open(encoding="utf-8", newline="\n") as file:
            return [json.loads(line) for line in file]


def serve(learn: Callable[[Job], dict[str, Any]], load: Callable[[Job], Predict], *distributions: str) -> None:
    """Does the job named on the command line.

    Args:
        learn: learns from the parts ``train`` and ``valid``, saves the model; returns what else is to be told.
        load: the saved model as a function.
        distributions: whose versions are told.
    """
    job = Job(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    if job.part:
        found = use(job, load)
    else:
        found = learn(job)
        found |= {"seconds": round(seconds(), 2)}
    found |= {"peak MB": peak(), "versions": {name: metadata.version(name) for name in distributions}}
    Path(job.result).write_text(json.dumps(found), encoding="utf-8")


def use(job: Job, load: Callable[[Job], Predict]) -> dict[str, Any]:
    """Writes the predictions of a part; returns how long they took once the model was loaded."""
    examples, predict = job.examples(job.part), load(job)
    before = seconds()
    found = predict(examples)
    took = seconds() - before
    Path(job.predictions).write_text("".join(f"{json.dumps(one)}\n" for one in found), encoding="utf-8")
    return {"seconds": round(took, 5)}


def seconds() -> float:
    """Processor time of this process since its start, and of those it waited for."""
    every = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in every)


def peak() -> int:
    """Most memory of this process, or of the largest it waited for, in MiB."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024
