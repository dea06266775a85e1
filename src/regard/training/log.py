"""Logs of a run: ``metrics.jsonl``, TensorBoard, and the base of progress reporters. No torch."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from regard.system import disk
from regard.system.errors import RegardError
from regard.training.checkpoints.files import Files

if TYPE_CHECKING:
    from regard.training.objective import Validation

LARGEST = 1 << 32
"""Bytes a log may have; more are not read."""


@dataclass(frozen=True)
class Start:
    """Facts known before the first step, or when a run resumes or is re-planned."""

    step: int
    """Steps already done."""
    steps: int | None
    parameters: int
    tokens: int
    """Largest number of target tokens per update."""
    validate_every: int


@dataclass(frozen=True)
class StepMetrics:
    """One update. Loss in nats per real target token, label smoothing included; ``seconds`` since the first step."""

    step: int
    seconds: float
    loss: float
    nll: float
    rate: float
    tokens: int
    tokens_per_second: float
    fill: float
    norm: float
    skipped: bool = False
    norms: Mapping[str, float] | None = None
    """Gradient norms layer by layer, every 50 steps."""


@dataclass(frozen=True)
class Summary:
    """How a run ended."""

    step: int
    seconds: float
    best_step: int | None
    best_metric: str | None
    best_value: float | None
    skipped: int
    reason: str


class Reporter:
    """Shows a person what happens, and changes nothing of the run; this one is silent."""

    def on_start(self, start: Start) -> None:
        """The run starts, resumes or is re-planned."""

    def on_measure(self, share: float) -> None:
        """So much of what is measured before the run is measured, from 0 to 1."""

    def on_step(self, metrics: StepMetrics) -> None:
        """One update is done."""

    def on_validation(self, step: int, validation: Validation, best: bool) -> None:
        """A validation is done."""

    def on_save(self, path: Path) -> None:
        """A checkpoint is saved."""

    def on_event(self, text: str) -> None:
        """Something else happened."""

    def on_end(self, summary: Summary) -> None:
        """The run has ended."""


class MetricsLog:
    """Append-only ``metrics.jsonl``: an object a line, whole lines only, with ``kind`` and ``step``.

    A full disk must not stop training: lines that cannot be written are dropped and counted in ``lost``.

    Args:
        path: of the file.
        files: does what must be safe on the disk.
        silent: write nothing: another process does.
    """

    def __init__(self, path: Path, files: Files, silent: bool = False) -> None:
        self.path, self.files, self.silent = path, files, silent
        self.lost = 0

    def write(self, kind: str, step: int, **values: object) -> None:
        """Append one line; ``kind`` is start, planned, step, valid, sample, save or event."""
        if self.silent:
            return
        line = json.dumps(_finite({"kind": kind, "step": step, **values}), ensure_ascii=False, allow_nan=False) + "\n"
        try:
            if self.path.exists():
                disk.refuse_irregular(self.path, "log")
            with open(self.path, "ab", buffering=0) as handle:
                handle.write(line.encode())
        except (OSError, RegardError):
            self.lost += 1

    def sync(self) -> None:
        """Bring all lines safely to the disk, before the checkpoint that counts on them."""
        if self.path.is_file() and not self.silent:
            with open(self.path, "rb") as handle:
                self.files.sync(handle.fileno())

    def truncate(self, step: int) -> None:
        """Keep the lines up to ``step``; the rest, which will be made again, goes to a file beside it."""
        if self.silent or not self.path.exists():
            return
        head: list[bytes] = []
        tail: list[bytes] = []
        for line in disk.content(self.path, LARGEST, "log").splitlines(keepends=True):
            (head if _step(line) <= step else tail).append(line)
        if tail:
            kept = b"".join(tail)
            stem = f"{self.path.stem}.after-{step:06d}"
            places = (self.path.with_name(f"{stem}{f'-{n}' if n else ''}{self.path.suffix}") for n in range(1_000_000))
            aside = next(p for p in places if not p.exists() or disk.holds(p, kept))
            if not aside.exists():  # else a kill came between the two files
                self.files.replace(aside, [kept])
            self.files.replace(self.path, [b"".join(head)])


class TensorBoardLog:
    """The same numbers for TensorBoard (needs the ``track`` extra)."""

    def __init__(self, folder: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder), purge_step=step + 1)

    def write(self, step: int, **values: float | None) -> None:
        """Add a point to each curve that has a finite value here."""
        for name, value in values.items():
            if value is not None and math.isfinite(value):
                self.writer.add_scalar(name, value, step)


def _step(line: bytes) -> float:
    """The step of a line; a torn one (the machine died while it was written) counts as after every step."""
    try:
        return int(json.loads(line)["step"]) if line.endswith(b"\n") else math.inf
    except (ValueError, KeyError, TypeError):
        return math.inf


def _finite(value: object) -> object:
    """The same with every number that is not finite replaced by ``None``: JSON has no such numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
