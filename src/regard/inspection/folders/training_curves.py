"""Follows a training's metrics log: losses, learning rates, gradient norms, scores, sample outputs.

Logs may be damaged by power cuts, full disks or manual edits, so every value is validated.
"""

from __future__ import annotations

import json
import os
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from regard.system import disk
from regard.system.errors import RegardError
from regard.text.lines import replace_surrogates

LARGEST = float(np.finfo(np.float32).max)
STEPS = 2**53
"""Largest step that a page handles."""
NAME, TEXT = 60, 1000
"""Most characters of a name, and of a sample's text."""
SCORES = 32
"""Most scores of one validation."""
TEXTS = ("source", "reference", "hypothesis")
Values = dict[str, Any]
UNKNOWN = float("nan")
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


def parse_line(line: bytes) -> Values | None:
    """The object in a line; ``None`` if invalid, since a power cut may leave half a line between complete ones."""
    try:
        values = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def parse_step(value: object) -> int | None:
    """A step number; ``None`` if invalid."""
    return value if type(value) is int and 0 <= value <= STEPS else None


def parse_number(value: object) -> float:
    """A number to plot; NaN if invalid."""
    if isinstance(value, float | int) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST:
        return float(value)
    return UNKNOWN


def parse_numbers(values: object) -> dict[str, float]:
    """The valid numbers of an object by name."""
    if not isinstance(values, dict):
        return {}
    found = {replace_surrogates(name): parse_number(value) for name, value in values.items() if len(name) <= NAME}
    return {name: number for name, number in found.items() if isfinite(number)}


class Curves:
    """Columns of equal length; missing values are NaN.

    Args:
        names: of the columns that are there from the start; others begin when a row has them.
        most: columns there may be; what would be another is left out.
    """

    def __init__(self, names: Iterable[str] = (), most: int = 256) -> None:
        self._most = most
        self.steps = array("d")
        self.columns = {name: array("d") for name in names}

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Append a row."""
        for name in values:
            if name not in self.columns and len(self.columns) < self._most:
                self.columns[name] = array("d", [UNKNOWN]) * len(self.steps)
        for name, column in self.columns.items():
            column.append(values.get(name, UNKNOWN))
        self.steps.append(step)

    def downsample(self, points: int) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Steps and columns averaged over equal groups of rows, at most ``points``; missing values are ignored."""
        count = len(self.steps)
        edges = np.arange(0, count, max(1, -(-count // points)))
        return _means(self.steps, edges), {name: _means(column, edges) for name, column in self.columns.items()}


def _means(column: array[float], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean of the finite numbers between consecutive edges; NaN if there is none."""
    if not len(edges):
        return np.zeros(0)
    values = np.array(column)
    finite = np.isfinite(values)
    sums = np.add.reduceat(np.where(finite, values, 0.0), edges)
    counts = np.add.reduceat(finite.astype(np.float64), edges)
    return np.divide(sums, counts, out=np.full(len(edges), np.nan), where=counts > 0)


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
        with disk.open_binary(self.path, "log") as file:
            self._find(file)
            while not self.whole:
                some = file.read(CHUNK)
                self._place += len(some)
                self._known = (self._known + some)[-KNOWN:]
                for line in self._lines(some):
                    self._take(line)
                    found = True
                self.whole = not some
                if monotonic() > end:
                    break
        if self._odd and not self._told:
            raise RegardError(NO_LOG, str(self.path))
        return found

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
        elif kind == "valid" and step is not None:
            scores = dict(list(parse_numbers(values).items())[:SCORES])
            if "loss" in scores:
                self.valid[step] = {**scores, "step": step, "best": values.get("best") is True}
        elif kind == "sample" and step is not None and all(isinstance(values.get(name), str) for name in TEXTS):
            texts = {name: replace_surrogates(values[name]) for name in TEXTS}
            short = {name: text if len(text) <= TEXT else text[:TEXT] + "…" for name, text in texts.items()}
            self.samples.append({"step": step, **short})

    def summary(self, points: int) -> tuple[Values, dict[str, NDArray[np.float32]]]:
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
    return [*map(int, np.linspace(0, count - 1, min(count, most)).round())]
