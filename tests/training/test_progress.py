"""Counters, spikes, and what is best."""

import json
import statistics
from pathlib import Path

import numpy as np
import pytest

from regard.config import Training
from regard.data.batches.batch import Position
from regard.system.errors import Diverged
from regard.training.checkpoints.checkpoint import name, write_folder
from regard.training.objective import Validation
from regard.training.progress import Best, Progress, is_scoring_step, load_progress
from tests.training.toy import Fast


def test_state_goes_there_and_back_as_three_integers_of_data_and_nothing_of_a_generator():
    progress = Progress(7, Position(1, 2, 3), 1.25, Best(5, "bleu", 31.5), 1, 2, 1, [6, 7], [3.5, 0.1 + 0.2], 1, True)
    assert Progress.of(json.loads(progress.dump()), Path()) == progress
    values = json.loads(Progress().dump())
    assert Progress.of(values, Path()) == Progress()
    assert values["position"] == {"epoch": 0, "block": 0, "batch": 0}
    assert values["format"] == 1


def test_the_newest_undamaged_checkpoint_says_how_far_a_run_has_come(tmp_path):
    assert load_progress(tmp_path) is None
    (tmp_path / "checkpoints").mkdir()
    for step in (9, 10):
        write_folder(tmp_path / "checkpoints" / name(step), {"state.json": [Progress(step).dump()]}, Fast())
    assert load_progress(tmp_path) == Progress(10)
    (tmp_path / "checkpoints" / name(10) / "state.json").write_bytes(b"")
    assert load_progress(tmp_path) == Progress(9)


def test_too_many_skips_in_a_row():
    progress = Progress()
    for step in range(1, 4):
        progress.skip(step, Training(max_skipped=4))
    progress.detect_spike(1.0)
    assert progress.in_a_row == 0
    for step in range(5, 8):
        progress.skip(step, Training(max_skipped=4))
    with pytest.raises(Diverged) as caught:
        progress.skip(8, Training(max_skipped=4))
    assert caught.value.exit_code == 76
    assert progress.skipped == 7


def test_more_than_one_per_cent_of_the_last_thousand():
    progress = Progress()
    for step in range(0, 1000, 100):
        progress.skip(step, Training())
        progress.detect_spike(1.0)
    progress.skip(1001, Training())  # the first fell out of the window
    progress.detect_spike(1.0)
    with pytest.raises(Diverged):
        progress.skip(1002, Training())


def test_a_spike_is_three_losses_above_median_and_six_deviations():
    draws = np.random.default_rng(3).normal(2.0, 0.1, 300).tolist()
    losses = draws[:250] + [3.5] * 5 + draws[250:] + [3.5, 3.5, 2.0]
    progress, found, seen = Progress(), [], []
    above = 0
    for number, loss in enumerate(losses):
        window = seen[-200:]
        if len(window) >= 50:
            middle = statistics.median(window)
            deviation = statistics.median([abs(x - middle) for x in window])
            above = above + 1 if loss > middle + 6 * deviation else 0
        if progress.detect_spike(loss):
            found.append(number)
        assert progress.above == above
        seen.append(loss)
    assert found == [252]  # the third of the first five; two alone are no spike
    assert progress.losses == losses[-200:]


def test_best_by_loss_then_by_bleu():
    section, progress = Training(steps=100), Progress()
    story = [(10, 3.0, None), (20, 2.0, None), (50, 2.5, None), (60, 4.0, 10.0), (70, 1.0, 9.0), (80, 5.0, 12.0)]
    best = []
    for step, loss, bleu in story:
        progress.step = step
        now = progress.judge(Validation(loss, {} if bleu is None else {"bleu": bleu}), section)
        progress.count(now)
        best.append(now is not None)
    assert best == [True, True, False, True, False, True]
    assert progress.best == Best(80, "bleu", 12.0)


@pytest.mark.parametrize(("select", "value"), [("loss", 3.0), ("bleu", 20.0), ("chrf", 40.0)])
def test_best_by_what_is_asked(select, value):
    judged = Progress(step=1).judge(Validation(3.0, {"bleu": 20.0, "chrf": 40.0}), Training(steps=100, select=select))
    assert judged == Best(1, select, value)


def test_the_last_is_kept_however_it_went():
    section, progress, kept = Training(steps=100, select="last"), Progress(), []
    for progress.step, loss, bleu in ((20, 3.0, None), (40, 4.0, None), (60, 5.0, 20.0), (80, 6.0, 10.0)):
        progress.count(progress.judge(Validation(loss, {} if bleu is None else {"bleu": bleu}), section))
        kept.append(progress.best)
        assert is_scoring_step(progress.step, section) == (progress.step > 50)
    assert kept == [Best(20, "loss", 3.0), Best(40, "loss", 4.0), Best(60, "bleu", 20.0), Best(80, "bleu", 10.0)]
    for loss in (float("nan"), float("inf")):  # what is no number is never best
        assert (
            progress.judge(Validation(loss), section) is progress.judge(Validation(loss), Training(steps=100)) is None
        )
    progress.count(None)
    assert progress.worse == 1
