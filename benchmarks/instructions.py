"""How many instructions the hot kernels of the engine take: figures without noise, so that a change of a kernel shows.

    python benchmarks/instructions.py

Compiles ``native/programs/hot.cpp`` and runs each of its calls under Valgrind's ``callgrind``, which counts what is
inside the kernel. Needs a C++ compiler, cmake and valgrind, which knows neither AVX-512 nor AMX. The counts are of a
compiler, so its version stands in each line, which is appended to ``results/instructions.jsonl``, or to
``--results FILE``.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import command
import machine

NATIVE = command.HERE.parent / "native"
COUNTED = re.compile(r"Collected : (\d+)")


def output(*command: object) -> str:
    """What a command says, on stdout and stderr.

    Raises:
        SystemExit: it failed, or is not installed.
    """
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit(f"{command[0]} is needed, and is not installed") from None
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def compiled(folder: Path) -> Path:
    """The program, made in a folder."""
    output("cmake", "-S", NATIVE, "-B", folder, "-DREGARD_PROGRAMS=ON")
    output("cmake", "--build", folder, "--target", "hot", "--parallel")
    return folder / "hot"


def counted(program: Path, set_name: str, call: str, kernel: str) -> int:
    """Instructions of one call, inside of its kernel."""
    inside = f"--toggle-collect=regard::{set_name}::{kernel}(regard::*"
    tool = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no", inside)
    found = COUNTED.search(output(*tool, program, set_name, call))
    if not found or found[1] == "0":
        raise SystemExit(f"nothing was counted of {call} ({set_name})")
    return int(found[1])


def main() -> None:
    """Counts every call by every set, prints, and appends to the results."""
    asked = command.parser(__doc__, "instructions").parse_args()
    begun = machine.begun("instructions", compiler=output("c++", "--version").splitlines()[0])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        listed = [line.split("\t") for line in output("valgrind", "--tool=none", program).splitlines()]
        sets = [line[1] for line in listed if line[0] == "set"]  # those of the processor that Valgrind shows
        for _, call, kernel in (line for line in listed if line[0] == "call"):
            rows.append({"call": call, **{name: counted(program, name, call, kernel) for name in sets}})
    machine.append(asked.results, begun, rows)


if __name__ == "__main__":
    command.run(main)
