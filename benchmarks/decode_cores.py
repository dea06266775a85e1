"""Many sentences on two cores: two processes, and two runs of their own, against one process on one core.

    python benchmarks/decode_cores.py --model FOLDER --source val.en.gz --sentences 1014

Each run is a whole ``regard translate`` of a file; what a run of one sentence takes, the start, is subtracted. A *copy*
is a run of its own on a core of its own; two of them translate the file twice. Rows take turns, medians are of wall
time. Without ``--model`` it is that of ``decode_vs_peers.py``: the base shape with made-up weights, and real news.
Appended to ``results/decode_cores.jsonl``, or to ``--results FILE``. Nothing else may run on the machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import decode_models
import machine
from environments import WORK

HERE = Path(__file__).resolve().parent
CORES = (0, 1)
BEAMS = (1, 4)


def main() -> int:
    """Measures every precision and beam, prints, appends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a translator's folder; default: the base shape, weights made up")
    parser.add_argument("--source", type=Path, help="its sentences, a line each, plain or gz")
    parser.add_argument("--precision", nargs="+", default=["fp32", "int8"], choices=["fp32", "int8"])
    parser.add_argument("--sentences", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work-folder", type=Path, default=WORK, help="of the model with made-up weights")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "decode_cores.jsonl")
    asked = parser.parse_args()
    if (asked.model is None) != (asked.source is None):
        parser.error("--model needs --source, and --source needs --model")
    begun = {"benchmark": "decode_cores", "date": machine.now(), "commit": machine.commit()}
    begun |= {"machine": machine.describe(), "sentences": asked.sentences, "rounds": asked.rounds}
    folder, lines = chosen(asked)
    begun["model"] = "base shape, weights made up" if asked.model is None else folder.resolve().name
    rows = []
    with TemporaryDirectory() as scratch:
        many, one = Path(scratch, "many.txt"), Path(scratch, "one.txt")
        many.write_text("".join(f"{line}\n" for line in lines[: asked.sentences]), encoding="utf-8")
        one.write_text(f"{lines[0]}\n", encoding="utf-8")
        for precision in asked.precision:
            for beam in BEAMS:
                rows.append(row(folder, many, one, precision, beam, asked.rounds))
                print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    machine.append(asked.results, {**begun, "rows": rows})
    return 0


def chosen(asked: argparse.Namespace) -> tuple[Path, list[str]]:
    """The model folder, and the sentences."""
    if asked.model is not None:
        return asked.model, decode_models.lines_of(asked.source)
    folder = asked.work_folder / "decoding" / "base"
    if not folder.exists():
        decode_models.translator(folder)
    return folder, decode_models.texts(folder, asked.sentences)


def row(folder: Path, many: Path, one: Path, precision: str, beam: int, rounds: int) -> dict[str, object]:
    """Seconds behind the start of each way, and how many times one process's sentences a second that gives."""
    base = ["translate", str(folder), "--precision", precision, "--beam", str(beam), "--input"]
    alone, both = [*base, str(many), "--processes", "1"], [*base, str(many), "--processes", "2"]
    ways = {
        "start": ([[*base, str(one), "--processes", "1"]], CORES[:1]),
        "one process": ([alone], CORES[:1]),
        "two processes": ([both], CORES),
        "two copies": ([alone, alone], CORES),
    }
    turns = [{name: seconds(commands, cores) for name, (commands, cores) in ways.items()} for _ in range(rounds)]
    start, single, two, copies = (median(turn[name] for turn in turns) for name in ways)
    return {
        "precision": precision,
        "beam": beam,
        "start": round(start, 2),
        "one process": round(single - start, 2),
        "two processes": round((single - start) / (two - start), 2),
        "two copies": round(2 * (single - start) / (copies - start), 2),
    }


def seconds(commands: list[list[str]], cores: tuple[int, ...]) -> float:
    """Wall time until all commands have ended: a single one may use all the cores, several have one each."""
    each = [set(cores)] if len(commands) == 1 else [{core} for core in cores]
    began = time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "regard", *command],
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda own=own: os.sched_setaffinity(0, own),
        )
        for command, own in zip(commands, each, strict=True)
    ]
    if any(process.wait() for process in running):
        sys.exit("a run failed")
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
