"""Planned anew midway, stopped or killed before it, at it and behind it: the bits of a run that was not."""

import random
import shutil
from dataclasses import dataclass

import pytest

from regard.system.errors import Stopped
from regard.training.budget import Costs
from regard.training.checkpoints import resolved
from tests.refusals import refused
from tests.training.timed import Clock, Minutes
from tests.training.toy import Count, Killer, StopAt, assert_same, in_child, recipe

COSTS = Costs(step=2.0, loss=2.0, text=14.0, save=0.25, spent=1.0)
STALLED = 1000.0
"""A clock so slow that a review by it would end the run at once."""


def begun(folder, schedule="cosine", costs=COSTS, name="model"):
    settings = {"minutes": 1.4, "validate_every": 5, "save_every": 3, "keep": 9, "ema": 0.9, "schedule": schedule}
    play = Minutes(folder / name, recipe(**settings), step=COSTS.step)
    play.begun(20, costs)
    return play


def same(play, never):
    assert_same(play, never.ended())
    assert play.review == never.review


@dataclass
class Never:
    """A run that was never stopped, the speed of its clock, and its file operations."""

    play: Minutes
    slower: float
    schedule: str
    operations: list[tuple[str, str]]


@pytest.fixture(scope="module", params=[(0.7, "cosine"), (1.2, "linear"), (0.7, "noam")], ids=str)
def never(tmp_path_factory, request):
    slower, schedule = request.param
    play, files = begun(tmp_path_factory.mktemp("never"), schedule), Count()
    play.go(Clock(slower), files)
    assert play.review.at == 10
    assert play.review.steps > 20 if slower < 1 else 13 < play.review.steps < 20
    return Never(play, slower, schedule, files.operations)


def gone_on(play, never):
    """Once it is decided no clock decides anything; before, one does that goes on as it went."""
    play.go(Clock(STALLED if play.review else never.slower))
    same(play, never.play)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("stop", range(8, 13))
def test_stopped_around_the_review(tmp_path, never, stop):
    play = begun(tmp_path, never.schedule)
    with pytest.raises(Stopped):
        play.go(Clock(never.slower), stop=StopAt(stop))
    assert (play.review is None) == (stop < 10)
    gone_on(play, never)


def older(folder, never):
    """A run that was stopped behind the review, and whose newest checkpoint lies before it."""
    play = begun(folder, never.schedule)
    with pytest.raises(Stopped):
        play.go(Clock(never.slower), stop=StopAt(13))
    for path in (play.output / "training" / "checkpoints").glob("step-*"):
        if path.name >= "step-000010":
            shutil.rmtree(path)
    return play


def test_replayed_from_a_checkpoint_before_it(tmp_path, never):
    """The validation at the very step of the review is still one of the first plan."""
    play = older(tmp_path, never)
    gone_on(play, never)
    assert play.reporter.starts == [(9, never.play.review.steps)]
    assert "bleu" not in next(line for line in play.ended().lines if line["kind"] == "valid" and line["step"] == 10)


def killed(folder, never, number):
    play = begun(folder, never.schedule, name=f"killed-{number}")
    assert in_child(lambda: play.go(Clock(never.slower), Killer(number))) == 137
    decided = play.review
    gone_on(play, never)
    return decided


def test_killed_while_the_review_is_written(tmp_path, never):
    """Up to the rename nothing is decided; behind it all is."""
    first = next(n for n, (_, name) in enumerate(never.operations, 1) if resolved.NAME in name)
    seen = [operation for operation, _ in never.operations[first - 1 : first + 4]]
    assert seen == ["create", "write", "fsync", "rename", "fsync folder"]
    decided = [killed(tmp_path, never, number) is not None for number in range(first, first + 6)]
    assert decided == [False] * 4 + [True] * 2


@pytest.mark.one_of(3)
@pytest.mark.parametrize("share", range(4))
def test_killed_anywhere(tmp_path, never, share):
    quarter = len(never.operations) // 4
    killed(tmp_path, never, random.Random(share).randrange(share * quarter, (share + 1) * quarter) + 1)


def test_finished_it_knows_where(never):
    summary = never.play.go(Clock(STALLED))
    assert summary.step == never.play.review.steps
    assert never.play.corpus.drawn == []
    assert never.play.reporter.starts == [(summary.step, summary.step)]


def test_stopped_it_says_the_steps_there_will_be(tmp_path, never):
    play = older(tmp_path, never)
    with refused(Stopped, None, f"9 of {never.play.review.steps}"):
        play.go(Clock(STALLED), stop=StopAt(9))


def test_what_began_before_there_were_reviews_goes_on_as_planned(tmp_path):
    """Neither then nor now is known what it was planned by."""
    old, given = begun(tmp_path, costs=None, name="old"), begun(tmp_path, costs=None, name="given")
    with pytest.raises(Stopped):
        old.go(Clock(9.0), stop=StopAt(9))
    old.go(Clock(0.1))
    given.go(Clock())
    assert old.review is None
    assert old.ended().lines[-1]["step"] == 20
    same(old, given)
