"""Follows a training's metrics log: losses, learning rates, gradient norms, scores, sample outputs."""

from __future__ import annotations

import os
from collections import Counter, deque
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from regard.explore.folders.metrics_lines import (
    Curves,
    Values,
    parse_line,
    parse_number,
    parse_numbers,
    parse_sample,
    parse_step,
    parse_validation,
)
from regard.explore.folders.regular_files import open_regular_file
from regard.system.errors import RegardError

LOG = Path("training") / "metrics.jsonl"
COLUMNS = ("seconds", "loss", "rate", "tokens_per_second", "norm")
"""Values recorded for every update, besides its step."""
CHUNK = 1 << 20
"""Bytes per read."""
SECONDS = 2.0
"""After which no more is read for one answer, about: a log may be of any size, and others wait for their turn."""
BEGUN, NO_LOG = b'{"kind"', "is no log of a training: none of its lines is one that a training writes"
LINE = 1 << 20
"""Most bytes of a line; longer ones are damage, e.g. zeros left by a crash."""
KNOWN = 256
"""Bytes before the reading position, compared to recognise the same log."""
SAMPLES = 2_000
"""Most sample outputs kept, the newest."""
CELLS = 1 << 17
"""Most gradient norms returned."""
VALIDATIONS, WRITTEN, EACH = 1_000, 40, 10
"""Validations that are given, evenly chosen, the first and the last among them; of how many of them the sample outputs
are; how many of each."""


class TrainingCurves:
    """Follows ``training/metrics.jsonl`` of a model folder; an incomplete last line is read again later.

    Args:
        folder: of the model.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOG
        self._forget()

    def _forget(self) -> None:
        self._file: tuple[int, int] | None = None
        self._place, self._known, self._rest, self._long = 0, b"", b"", False
        self._odd, self._told = 0, 0
        self.whole = False
        self.planned: int | None = None
        self.updates = Curves(COLUMNS)
        self.norms = Curves()
        self.valid: dict[int, Values] = {}
        self.samples: deque[Values] = deque(maxlen=SAMPLES)

    def advance(self, seconds: float = SECONDS) -> bool:
        """Read what was appended, or everything if the log was restarted; return whether there was anything.

        Args:
            seconds: after which the rest is left for the next time, and the course is not ``whole``.

        Raises:
            RegardError: there is no log, or nothing in it is one.
        """
        end, found, self.whole = monotonic() + seconds, False, False
        try:
            with open_regular_file(self.path) as file:
                self._find(file)
                while not self.whole:
                    some = file.read(CHUNK)
                    found = self._follow(some) or found
                    self.whole = not some
                    if monotonic() > end:
                        break
        except OSError as error:
            raise RegardError(f"the log of the training cannot be read: {error.strerror}", str(self.path)) from None
        if self._odd and not self._told:
            raise RegardError(NO_LOG, str(self.path))
        return found

    def _follow(self, some: bytes) -> bool:
        """Take the bytes read; return whether they complete a line."""
        self._place += len(some)
        self._known = (self._known + some)[-KNOWN:]
        lines = self._lines(some)
        for line in lines:
            self._take(line)
        return bool(lines)

    def _find(self, file: BinaryIO) -> None:
        """Seek to the reading position, or to the start if the log was truncated or replaced."""
        stat = os.fstat(file.fileno())
        which = stat.st_dev, stat.st_ino
        file.seek(max(0, self._place - len(self._known)))
        if which != self._file or file.read(len(self._known)) != self._known:
            self._forget()
            self._file = which
        file.seek(self._place)

    def _lines(self, some: bytes) -> list[bytes]:
        """The lines completed by these bytes; an over-long one is dropped as it arrives."""
        *lines, rest = (self._rest + some).split(b"\n")
        if lines and self._long:
            self._long = False
            del lines[0]
        if len(rest) > LINE and not self._long:
            self._long = True
            self._odd += 1
        self._rest = b"" if self._long else rest
        return [line for line in lines if len(line) <= LINE]

    def _take(self, line: bytes) -> None:
        values = parse_line(line) or {}
        if "kind" in values or line.startswith(BEGUN):
            self._told += 1
        else:
            self._odd += 1
        kind, step = values.get("kind"), parse_step(values.get("step"))
        if kind in ("start", "planned"):
            self.planned = parse_step(values.get("steps"))
        elif kind == "step" and step is not None:
            self.updates.add(step, {name: parse_number(values.get(name)) for name in COLUMNS})
            if norms := parse_numbers(values.get("norms")):
                self.norms.add(step, norms)
        elif kind == "valid" and (checked := parse_validation(values)):
            self.valid[checked["step"]] = checked
        elif kind == "sample" and (written := parse_sample(values)):
            self.samples.append(written)

    def summary(self, points: int) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
        """Plain values and arrays of bounded size, however long the training is.

        Args:
            points: of each curve at most, which are means of equally many updates.
        """
        steps, columns = self.updates.downsample(points)
        rows = max(1, min(points, CELLS // max(1, len(self.norms.columns))))
        measured, norms = self.norms.downsample(rows)
        samples = self._samples()
        values = {
            "planned": self.planned,
            "whole": self.whole,
            "valid": self._validations({one["step"] for one in samples}),
            "samples": samples,
            "norms": {"steps": measured.tolist(), "names": list(norms)},
        }
        table = np.stack([*norms.values()], axis=1) if norms else np.zeros((0, 0))
        arrays = {"step": steps, **columns, "norms": table}
        return values, {name: array.astype(np.float32) for name, array in arrays.items()}

    def _samples(self) -> list[Values]:
        """The sample outputs of selected validations."""
        steps = list(dict.fromkeys(one["step"] for one in self.samples))
        chosen = {steps[place] for place in _even_indices(len(steps), WRITTEN)}
        counts, found = Counter[int](), list[Values]()
        for one in self.samples:
            counts[one["step"]] += 1
            if one["step"] in chosen and counts[one["step"]] <= EACH:
                found.append(one)
        return found

    def _validations(self, wanted: set[int]) -> list[Values]:
        """Evenly spaced validations, plus the last best one and those at these steps."""
        found = list(self.valid.values())
        chosen = {*wanted, *(found[place]["step"] for place in _even_indices(len(found), VALIDATIONS))}
        best = max((place for place, one in enumerate(found) if one["best"]), default=None)
        return [one for place, one in enumerate(found) if place == best or one["step"] in chosen]


def _even_indices(count: int, most: int) -> list[int]:
    """At most ``most`` evenly spaced indices, including the first and the last."""
    places: list[int] = np.linspace(0, count - 1, min(count, most)).round().astype(int).tolist()
    return places
