"""Planned anew midway: the run ends near its minutes, everybody is told, and nothing else is different."""

import pytest

from regard.training.budget import Costs, Replanning, midway
from regard.training.checkpoints import manifest, resolved
from tests.training.timed import Clock, Minutes, SlowDisk
from tests.training.toy import Full, Play, StopAt, assert_same, log, recipe

COSTS = Costs(step=0.5, loss=2.0, text=14.0, save=0.25, spent=1.0)


def minutes(folder, length, **training):
    return Minutes(folder / "model", recipe(minutes=length, **{"steps": None, "validate_every": 20, **training}))


@pytest.mark.one_of(15)
@pytest.mark.parametrize("select", ["auto", "loss", "bleu"])
@pytest.mark.parametrize("slower", [0.4, 0.7, 1.0, 1.6])
def test_the_end_falls_near_the_minutes(tmp_path, slower, select):
    """Counted from the first measured step to the last save, on a machine that is faster or slower than measured."""
    play, clock = minutes(tmp_path, 5.0, select=select), Clock()
    play.step = 2.0
    play.planned(clock)
    first = play.recipe.training.steps
    clock.slower = slower
    summary = play.go(clock, SlowDisk(clock))
    assert summary.step == play.review.steps
    assert (summary.step > first) == (slower < 1.2)
    dearest = slower * 14.0  # one more validation may not have fitted
    assert 0.92 * 300 - dearest < clock.now < 300


def test_a_machine_that_slows_down_by_a_tenth_behind_the_review_is_still_in_time(tmp_path):
    class Slowing(StopAt):
        def __call__(self):  # never asks to stop
            if super().__call__():
                clock.slower *= 1.1
            return False

    play, clock = minutes(tmp_path, 5.0, select="loss"), Clock()
    play.step = 2.0
    play.planned(clock)
    play.go(clock, SlowDisk(clock), Slowing(midway(play.recipe.training.steps)))
    assert clock.slower == 1.1
    assert 0.97 * 300 < clock.now < 300


def test_the_rate_ends_where_the_run_does(tmp_path):
    play = minutes(tmp_path, 1.0, schedule="linear")
    play.begun(40, COSTS)
    play.go(Clock(0.5))
    rates = {line["step"]: line["rate"] for line in log(play, "step")}
    end = play.review.steps
    assert end > 60
    assert rates[20] == pytest.approx(0.02 * (1 - 16 / 36))
    assert rates[30] == pytest.approx(rates[20] * (end - 30) / (end - 20))
    assert rates[end] == 0.0


def as_given(play, folder, steps):
    """The same run with its steps given."""
    given = Play(folder / "given", recipe(**{**play.recipe.training.model_dump(), "minutes": None, "steps": steps}))
    given.fit()
    return given.ended()


def test_a_machine_as_fast_as_planned_for_changes_nothing(tmp_path):
    play = minutes(tmp_path, 0.42, select="loss")
    play.begun(40, COSTS)
    play.go(Clock())
    assert play.review == Replanning(20, 40, 40)
    assert (log(play, "planned"), log(play, "event"), play.told) == ([], [], [])
    assert_same(play, as_given(play, tmp_path, 40))


def test_where_steps_are_given_nothing_is_planned_anew(tmp_path):
    play = minutes(tmp_path, 1.0)
    play.begun(40, None)
    play.go(Clock(9.0))
    assert play.review is None
    assert not (play.output / "training" / resolved.NAME).exists()
    assert_same(play, as_given(play, tmp_path, 40))


def test_where_it_cannot_be_written_down_the_first_plan_stands(tmp_path):
    play = minutes(tmp_path, 1.0)
    play.begun(40, COSTS)
    play.go(Clock(0.5), Full(lambda path: resolved.NAME in path))
    assert play.review is None
    place = play.output / "training" / resolved.NAME
    assert [line["text"] for line in log(play, "event")] == [
        f"saving at step 20 failed ({place}: No space left on device); earlier saves are intact"
    ]
    assert_same(play, as_given(play, tmp_path, 40))
    manifest.verify(play.output, extra=True)
