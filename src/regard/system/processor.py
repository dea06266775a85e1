"""Which processor this is."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


@functools.cache
def fields(cpuinfo: Path = CPUINFO) -> Mapping[str, str]:
    """What the system says of the first core, by name; empty where it says nothing."""
    found: dict[str, str] = {}
    with suppress(OSError):
        for line in cpuinfo.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            found.setdefault(name.strip(), value.strip())
    return found


def name(cpuinfo: Path = CPUINFO) -> str:
    """The processor's own name."""
    return fields(cpuinfo).get("model name") or platform.processor() or platform.machine()


def kind(cpuinfo: Path = CPUINFO) -> str:
    """Its name with family and model, since names alone are often cut short, e.g. to ``AMD EPYC``."""
    found = fields(cpuinfo)
    known = "cpu family" in found and "model" in found
    return f"{name(cpuinfo)} (family {found['cpu family']}, model {found['model']})" if known else name(cpuinfo)
