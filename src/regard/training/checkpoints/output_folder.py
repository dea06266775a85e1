"""Output folders: of a run (start, resume, finished or refused), and of other results, there whole or not at all."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Literal

from regard.system.errors import NoValidCheckpoint, Option, RegardError, UsageError
from regard.text.counts import counted
from regard.training.checkpoints import manifest, resolved
from regard.training.checkpoints.checkpoint import dated, verified_state, whole
from regard.training.checkpoints.files import Files, alone, partial_path
from regard.training.progress import Progress

Resume = Literal["auto", "must", "never"]
_MODEL = ("recipe.toml", "model.safetensors", "card.md", manifest.NAME, manifest.NEXT)
_ASSETS = (
    "base.json",
    "confidence.json",
    "frame.json",
    "labels.json",
    "languages.json",
    "languages.ngrams.json",
    "ngrams.safetensors",
    "packed.safetensors",
    "pixels.json",
    "precisions.json",
    "processors.json",
    "shortlist.bin",
    "terms.tsv",
)
"""Files of a model other than tokenizers: what it needs, how products are computed, and its packed weights."""
_RUN = frozenset("checkpoints snapshots data lock metrics provenance resolved tensorboard measured".split())
"""What the names in the private folder of a run begin with."""
_BEFORE = "training.before-"
_TAKEN = "holds something already; name a new folder"
FIRST, LAST = ("model.safetensors", "model.bin"), ("config.json", "manifest.json")
"""Order of a model's files: the first marks a folder as in use; without the last, none loads."""


class Action(Enum):
    """What to do with an output folder."""

    START = "start"
    RESUME = "resume"
    FINISHED = "finished"


@contextmanager
def claim_output(
    output: Path,
    fields: resolved.Fields,
    resume: Resume = "auto",
    allow: Iterable[str] = (),
    warn: Callable[[str], None] = lambda text: None,
) -> Iterator[Action]:
    """Lock the output folder against a second writer, and decide what to do with it.

    Absent or empty: start. A run of the same fields: resume, or finished. ``resume="never"`` moves an earlier run into
    ``training.before-<time>/`` and starts.

    Raises:
        RegardError: it belongs to another recipe (naming the field), to something else, or to a process at work.
        NoValidCheckpoint: ``resume="must"``, and there is no checkpoint.
    """
    allow = tuple(allow)
    decide(output, fields, resume, allow)  # before anything is made in a folder that may not be ours
    training = output / "training"
    training.mkdir(parents=True, exist_ok=True)
    with hold_lock(training):
        if resume != "never":
            _restore(training, warn)
            yield decide(output, fields, resume, allow, warn)
            return
        if not _set_aside(output):
            yield Action.START
            return
        training.mkdir()
        with hold_lock(training):
            yield Action.START


def decide(
    output: Path,
    fields: resolved.Fields,
    resume: Resume = "auto",
    allow: Iterable[str] = (),
    warn: Callable[[str], None] = lambda text: None,
) -> Action:
    """Decide what to do with an output folder; changes nothing. See :func:`claim_output`."""
    refuse_unusable(output, resume)
    if resume == "never":
        return Action.START
    training = output / "training"
    old, _ = resolved.known_fields(training)
    if old:
        resolved.check(old, fields, allow, warn)
    checkpoints = _checkpoints(training)
    if checkpoints and not old:
        raise RegardError(
            f"is missing beside checkpoints; start anew with {Option('resume', 'never')}", str(training / resolved.NAME)
        )
    steps = _number(fields, "training.steps") or _number(old, "chosen.steps")
    if is_complete(training, steps, _number(fields, "training.patience")):
        return Action.FINISHED
    return Action.RESUME if checkpoints else Action.START


def refuse_unusable(output: Path, resume: Resume) -> None:
    """Raise a RegardError for an unusable output folder before anything is read: see :func:`claim_output`."""
    try:
        str(output).encode()
    except UnicodeEncodeError:
        raise UsageError("is no valid UTF-8, which the names of a model's files must be", ascii(str(output))) from None
    if output.is_symlink() and not output.exists():
        raise RegardError("is a link to nothing", str(output))
    names = _names(output)
    foreign = sorted(name for name in names if not is_ours(name))
    if foreign:
        raise RegardError(f"is not empty and not a run of ours: it holds {foreign[0]!r}; choose another", str(output))
    above = next(path for path in (output, *output.absolute().parents) if path.exists())
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise RegardError(f"cannot be made: {above} is {'not writable' if above.is_dir() else 'a file'}", str(output))
    if resume == "must" and not _checkpoints(output / "training"):
        raise NoValidCheckpoint("there is no checkpoint to resume from", str(output))
    if resume != "never" and "training" not in names and any(not name.startswith(_BEFORE) for name in names):
        what = "holds a model without the training/ it came from; choose another"
        raise RegardError(f"{what}, or {Option('resume', 'never')} keeps it aside", str(output))


def _checkpoints(training: Path) -> list[str]:
    """Names of the checkpoints there are, whole or not."""
    return [name for name in _names(training / "checkpoints") if re.fullmatch(r"step-\d+(\.corrupt-.*)?", name)]


def is_complete(training: Path, steps: int | None = None, patience: int | None = None) -> bool:
    """Whether the newest checkpoint is valid and its run is finished, given the number of steps if known.

    Raises:
        UsageError: fewer steps are requested than are done.
    """
    for path in reversed(whole(training / "checkpoints")):
        try:
            progress = Progress.of(verified_state(path), path)
        except RegardError:
            return False  # resuming sets it aside and says so
        if steps is not None and progress.step > steps - (not progress.finished):
            raise UsageError(f"{counted(progress.step, 'step')} done already; set more than {steps}", "training.steps")
        return progress.finished and (steps is None or progress.over(steps, patience))
    return False


