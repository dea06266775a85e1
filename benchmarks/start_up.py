"""How long ``regard --help`` and ``import regard`` take, each in a fresh process; the median over several."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import machine

HERE = Path(__file__).resolve().parent
HELP = "import sys; sys.argv = ['regard', '--help']; from regard.cli import main; main()"
PROGRAMS = {"python alone": "pass", "import regard": "import regard", "regard --help": HELP}


def seconds(program: str) -> float:
    """Wall time of a fresh Python that runs a program and ends."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    """Measures in turns, prints, and appends to the results."""
    parser = argparse.ArgumentParser(description="Start-up time of the command and of the import.")
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "start_up.jsonl")
    arguments = parser.parse_args()
    begun = {"benchmark": "start_up", "date": machine.now(), "commit": machine.commit(), "machine": machine.describe()}
    seconds(HELP)  # the first start compiles and fills the file cache
    turns = [{name: seconds(program) for name, program in PROGRAMS.items()} for _ in range(arguments.runs)]
    taken = {name: [turn[name] for turn in turns] for name in PROGRAMS}
    rows = [
        {"program": name, "seconds": round(median(times), 3), "slowest": round(max(times), 3)}
        for name, times in taken.items()
    ]
    for row in rows:
        print(f"{row['program']:15} {row['seconds']:.3f} s (slowest of {arguments.runs}: {row['slowest']:.3f} s)")
    machine.append(arguments.results, {**begun, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
