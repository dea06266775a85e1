"""Saves checkpoints, snapshots and the model folder; a full disk costs a save, not the run."""

from __future__ import annotations

from regard.models import store
from regard.system import disk
from regard.system.errors import RegardError
from regard.training.checkpoints import checkpoint
from regard.training.objective import Validation
from regard.training.progress import Best
from regard.training.run import Run

_SNAPSHOTS = (1, 2, 5, 10, 20, 50, 100)
"""Per cent of the steps after which weights are kept for good, to watch a head learn."""
_FAILED_SAVES = 3
"""Consecutive failed saves before training fails."""


def save(run: Run, last: bool = False) -> None:
    """Write a checkpoint; a full disk costs this one, not the run, unless it was the ``last`` chance."""
    optimiser, progress = run.optimiser, run.progress
    progress.seconds, run.started = run.seconds, run.hooks.clock()
    contents = {
        "weights.safetensors": store.chunks(optimiser.weights_by_name()),
        "optimiser.safetensors": store.chunks(optimiser.moments_by_name()),
        "state.json": [progress.dump(run.resolved)],
    }
    if optimiser.averages is not None:
        contents["ema.safetensors"] = store.chunks(optimiser.averages_by_name())
    try:
        run.log.sync()
        path = run.checkpoints.save(progress.step, contents, progress.best_step, progress.finished)
    except OSError as error:
        count_failed_save(run, error, last=last or progress.finished)
        return
    run.failed_saves = 0
    if run.board:
        run.board.flush()
    run.log.write("save", progress.step, path=path.name)
    run.hooks.reporter.on_save(path)


def save_best_model(run: Run, best: Best, validation: Validation) -> bool:
    """Write the model folder before the checkpoint that marks it as best; after a kill in between it is rewritten."""
    try:
        run.hooks.save_model(run.optimiser.weights_by_name(), best, validation)
    except OSError as error:
        count_failed_save(run, error, last=run.progress.step == run.section.steps)
        return False
    return True


def snapshot_steps(steps: int) -> set[int]:
    """The steps after which snapshots are kept permanently."""
    return {max(1, round(steps * percent / 100)) for percent in _SNAPSHOTS}


def keep_snapshot(run: Run) -> None:
    """Keep the weights for good at 1, 2, 5, 10, 20, 50 and 100 % of the steps."""
    step, steps = run.progress.step, run.section.steps
    place = run.folder / "snapshots" / checkpoint.name(step)
    if steps is None or step not in snapshot_steps(steps) or place.exists():
        return
    with run.optimiser.averaged_weights():
        contents = {"weights.safetensors": store.chunks(run.optimiser.weights_by_name())}
        try:
            checkpoint.write_folder(place, contents, run.hooks.files)
        except OSError as error:
            count_failed_save(run, error)


def count_failed_save(run: Run, error: OSError, last: bool = False) -> None:
    """Count a failed save; training continues with older ones, up to a limit."""
    run.failed_saves += 1
    run.event(f"saving at step {run.progress.step} failed ({disk.fault_of(error)}); earlier saves are intact")
    if last or run.failed_saves >= _FAILED_SAVES:
        raise RegardError(
            f"saving failed ({disk.fault_of(error)}); make room and run the same command again", str(run.folder)
        ) from error