def is_finished(training: Path) -> bool:
    """Whether a run has made all steps that were last requested; one that lost its checkpoints made what it made."""
    if not any((training / "checkpoints").glob("step-*")):
        return True
    fields, _ = resolved.known_fields(training)
    with suppress(UsageError):  # all steps are done, but not the last validation
        return is_complete(training, _number(fields, "chosen.steps"), _number(fields, "training.patience"))
    return False


def _restore(training: Path, warn: Callable[[str], None]) -> None:
    """Restore a lost or damaged ``resolved.toml`` from the newest checkpoint that has its fields."""
    fields, checkpoint = resolved.known_fields(training)
    if checkpoint is not None:
        resolved.write(training, fields, Files())
        warn(f"{resolved.NAME} was lost or damaged; it is taken from the checkpoint {checkpoint.name}")
    elif not fields and (training / resolved.NAME).exists():
        Files().remove(training / resolved.NAME)
        warn(f"{resolved.NAME} was damaged, and no step is saved yet; the run starts from its first step")


def _number(fields: resolved.Fields, name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) else None


def _names(folder: Path) -> set[str]:
    if folder.exists() and not folder.is_dir():
        raise RegardError("is a file; an output must be a folder", str(folder))
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def is_ours(name: str) -> bool:
    """Whether a model folder, or a run, may hold a file of this name."""
    text = name.startswith(("tokenizer.", "words.")) and name.endswith((".json", ".json.partial"))
    return name in (*_MODEL, *_ASSETS, "training") or text or name.startswith(_BEFORE) or ".partial-" in name


def foreign_files(training: Path) -> list[str]:
    """The names in the private folder of a run of what no Regard writes there."""
    return [name for name in sorted(_names(training)) if re.split(r"[.-]", name.removeprefix("."))[0] not in _RUN]


def left_behind(output: Path) -> list[Path]:
    """What a model folder holds that only training needs: the run, earlier runs, what killed processes left."""
    found = []
    for name in sorted(_names(output)):
        final, unfinished, _ = name.partition(".partial-")
        if name == "training" or name.startswith(_BEFORE) or (unfinished and is_ours(final.removeprefix("."))):
            found.append(output / name)
    return found


def _set_aside(output: Path) -> bool:
    """Keep an earlier run, its model and tokeniser with it, so that old and new files never mix; if there is one."""
    earlier = [name for name in sorted(_names(output)) if name != "training" and not name.startswith(_BEFORE)]
    if not earlier and _names(output / "training") <= {"lock"}:
        return False
    aside, files = dated(output / _BEFORE), Files()
    files.rename(output / "training", aside)
    for name in earlier:
        files.rename(output / name, aside / name)
    files.fsync_folder(aside)
    files.fsync_folder(output)
    return True


def hold_lock(training: Path) -> AbstractContextManager[None]:
    """Hold ``training/lock`` while the block runs."""
    return alone(training / "lock", "another process is training into this folder", training.parent)


def refuse_other(output: Path) -> None:
    """Raise a RegardError if ``output`` cannot be a result of this command, or is not a folder."""
    if output.is_symlink() and not output.exists():
        raise RegardError("is a link to nothing; name a new folder", str(output))
    for above in output.absolute().parents:
        if (above / "training" / resolved.NAME).is_file():
            raise RegardError(
                f"lies in the folder of a run, {above}, which could not resume; choose another", str(output)
            )
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    if not any((output / name).is_file() for name in FIRST):
        raise RegardError(_TAKEN, str(output))


@contextmanager
def fresh_folder(output: Path) -> Iterator[Path]:
    """A temporary folder to fill, moved to ``output`` at the end; on any failure nothing is left.

    Where ``output`` holds the very same files already, or some of them because its maker was killed while they took
    their place, it is left or made whole: the same command may be run again whenever it was killed.

    Raises:
        RegardError: ``output`` holds something else, or it cannot be written.
    """
    refuse_other(output)
    place = output.resolve()
    Files().sweep(place)
    try:
        with partial_path(place, lambda path: path.mkdir(parents=True)) as fresh:
            try:
                yield fresh
                _refuse_difference(fresh, output)
                _move(fresh, place)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        why = error.strerror or error
        raise RegardError(f"cannot be written ({why}); nothing was left there", str(output)) from None


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for temporary files, removed at the end; what killed processes left of theirs is removed too."""
    place = Path(tempfile.gettempdir()) / "regard"
    Files().sweep(place)
    with partial_path(place, lambda path: path.mkdir(mode=0o700)) as fresh:
        try:
            yield fresh
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def _refuse_difference(fresh: Path, output: Path) -> None:
    """Raise a RegardError for a file that is there and is not the same, or has no counterpart."""
    if not output.is_dir():
        return
    for path in output.rglob("*"):
        other = fresh / path.relative_to(output)
        same = path.is_file() and other.is_file() and filecmp.cmp(path, other, shallow=False)
        if not (same or (path.is_dir() and other.is_dir())):
            raise RegardError(_TAKEN, str(output))


def _move(fresh: Path, place: Path) -> None:
    """Move the files into place; an existing folder is kept, for it may be a process's working directory."""
    if not place.exists():
        os.replace(fresh, place)
        return
    for path in sorted(fresh.iterdir(), key=lambda path: (path.name not in FIRST, path.name in LAST, path.name)):
        if not (place / path.name).exists():
            os.replace(path, place / path.name)
