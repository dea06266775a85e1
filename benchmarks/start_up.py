"""How long commands and the import take, each in a fresh process; the median over several.

python benchmarks/start_up.py --model demo/model     # also until `regard translate` has written a line
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import command
import machine

RUN = "import sys; sys.argv = ['regard', {}]; from regard.__main__ import main; main()"
HELP, TRANSLATE = RUN.format("'--help'"), RUN.format("'translate', {!r}, 'A man sleeps.'")
PROGRAMS = {"python alone": "pass", "import regard": "import regard", "regard --help": HELP}


def seconds(program: str) -> tuple[float, float]:
    """Seconds of a fresh Python that runs a program and ends: of the clock, and of the processor."""
    began, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - began, used


def main() -> None:
    """Measures in turns, prints, and appends to the results."""
    parser = command.parser(__doc__, "start_up")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--model", type=Path, action="append", default=[], help="folders of translators to start with")
    arguments = parser.parse_args()
    begun = machine.begun("start_up")
    programs = PROGRAMS | {f"translate, {path.resolve().name}": TRANSLATE.format(str(path)) for path in arguments.model}
    for program in programs.values():
        seconds(program)  # the first start compiles and fills the file cache
    turns = [{name: seconds(program) for name, program in programs.items()} for _ in range(arguments.runs)]
    rows = []
    for name in programs:
        clock, processor = zip(*(turn[name] for turn in turns), strict=True)
        row = {"program": name, "seconds": round(median(clock), 3), "slowest": round(max(clock), 3)}
        rows.append(row | {"processor": round(median(processor), 3)})
    machine.append(arguments.results, begun, rows)


if __name__ == "__main__":
    command.run(main)
