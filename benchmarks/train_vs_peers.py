"""Training speed of Regard and its peers on the same work, in one session: useful target tokens per second, and ratios.

Each run is a process of its own, pinned to its cores; the trainers take turns (A B C, B C A, …), so that a
machine that drifts hits all alike. A figure is the median over the runs. ``README.md`` says what is compared.
"""

from __future__ import annotations

import argparse
import shutil
from contextlib import closing
from dataclasses import asdict
from statistics import median

import command
import machine
from command import positive_number
from corpus import prepare
from harness import OURS, Peer, Row, Worker, in_turns, parser

SIZES = {
    "small": {"layers": 3, "d_model": 256, "d_ff": 1024, "heads": 4},
    "base": {"layers": 6, "d_model": 512, "d_ff": 2048, "heads": 8},
}
INSTRUCTIONS = {
    "": {},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}
"""Variables that keep torch and its libraries to a set of instructions."""


def trainers() -> list[Peer]:
    """Every trainer, at every precision it has on a CPU."""
    both = ("fp32", "bf16")  # Regard's "auto" chooses by timing
    marian, packages = "Transformers Marian, Trainer", ("transformers", "accelerate")
    title, runner = f"{marian}, by length", "peers/train_marian.py"
    table: list[tuple[str, str, str, str | None, tuple[str, ...], tuple[str, ...], Row]] = [
        (OURS, "Regard", "ours.py", None, (), ("auto", *both), {}),
        ("opennmt", "OpenNMT-py", "peers/train_opennmt.py", "opennmt", ("OpenNMT-py",), both[:1], {"eole": False}),
        ("eole", "Eole", "peers/train_opennmt.py", "eole", ("eole",), both, {"eole": True}),
        ("torch", "torch.nn.Transformer loop", "peers/train_torch.py", None, (), both, {}),
        ("marian", marian, runner, "transformers", packages, both, {"group": False}),
        ("marian-grouped", title, runner, "transformers", packages, both, {"group": True}),
    ]
    return [
        Peer(name, title, runner, environment, ("torch", *packages), precision, settings)
        for name, title, runner, environment, packages, precisions, settings in table
        for precision in precisions
    ]


def run(trainer: Peer, setting: Row, asked: argparse.Namespace) -> str:
    """One run of one trainer in a process of its own, which is kept in it; its rate for people.

    Raises:
        Absent: it failed.
    """
    folder = asked.work / "scratch" / trainer.key
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with closing(
        Worker(trainer, {**setting, "folder": str(folder)}, asked, INSTRUCTIONS[asked.instructions])
    ) as worker:
        trainer.runs.append(worker.ask({"do": "train"}, asked.timeout))
    return f"{rate(trainer.runs[-1:], asked.clock):.0f} per {asked.clock} second"


def rate(runs: list[Row], clock: str) -> float:
    """Median over runs of useful target tokens per second of ``cpu`` or ``wall`` time."""
    rates: list[float] = [run["useful_tokens"] / run[f"{clock}_seconds"] for run in runs]
    return median(rates)


def row(trainer: Peer) -> Row:
    """A trainer's line of the results."""
    named = {"key": trainer.name, "title": trainer.title, "precision": trainer.precision}
    if not trainer.runs:
        return {**named, "absent": trainer.absent}
    useful, padded = (sum(run[name] for run in trainer.runs) for name in ("useful_tokens", "padded_tokens"))
    return {
        **named,
        "per_cpu_second": round(rate(trainer.runs, "cpu"), 1),
        "per_wall_second": round(rate(trainer.runs, "wall"), 1),
        "useful": round(useful / padded, 3),
        "peak_mb": max(run["peak_mb"] for run in trainer.runs),
        "versions": trainer.versions,
        "runs": trainer.runs,
        **({"absent": trainer.absent} if trainer.absent else {}),
    }


def ratios(rows: list[Row], clock: str) -> dict[str, Row]:
    """For each precision: our rate over the best peer's; for ``auto`` over that of the best at any precision."""
    found: dict[str, Row] = {}
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


def parse() -> argparse.Namespace:
    """The command line."""
    made = parser(__doc__, "training", (trainer.name for trainer in trainers()), "--peers")
    words = ["auto", "fp32", "bf16"]
    made.add_argument("--precision", nargs="+", default=words, choices=words, help="auto: Regard's own choice")
    made.add_argument("--instructions", default="", choices=list(INSTRUCTIONS), help="keep all of them to these")
    made.add_argument("--size", default="small", choices=list(SIZES))
    made.add_argument("--tokens", type=int, default=4096, help="target tokens of a batch")
    made.add_argument("--steps", type=int, default=20, help="measured steps of a run")
    made.add_argument("--warm-up", type=positive_number, default=4, help="steps before those")
    made.add_argument("--runs", type=int, default=3, help="runs of each trainer; the median counts")
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="cuda: by wall time")
    made.add_argument("--first-core", type=int, default=0, help="threads are pinned to this core and those after it")
    made.add_argument("--timeout", type=float, default=900, help="seconds one run may take")
    asked = made.parse_args()
    asked.clock = "cpu" if asked.threads == 1 and asked.device == "cpu" else "wall"
    asked.cores = list(range(asked.first_core, asked.first_core + asked.threads))
    return asked


def main() -> int:
    """Measures, appends, prints; exit code 1 if something asked for is absent."""
    asked = parse()
    corpus = prepare(asked.work / "corpus")
    setting = {
        **SIZES[asked.size],
        "tokens": asked.tokens,
        "sentences": round(asked.tokens * corpus.sentences / corpus.target_tokens),
        "pieces": corpus.pieces,
        "steps": asked.steps,
        "warm_up": asked.warm_up,
        "threads": asked.threads,
        "dropout": 0.1,
        "label_smoothing": 0.1,
    }
    has_bf16 = asked.device != "cpu" or machine.has_bf16()
    precisions = [p for p in asked.precision if p != "bf16" or has_bf16]
    chosen = [t for t in trainers() if t.name in asked.peers and t.precision in precisions]
    begun = machine.begun("training", asked.device, size=asked.size, clock=asked.clock)

    def do(trainer: Peer, turn: int, item: Row) -> str:
        return run(trainer, {**item, "seed": turn + 1}, asked)

    in_turns(chosen, asked.runs, do, [{**setting, "corpus": corpus.folder, "device": asked.device}])
    kept = {"instructions": asked.instructions, "device": asked.device}
    setting |= {name: value for name, value in kept.items() if value not in ("", "cpu")}
    rows = [row(trainer) for trainer in chosen]
    figures = {name: value for name, value in asdict(corpus).items() if name != "folder"}
    begun |= {"setting": setting, "corpus": figures, "ratios": ratios(rows, asked.clock)}
    machine.append(asked.results, begun, rows)
    print(begun["ratios"])
    return 1 if any(trainer.absent for trainer in chosen) else 0


if __name__ == "__main__":
    command.run(main)
