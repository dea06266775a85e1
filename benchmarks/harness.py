"""One harness for all peers: each in a process of its own on cores of its own, asked and timed in turns.

What a peer does on its own is its runner's (``peers/*.py``, ``ours.py``); all speak by ``peers/worker.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import command
from command import HERE, WORK
from environments import Absent, prepared, python_for

OURS = "regard"
Row = dict[str, Any]


@dataclass
class Peer:
    """A program that is measured; what it gave is kept in it.

    Args:
        name, title: as in results and tables.
        runner: its file.
        environment: of its packages; ``None``: ours.
        packages: whose versions are told.
        precision: ``auto``, ``fp32``, ``bf16`` or ``int8``.
        settings: further values of its job.
    """

    name: str
    title: str
    runner: str
    environment: str | None
    packages: tuple[str, ...]
    precision: str = "fp32"
    settings: Mapping[str, Any] = field(default_factory=dict)
    absent: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    runs: list[Row] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Its name and precision."""
        return f"{self.name} {self.precision}"


class Worker:
    """A peer's process, which has opened its job.

    Args:
        peer: whose process; its versions are set.
        job: what :class:`worker.Job` says, without what the peer itself has; ``folder`` is there.
        asked: ``work`` has the environments, ``cores`` are used; ``one_python``: the peer runs in this Python.
        variables: that the process sees beside its threads.

    Raises:
        Absent: the peer cannot be installed, or cannot open the job; the message says why.
    """

    def __init__(
        self, peer: Peer, job: Row, asked: argparse.Namespace, variables: Mapping[str, str] | None = None
    ) -> None:
        own = peer.environment and not asked.one_python
        python = python_for(peer.environment, asked.work) if own else sys.executable
        folder, threads = Path(job["folder"]), str(job.get("threads", 1))
        seen = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads)
        seen |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
        seen |= {"PYTHONPATH": str(HERE.parent / "src") if peer.name == OURS else "", **(variables or {})}
        if job.get("device", "cpu") == "cpu":
            seen |= {"CUDA_VISIBLE_DEVICES": ""}
        self.log = (folder / f"{peer.key}.log").open("w")
        self.process = subprocess.Popen(
            [str(python), str(HERE / peer.runner)],
            cwd=folder,
            env={**os.environ, **seen},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, asked.cores),
        )
        told = {"packages": peer.packages, "precision": peer.precision, **peer.settings}
        peer.versions = self.ask({**job, **told})["versions"]

    def ask(self, request: Row, timeout: float | None = None) -> Row:
        """Sends a request and waits for its answer.

        Raises:
            Absent: there is none, or not within ``timeout`` seconds.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            self.process.kill()
            self.close()
            raise Absent(f"not done after {timeout:.0f} seconds")
        line = self.process.stdout.readline()
        found: Row = json.loads(line) if line else {}
        if not line or "absent" in found:
            self.close()
            raise Absent(found.get("absent") or f"failed: {last_line(Path(self.log.name))}")
        return found

    def close(self) -> None:
        """Ends the process."""
        with suppress(BrokenPipeError):
            self.process.communicate()
        self.process.wait()
        self.log.close()


def last_line(log: Path) -> str:
    """What a process said last, which is why it failed if it did."""
    lines = [line.strip() for line in log.read_text(errors="replace").split("\n") if line.strip()]
    return lines[-1] if lines else "no output"


def in_turns(peers: Sequence[Peer], rounds: int, do: Callable[[Peer, int, Any], str], items: Iterable[Any]) -> None:
    """Does everything in every round, the peers taking turns, so that a machine that drifts hits all alike.

    Args:
        peers: of whom another begins in each round; one that fails is not tried again.
        rounds: how many.
        do: what a peer does in a round with an item; it returns what is said of it.
        items: what all do in turns.
    """
    for turn in range(rounds):
        first = turn % max(1, len(peers))
        for item in items:
            for peer in (*peers[first:], *peers[:first]):
                if not peer.absent:
                    try:
                        told = do(peer, turn, item)
                    except Absent as reason:
                        peer.absent = told = str(reason)
                    say(f"  {turn + 1}/{rounds} {peer.title} {peer.precision}: {told}")


def parser(
    doc: str | None, benchmark: str, peers: Iterable[str], flag: str, work: str = "--work"
) -> argparse.ArgumentParser:
    """A command line with what the benchmarks of peers have in common.

    Args:
        doc: what the benchmark does.
        benchmark: names the file of results.
        peers: those that can be asked for.
        flag: by which they are.
        work: the option of the folder of environments and scratch files.
    """
    names = list(dict.fromkeys(peers))
    made = command.parser(doc, benchmark)
    made.add_argument(work, dest="work", type=prepared, default=str(WORK), help="of environments and scratch files")
    help = f"of {', '.join(names)}"
    made.add_argument(flag, dest="peers", nargs="+", default=names, choices=names, metavar="NAME", help=help)
    made.add_argument("--one-python", action="store_true", help="peers run in this Python, which has their packages")
    return made


def say(line: str) -> None:
    """Progress, on stderr."""
    print(line, file=sys.stderr, flush=True)
