"""Measures what a run costs here: seconds of its first steps, of a validation and of a save; memory of a batch."""

from __future__ import annotations

import contextlib
import gc
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from regard.config import Model, Recipe
from regard.data.batches.batch import Batch, Capacity, Position, make_pair_batch
from regard.models import build, store
from regard.models.inputs import pairs
from regard.nn import ops
from regard.nn.loss import SmoothedCrossEntropy
from regard.system.processor import trim_memory
from regard.training.budget import Costs
from regard.training.checkpoints import checkpoint
from regard.training.checkpoints.files import Files
from regard.training.objective import BatchSource, Objective
from regard.training.optim import FlatOptimiser, schedule
from regard.training.progress import divergence_error
from regard.training.trainer import Hooks
from regard.training.update import MeasuredStep, MeasuredSteps, Updates, make, read_steps
from regard.training.world import ALONE, World

Way = TypeVar("Way")
Choice = TypeVar("Choice")
"""A way to make a step, such as a path of products; and what is chosen by the seconds of each."""
MOST = 30
"""Steps that are timed, unless the time for it is used up before."""
_FEWEST = 2
_COLD = 5
"""Of these the first are not counted, of few the first half: caches fill and kernels are chosen."""
_STEPS, _LOSS, _TEXT = 0.5, 0.7, 0.9
"""Shares of the time after which steps, validation and generated text end, the last two at a part."""
_TIMES = 2.0
"""Times a validation of the loss that text takes, where nothing is known of it."""
_OPEN = 10**9
"""Steps, while it is not known how many: the schedule is still in its warm-up, or where it has no end."""
_PLACE = "measured"
"""The folder of the discarded save, below ``training/``."""
_ROUNDS, _TURNS, _SECONDS = 7, 2, 6.0
"""Most rounds in which ways of a step are timed, steps of each way in a round, and seconds after which no round begins
but the second."""
TIE, SLIGHT = 0.05, 0.25
"""Two ways are as fast within the first share; within the second where little depends on it."""
_TIMED, _TIMED_WORK = (256, 512), 1.5e9
"""Target tokens of a step by which paths are timed, at least and at most; and most of them times the parameters."""
_TYPICAL = 16
"""Tokens of a random sentence."""
_COLLECTIONS = 5
"""Times that garbage is collected, at most: some is seen only once other is freed."""
_SHARE = 0.8
"""Of the free memory a batch may take; the rest is for what other processes and longer sentences need."""


