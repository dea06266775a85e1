"""Training speed of Regard and its peers on the same work, in one session: useful target tokens per second, and ratios.

Each run is a process of its own, pinned to its cores; the trainers take turns (A B C, A B C, …), so that a
machine that drifts hits all alike. A figure is the median over the runs. ``README.md`` says what is compared.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import machine
from environments import WORK, Absent, prepared, python_for
from pinned import last_line, run_pinned, variables

HERE = Path(__file__).resolve().parent
SIZES = {
    "small": {"layers": 3, "d_model": 256, "d_ff": 1024, "heads": 4},
    "base": {"layers": 6, "d_model": 512, "d_ff": 2048, "heads": 8},
}
OURS = "regard"
INSTRUCTIONS = {
    "": {},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}
"""Variables that keep torch and its libraries to a set of instructions."""


@dataclass
class Trainer:
    """A trainer at a precision, and what its runs gave."""

    key: str
    title: str
    runner: str
    environment: str | None
    precision: str
    group: bool = False
    runs: list[dict[str, Any]] = field(default_factory=list)
    absent: str = ""

    def rate(self, clock: str) -> float:
        """Median over the runs of useful target tokens per second of ``cpu`` or ``wall`` time."""
        rates: list[float] = [run["useful_tokens"] / run[f"{clock}_seconds"] for run in self.runs]
        return median(rates)


def trainers() -> list[Trainer]:
    """Every trainer, at every precision it has on a CPU."""
    both, single = ("fp32", "bf16"), ("fp32",)  # Regard's "auto" chooses by timing
    marian = "Transformers Marian, Trainer"
    table: list[tuple[str, str, str, str | None, tuple[str, ...], bool]] = [
        (OURS, "Regard", "ours.py", None, ("auto", *both), False),
        ("opennmt", "OpenNMT-py", "peers/train_opennmt.py", "opennmt", single, False),
        ("eole", "Eole", "peers/train_eole.py", "eole", both, False),
        ("torch", "torch.nn.Transformer loop", "peers/train_torch.py", None, both, False),
        ("marian", marian, "peers/train_marian.py", "transformers", both, False),
        ("marian-grouped", f"{marian}, by length", "peers/train_marian.py", "transformers", both, True),
        ("joeynmt", "JoeyNMT", "peers/train_joeynmt.py", "joeynmt", single, False),
        ("sockeye", "Sockeye", "peers/train_sockeye.py", "sockeye", single, False),
        ("fairseq", "fairseq", "peers/train_fairseq.py", "fairseq", single, False),
    ]
    return [
        Trainer(key, title, runner, environment, precision, group)
        for key, title, runner, environment, precisions, group in table
        for precision in precisions
    ]


def surroundings(trainer: Trainer, setting: dict[str, Any]) -> dict[str, str]:
    """The variables a run sees: its threads and instructions, our source only for ours."""
    seen = variables(setting["threads"], trainer.key == OURS, setting.get("device", "cpu"))
    return seen | INSTRUCTIONS[setting.get("instructions", "")]


def run(trainer: Trainer, setting: dict[str, Any], arguments: argparse.Namespace) -> None:
    """One run of one trainer in a process of its own; what it measured, or why it failed, is kept in ``trainer``."""
    cores, work, timeout = arguments.cores, arguments.work, arguments.timeout
    scratch = work / "scratch" / f"{trainer.key}-{trainer.precision}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    result, log, job = scratch / "result.json", scratch / "log.txt", scratch / "job.json"
    files = {"scratch": str(scratch), "result": str(result)}
    values = {name: value for name, value in setting.items() if name != "instructions"}
    job.write_text(json.dumps({**values, **files, "precision": trainer.precision, "group": trainer.group}))
    try:
        own = trainer.environment and not arguments.one_python
        python = python_for(trainer.environment, work) if own else Path(sys.executable)
    except Absent as reason:
        trainer.absent = str(reason)
        return
    environment = surroundings(trainer, setting)
    try:
        run_pinned([python, HERE / trainer.runner, job], scratch, environment, cores, log, timeout)
    except subprocess.TimeoutExpired:
        trainer.absent = f"not done after {timeout:.0f} seconds"
        return
    if result.exists():
        trainer.runs.append(json.loads(result.read_text()))
    else:
        trainer.absent = f"failed: {last_line(log)}"


def take_turns(chosen: list[Trainer], setting: dict[str, Any], arguments: argparse.Namespace) -> None:
    """All runs, the trainers taking turns; one that failed is not tried again."""
    for turn in range(arguments.runs):
        for trainer in chosen:
            if trainer.absent:
                continue
            run(trainer, {**setting, "seed": turn + 1}, arguments)
            last = trainer.runs[-1] if trainer.runs and not trainer.absent else None
            rate = last["useful_tokens"] / last[f"{arguments.clock}_seconds"] if last else 0.0
            said = f"{rate:.0f} per {arguments.clock} second" if last else trainer.absent
            name = f"{trainer.title} {trainer.precision}"
            print(f"  {turn + 1}/{arguments.runs} {name}: {said}", file=sys.stderr, flush=True)


def row(trainer: Trainer) -> dict[str, Any]:
    """A trainer's line of the results."""
    named = {"key": trainer.key, "title": trainer.title, "precision": trainer.precision}
    if not trainer.runs:
        return {**named, "absent": trainer.absent}
    useful, padded = (sum(run[name] for run in trainer.runs) for name in ("useful_tokens", "padded_tokens"))
    return {
        **named,
        "per_cpu_second": round(trainer.rate("cpu"), 1),
        "per_wall_second": round(trainer.rate("wall"), 1),
        "useful": round(useful / padded, 3),
        "peak_mb": max(run["peak_mb"] for run in trainer.runs),
        "versions": trainer.runs[0]["versions"],
        "runs": [{k: v for k, v in run.items() if k != "versions"} for run in trainer.runs],
        **({"absent": trainer.absent} if trainer.absent else {}),
    }


