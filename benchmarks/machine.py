"""What the figures were measured on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from regard.system import disk, processor
from regard.system.errors import RegardError


def has_bf16() -> bool:
    """Whether the processor multiplies bf16 natively."""
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text() if cpuinfo.exists() else ""
    return any(flag in flags for flag in ("avx512_bf16", "amx_bf16", " bf16"))


def describe(device: str = "cpu") -> dict[str, object]:
    """The machine in plain values: processor, cores, memory, system, and how busy it was; the GPU if it is used."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": processor.kind(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
        "bf16": has_bf16(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
        **({} if device == "cpu" else {"gpu": gpu(device)}),
    }


def gpu(device: str) -> str:
    """A GPU's name, and the torch that uses it."""
    import torch

    return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"


def resident(what: str, process: int | str = "self") -> float:
    """Megabytes of a process: ``VmRSS`` now, ``VmHWM`` at most."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) / 1000


def commit() -> str:
    """The short name of the commit measured, with ``+`` where files differ from it (other than the results)."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        try:
            ran = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=False)
        except OSError:
            return ""
        return ran.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "..", ":!results")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def begun(benchmark: str, device: str = "cpu", **more: object) -> dict[str, object]:
    """A session that begins now: of which benchmark, when, of which commit and where."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"benchmark": benchmark, "date": date, "commit": commit(), "machine": describe(device), **more}


LONG = ("runs", "versions", "counts", "curve", "models")
"""What of a row is not printed."""


def append(results: Path, session: Mapping[str, object], rows: Sequence[Mapping[str, object]]) -> None:
    """Appends a session with its rows to a results file, an object a line; prints the rows, without long lists."""
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**session, "rows": rows}, ensure_ascii=False) + "\n")
    for row in rows:
        shown = {name: value for name, value in row.items() if name not in LONG}
        print(json.dumps(shown, ensure_ascii=False), flush=True)


def rows_in(results: Path) -> list[dict[str, Any]]:
    """The rows of all sessions of a results file, the oldest first; none where there is no file."""
    return [row for session in sessions_in(results) for row in session["rows"]]


def sessions_in(results: Path) -> list[dict[str, Any]]:
    """The sessions of a results file, the oldest first; none where there is no file.

    Raises:
        RegardError: it is no file, or a line of it is no session.
    """
    if not results.exists():
        return []
    found = []
    for number, line in enumerate(disk.content(results, kind="results file").splitlines(), 1):
        try:
            session = json.loads(line)
        except ValueError:
            session = None
        if not (isinstance(session, dict) and isinstance(session.get("rows"), list)):
            raise RegardError("is no line of results: a JSON object with rows is needed", f"{results}:{number}")
        found.append(session)
    return found