def measure(
    objective: Objective,
    feed: BatchSource,
    recipe: Recipe,
    folder: Path,
    hooks: Hooks,
    limit: float,
    most: int = MOST,
    world: World = ALONE,
) -> tuple[Costs, MeasuredSteps]:
    """Time the first steps, a validation and a save; the steps train the model and are returned.

    Args:
        objective: a separate task with a fresh model.
        feed: batches from any position on.
        recipe: of the run; its steps may be open still.
        folder: the private ``training/`` folder of the run.
        hooks: clock and files.
        limit: time limit in seconds; a step in progress may exceed it.
        most: steps.
        world: the processes that make the steps together; the first times the rest alone.
    """
    _sweep(folder, hooks.files)
    began = hooks.clock()

    def is_over(share: float) -> bool:
        return hooks.clock() - began >= share * limit

    section, updates = recipe.training, _updates(objective, recipe, world)
    steps, made = read_steps(feed, Position(), world, section.accumulate), list[MeasuredStep]()
    while world.lead(lambda: len(made) < _FEWEST or (len(made) < most and not is_over(_STEPS))):
        started = hooks.clock()
        made.append(make(updates, len(made) + 1, next(steps), started, hooks.clock))
        hooks.reporter.on_measure(len(made) / most)
    if not updates.optimiser.finite():
        raise divergence_error("the weights are not finite", len(made))
    kept = MeasuredSteps(made, updates.optimiser)
    if not world.leads:
        return Costs(0.0, 0.0, 0.0, 0.0, 0.0), kept
    text = loss = _trial_seconds(objective, False, is_over, hooks.clock)
    if section.select != "loss" or section.minutes is not None:  # the final scores may need it
        text += _trial_seconds(objective, True, is_over, hooks.clock, _TIMES * loss)
    saving = hooks.clock()
    contents = {"weights.safetensors": store.chunks(kept.weights), "optimiser.safetensors": store.chunks(kept.moments)}
    try:
        checkpoint.write_folder(folder / _PLACE, contents, hooks.files)
    finally:
        _sweep(folder, hooks.files)
    save = hooks.clock() - saving
    seconds = [step.seconds for step in made]
    counted = seconds[min(_COLD, len(made) // 2) :]
    return Costs(sum(counted) / len(counted), loss, text, save, hooks.clock() - began), kept


def _updates(objective: Objective, recipe: Recipe, world: World = ALONE) -> Updates:
    """What makes the first updates of a model, which is then in training mode."""
    section = recipe.training.model_copy(update={"steps": recipe.training.steps or _OPEN})
    optimiser = FlatOptimiser(objective.model, section, world)
    objective.model.train()
    return Updates(objective, optimiser, recipe, schedule(section, recipe.model.d_model))


def timed_tokens(parameters: int) -> int:
    """Target tokens of a step by which the paths of a model are timed: fewer where a step would take a second."""
    least, most = _TIMED
    return int(min(most, max(least, _TIMED_WORK / max(1, parameters))))


def time_ways(
    objective: Objective,
    ways: Mapping[Way, Callable[[], object]],
    batch: Batch,
    recipe: Recipe,
    choose: Callable[[Mapping[Way, float]], Choice],
    hooks: Hooks,
    clock: Callable[[], float],
) -> tuple[dict[Way, float], Choice | None]:
    """Seconds of a whole step made in each of several ways, and the way to take; ``None``: no two rounds agreed.

    The ways take turns on one batch. In a round each makes :data:`_TURNS` steps, of which the faster counts; once two
    rounds in a row lead to the same choice, it is taken. The first steps are not counted: caches fill and kernels are
    chosen. Told are the least seconds of all rounds.

    Args:
        objective: a separate task; its weights change.
        ways: what sets each of them.
        batch: what every step reads.
        recipe: of the run.
        choose: what is to be taken, by the seconds of a round.
        hooks: the reporter.
        clock: seconds; of the processor where a step has one thread, so that other programs do not count.
    """
    updates = _updates(objective, recipe)

    def seconds_in(way: Way) -> float:
        ways[way]()
        began = clock()
        updates.make(1, [batch])
        return clock() - began

    for way in ways:
        seconds_in(way)
    least = dict.fromkeys(ways, math.inf)
    chosen: list[Choice] = []
    began = hooks.clock()
    for number in range(_ROUNDS):
        turns = [{way: seconds_in(way) for way in ways} for _ in range(_TURNS)]
        found = {way: min(turn[way] for turn in turns) for way in ways}
        least = {way: min(least[way], found[way]) for way in ways}
        chosen.append(choose(found))
        hooks.reporter.on_measure((number + 1) / _ROUNDS)
        if chosen[-1:] == chosen[-2:-1]:
            return least, chosen[-1]
        if number and hooks.clock() - began > _SECONDS:
            break
    return least, None


@cache
def step_seconds(section: Model, pieces: int, tokens: int) -> float:
    """About the seconds of a training step of an encoder-decoder on this processor, by one thread: the faster of two.

    It reads random sentences of :data:`_TYPICAL` tokens; products are those that the processor's kind suggests.

    Args:
        section: the model.
        pieces: of the vocabulary.
        tokens: on each side.
    """
    model = build.encoder_decoder(section, pieces, pieces)
    ops.use(model, ops.choose("auto"))
    lengths = np.full(tokens // _TYPICAL, _TYPICAL, dtype=np.int64)
    ids = np.random.default_rng(1).integers(2, pieces, int(lengths.sum()))
    capacity = Capacity(len(ids), len(ids), len(lengths))
    batch = make_pair_batch((ids, lengths), (ids, lengths), pieces, capacity, np.arange(len(lengths)))
    inputs, criterion = pairs(batch, "cpu"), SmoothedCrossEntropy(0.1)
    ops.use(criterion, ops.choose("auto"))
    threads, found = torch.get_num_threads(), list[float]()
    torch.set_num_threads(1)
    try:
        for _ in range(3):
            began = time.process_time()
            criterion(model(inputs), model.output.weight, inputs.labels_T, inputs.weight_T, pieces)[0].backward()
            found.append(time.process_time() - began)
    finally:
        torch.set_num_threads(threads)
    return min(found[1:])


def fastest(seconds: Mapping[Way, float], among: Sequence[Way], tie: float = TIE) -> Way:
    """The fastest of some ways; of those that are as fast within a share, the first."""
    best = min(seconds[way] for way in among)
    return next(way for way in among if seconds[way] <= (1 + tie) * best)


class _Enough(Exception):
    """A trial has gone on long enough to know how long all of it takes, or there is no time to begin it."""


def _trial_seconds(
    objective: Objective,
    generate: bool,
    spent: Callable[[float], bool],
    clock: Callable[[], float],
    otherwise: float = 0.0,
) -> float:
    """How long a part of a validation takes, which is ended when its time is used up, after at least two pieces.

    Args:
        objective: whose validation.
        generate: the part in which text is generated; else that of the loss.
        spent: whether a share of the whole time is used up.
        clock: the time in seconds.
        otherwise: the seconds where there is no time at all; none where there is nothing to do.
    """
    points: list[tuple[float, float]] = []

    def record(share: float) -> None:
        if not share:
            if spent(1.0):
                raise _Enough
            return
        points.append((clock(), share))
        written = generate and share >= 1  # longer output of an untrained model does not count
        if written or (len(points) > 1 and spent(_TEXT if generate else _LOSS)):
            raise _Enough

    began = clock()
    objective.model.eval()
    try:
        with torch.no_grad():
            objective.trial(generate, record)
    except _Enough:
        if not points:
            return otherwise
        (first, share), (last, done) = points[0], points[-1]
        if done == share:
            return (last - began) / done
        return first - began + (1 - share) * (last - first) / (done - share)  # the first share includes start-up
    finally:
        objective.model.train()
    return clock() - began if points else 0.0


def _sweep(folder: Path, files: Files) -> None:
    """Remove the discarded save, whole or in parts: a start that was killed while measuring leaves one."""
    for remains in sorted(folder.glob(f"{_PLACE}*")):
        files.remove(remains)


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
    known = _container(Path("/sys/fs/cgroup"))
    with contextlib.suppress(OSError, ValueError):
        known.append(_bytes("MemAvailable", "/proc/meminfo"))
    return min(known) if known else None


def peak_memory(work: Callable[[], object], device: torch.device) -> int | None:
    """Peak bytes allocated by ``work``; ``None`` if they cannot be measured."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    for _ in range(_COLLECTIONS):  # garbage freed meanwhile would hide what the work needs
        if not gc.collect():
            break
    trim_memory()  # so would free memory that it takes again
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again from now
        before = _bytes("VmRSS", "/proc/self/status")
    except (OSError, ValueError):
        return None
    work()
    return max(0, _bytes("VmHWM", "/proc/self/status") - before)


def _bytes(name: str, path: str) -> int:
    """A number of kilobytes that the system tells in a file, in bytes."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path(path).read_text(), re.MULTILINE)
    if not found:
        raise ValueError(name)
    return int(found[1]) * 1024


def _container(root: Path) -> list[int]:
    """Free bytes in the control groups, of either version; droppable pages count as free."""
    found = []
    for group, limit, used, droppable in (
        (root, "memory.max", "memory.current", "inactive_file"),
        (root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        with contextlib.suppress(OSError, ValueError):
            most, taken = (int((group / name).read_text()) for name in (limit, used))  # "max" means no limit
            cached = re.search(rf"^{droppable} (\d+)", (group / "memory.stat").read_text(), re.MULTILINE)
            found.append(most - taken + (int(cached[1]) if cached else 0))
    return found
