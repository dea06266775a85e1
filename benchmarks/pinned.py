"""A process of its own on cores of its own, as every run of a peer and of ours is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent


def variables(threads: int, ours: bool, device: str = "cpu") -> dict[str, str]:
    """What a run sees: its threads, a GPU only if it is to use one, no network, our source only for ours."""
    return {
        **os.environ,
        "PYTHONPATH": str(HERE.parent / "src") if ours else "",
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "PYTHONWARNINGS": "ignore",
        **({"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}),
    }


def run_pinned(
    command: Sequence[str | Path],
    folder: Path,
    seen: dict[str, str],
    cores: Sequence[int],
    log: Path,
    timeout: float | None = None,
) -> None:
    """Runs a command in a folder on some cores; whatever it says goes to the log.

    Raises:
        subprocess.TimeoutExpired: it took longer, in seconds; it is ended.
    """
    with log.open("w") as output:
        subprocess.run(
            [str(part) for part in command],
            cwd=folder,
            env=seen,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=timeout,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )


def last_line(log: Path) -> str:
    """What a process said last, which is why it failed if it did."""
    lines = [line.strip() for line in log.read_text(errors="replace").split("\n") if line.strip()]
    return lines[-1] if lines else "no output"
