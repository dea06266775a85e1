"""Prepared data of a run: reused, made, or rebuilt where it is damaged and its source files have not changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.system.errors import Damaged, RegardError
from regard.tasks.protocols import TrainingJob
from regard.training.checkpoints import resolved

NAME = "data"
_FRESH = "data.fresh"
"""Folder for rebuilt data, renamed once it is verified to be the same."""

STAGES = {
    "read": "reading the data",
    "learn": "learning the vocabulary and the labels",
    "encode": "turning examples into ids",
    "segment": "drawing segmentations",
}
"""What preparing does, for people."""


def prepare_data(job: TrainingJob, training: Path, tell: Callable[[str], None]) -> Any:
    """The prepared data in ``training/data``.

    After a kill at any moment the next call finds the old data, the new data, or none.

    Args:
        job: knows the corpora and how to prepare them.
        training: the private folder of the run, locked by the caller.
        tell: called with each stage, and why data is rebuilt.

    Raises:
        RegardError: the corpora cannot be used, are not those of this run, or a newer Regard prepared them.
    """
    folder, fresh = training / NAME, training / _FRESH
    expected = resolved.known_fields(training)[0].get("fingerprint.data")
    try:
        if folder.exists() or expected is None:
            prepared = job.prepare(folder, _Stages(tell))
            _sweep(training)
            return prepared
        tell(f"{folder} is missing; preparing the data again")
    except Damaged as damage:
        tell(f"{damage}; preparing the data again")
    shutil.rmtree(fresh, ignore_errors=True)
    made = job.prepare(fresh, _Stages(tell))
    if expected not in (None, made.fingerprint):
        shutil.rmtree(fresh)
        changed = "is damaged or lost, and the files it was made from have changed since this run began"
        raise RegardError(f"{changed}; give the files of then, or start again with --resume never", str(folder))
    del made
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(fresh, folder)
    _sweep(training)
    return job.prepare(folder, _Stages(lambda text: None))


def _sweep(training: Path) -> None:
    """Remove leftovers of kills and damage beside valid data; older versions kept damaged data."""
    for left in (*training.glob(f"{NAME}.partial"), *training.glob(f"{NAME}.damaged-*"), *training.glob(f"{_FRESH}*")):
        shutil.rmtree(left, ignore_errors=True)


class _Stages:
    """Progress of preparing, a line for each stage."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self.stage = ""

    def __call__(self, stage: str, pairs: int) -> None:
        if stage != self.stage:
            self.stage = stage
            self.tell(STAGES.get(stage, stage))
