"""Fits the token budget into memory: splits a large batch into smaller ones by gradient accumulation."""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Callable
from pathlib import Path

import torch

_SHARE = 0.8
"""Of the free memory a batch may take; the rest is for what other processes and longer sentences need."""


def fit_batch_to_memory(
    tokens: int, accumulate: int, least: int, needed: Callable[[int], int | None], free: int | None
) -> tuple[int, int]:
    """Tokens of a batch and batches per update that fit, with at least the same tokens per update.

    Halving the batch and doubling the accumulation is exact: the gradient is divided by the tokens of the whole update.

    Args:
        tokens: target tokens of a batch in the recipe.
        accumulate: batches per update in the recipe.
        least: a batch must hold the longest sentence (``data.max_tokens``).
        needed: peak bytes of one batch of n tokens; called with a small n only.
            ``None``: it cannot be measured here, and nothing is changed.
        free: bytes available.
    """
    small = max(least, tokens // 8)
    peak = needed(small) if free is not None else None
    if peak is None or free is None:
        return tokens, accumulate
    while peak * tokens / small > _SHARE * free and (tokens + 1) // 2 >= least:
        tokens, accumulate = (tokens + 1) // 2, accumulate * 2
    return tokens, accumulate


def free_memory(device: torch.device) -> int | None:
    """Free bytes of a device; on the CPU the minimum of the machine's and the container's."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    limits = [_machine(Path("/proc/meminfo")), *_container(Path("/sys/fs/cgroup"))]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


def peak_memory(work: Callable[[], object], device: torch.device) -> int | None:
    """Peak bytes allocated by ``work``; ``None`` if they cannot be measured."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    _give_back_pages()  # else the work would reuse freed memory and seem to need none
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again from now
        before_kb = _status("VmRSS")
    except (OSError, ValueError):
        return None
    work()
    return max(0, _status("VmHWM") - before_kb) * 1024


def _status(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if not found:
        raise ValueError(name)
    return int(found[1])


def _machine(meminfo: Path) -> int | None:
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def _container(root: Path) -> list[int | None]:
    """Free bytes in the control groups, of either version; droppable pages count as free."""
    return [
        _free_bytes(root / "memory.max", root / "memory.current", root / "memory.stat", "inactive_file"),
        _free_bytes(
            root / "memory/memory.limit_in_bytes",
            root / "memory/memory.usage_in_bytes",
            root / "memory/memory.stat",
            "total_inactive_file",
        ),
    ]


def _free_bytes(limit: Path, used: Path, stat: Path, droppable: str) -> int | None:
    try:
        most, taken = int(limit.read_text()), int(used.read_text())  # "max" means no limit
        cached = re.search(rf"^{droppable} (\d+)", stat.read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return most - taken + (int(cached[1]) if cached else 0)


def keep_pages() -> None:
    """Let this process keep the memory it frees: training asks for the same large pieces again at every step.

    On Linux with glibc each piece would be fetched from the system again; elsewhere nothing happens.
    """
    threshold, trim = -3, -1  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        for option in (threshold, trim):
            library.mallopt(option, 2**31 - 1)


def _give_back_pages() -> None:
    """Return what this process has freed but kept to the system, where its library can."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