def ratios(rows: list[dict[str, Any]], clock: str) -> dict[str, dict[str, Any]]:
    """For each precision: our rate over the best peer's; for ``auto`` over that of the best at any precision."""
    found: dict[str, dict[str, Any]] = {}
    measured = sorted((r for r in rows if "runs" in r), key=lambda r: r[f"per_{clock}_second"])
    for precision in ("auto", "fp32", "bf16"):
        among = [r for r in measured if precision in (r["precision"], "auto")]
        rates = {r["key"]: r[f"per_{clock}_second"] for r in among if r["key"] != OURS}
        own = [r[f"per_{clock}_second"] for r in measured if r["key"] == OURS and r["precision"] == precision]
        ours = own[0] if own else None
        if ours and rates:
            best = max(rates, key=lambda key: rates[key])
            found[precision] = {"best_peer": best, "ratio": round(ours / rates[best], 2)}
    return found


def table(session: dict[str, Any]) -> str:
    """The session as a table for people."""
    lines = [f"{'trainer':38} {'':5} {'tok/s CPU':>10} {'tok/s wall':>10} {'useful':>7} {'peak MB':>8}"]
    measured = [r for r in session["rows"] if "runs" in r]
    for r in sorted(measured, key=lambda r: (r["precision"] != "fp32", -r["per_cpu_second"])):
        rates = f"{r['per_cpu_second']:10.0f} {r['per_wall_second']:10.0f} {r['useful']:7.2f} {r['peak_mb']:8}"
        lines.append(f"{r['title']:38} {r['precision']:5} {rates}")
    lines += [f"{r['title']:38} {r['precision']:5} absent: {r['absent']}" for r in session["rows"] if "absent" in r]
    for precision, found in session["ratios"].items():
        best, clock = found["best_peer"], session["clock"]
        lines.append(f"{precision}: Regard is {found['ratio']:.2f} times the best peer ({best}), by {clock} time")
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    """The command line."""
    keys = list(dict.fromkeys(trainer.key for trainer in trainers()))
    parser = argparse.ArgumentParser(description="Training speed of Regard and its peers on the same work.")
    parser.add_argument("--peers", nargs="+", default=keys, choices=keys, metavar="NAME", help=f"of {', '.join(keys)}")
    words = ["auto", "fp32", "bf16"]
    parser.add_argument("--precision", nargs="+", default=words, choices=words, help="auto: Regard's own choice")
    parser.add_argument("--instructions", default="", choices=list(INSTRUCTIONS), help="keep all of them to these")
    parser.add_argument("--size", default="small", choices=list(SIZES))
    parser.add_argument("--tokens", type=int, default=4096, help="target tokens of a batch")
    parser.add_argument("--steps", type=int, default=20, help="measured steps of a run")
    parser.add_argument("--warm-up", type=int, default=4, help="steps before those")
    parser.add_argument("--runs", type=int, default=3, help="runs of each trainer; the median counts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="cuda: by wall time")
    parser.add_argument("--one-python", action="store_true", help="peers run in this Python, which has their packages")
    parser.add_argument("--first-core", type=int, default=0, help="threads are pinned to this core and those after it")
    parser.add_argument("--timeout", type=float, default=900, help="seconds one run may take")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of environments and scratch files")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "training.jsonl", help="appended to")
    arguments = parser.parse_args()
    if arguments.warm_up < 1:
        parser.error("--warm-up must be at least 1: the first step ends the clock's start")
    arguments.work = prepared(arguments.work)
    arguments.clock = "cpu" if arguments.threads == 1 and arguments.device == "cpu" else "wall"
    arguments.cores = list(range(arguments.first_core, arguments.first_core + arguments.threads))
    return arguments


def main() -> int:
    """Measures, prints the table, appends the session; exit code 1 if something asked for is absent."""
    arguments = parse()
    from corpus import prepare

    corpus = prepare(arguments.work / "corpus")
    sentences = round(arguments.tokens * corpus.sentences / corpus.target_tokens)
    setting = {
        **SIZES[arguments.size],
        "tokens": arguments.tokens,
        "sentences": sentences,
        "pieces": corpus.pieces,
        "steps": arguments.steps,
        "warm_up": arguments.warm_up,
        "threads": arguments.threads,
        "dropout": 0.1,
        "label_smoothing": 0.1,
    } | {name: value for name in ("instructions", "device") if (value := getattr(arguments, name)) not in ("", "cpu")}
    has_bf16 = arguments.device != "cpu" or machine.has_bf16()
    precisions = [p for p in arguments.precision if p != "bf16" or has_bf16]
    chosen = [t for t in trainers() if t.key in arguments.peers and t.precision in precisions]
    begun = {"benchmark": "training", "date": machine.now(), "commit": machine.commit()}
    begun |= {"machine": machine.describe(arguments.device)}
    take_turns(chosen, {**setting, "corpus": corpus.folder}, arguments)
    rows = [row(trainer) for trainer in chosen]
    corpus_figures = {k: v for k, v in asdict(corpus).items() if k != "folder"}
    session = {**begun, "size": arguments.size, "setting": setting, "corpus": corpus_figures, "clock": arguments.clock}
    session |= {"ratios": ratios(rows, arguments.clock), "rows": rows}
    print(table(session))
    machine.append(arguments.results, session)
    return 1 if any(trainer.absent for trainer in chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
