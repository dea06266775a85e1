"""The toy, stopped, killed before any file operation or while writing, or damaged: the bits of a run that was not.

Weights, moments, averages, metrics, sample order and the best model are compared. A damaged checkpoint costs time: the
older one is used. So is a run that is planned anew midway, before it, at it and behind it.
"""

import random
import shutil
from dataclasses import dataclass
from functools import cache

import pytest

from regard.system.errors import RegardError, Stopped
from regard.training.budget import Costs
from regard.training.checkpoints import resolved
from tests.refusals import refused
from tests.training.timed import Clock, Minutes
from tests.training.toy import Count, Killer, Play, StopAt, assert_same, flip, in_child, recipe

SETTINGS = [
    {"accumulate": accumulate, "ema": ema, "schedule": schedule, "select": select, **optimiser}
    for accumulate in (1, 3)
    for ema in (0.0, 0.9)
    for schedule in ("noam", "inverse_square_root", "cosine", "linear")
    for optimiser, select in (({}, "auto"), ({"optimiser": "adamw", "weight_decay": 0.1}, "loss"))
]


@cache
def never_stopped(folder, settings):
    play = Play(folder / f"never-{len(settings)}-{hash(settings)}", recipe(**dict(settings)))
    play.fit()
    return play.ended(), play.corpus.drawn


def stopped(folder, settings, *stops):
    """A run of this recipe, what it drew, and how it ends if it is never stopped; each stop is as of a new process."""
    play, drawn = Play(folder / "stopped", recipe(**settings)), []
    for stop in stops:
        with pytest.raises(Stopped) as caught:
            play.fit(stop=StopAt(stop))
        assert caught.value.exit_code == 75
        drawn += play.corpus.drawn
    return play, drawn, never_stopped(folder.parent, tuple(sorted(settings.items())))


def stopped_and_resumed(folder, settings, *stops):
    play, drawn, (never, wanted) = stopped(folder, settings, *stops)
    play.fit()
    assert_same(play, never)
    assert drawn + play.corpus.drawn == wanted


@pytest.mark.one_of(39)
@pytest.mark.parametrize("stop", range(40))
def test_stopped_at_any_step(tmp_path_factory, stop):
    """Epochs end at steps 6, 12, 18 …; validations at 10, 20 …"""
    stopped_and_resumed(tmp_path_factory.mktemp("golden"), {"validate_every": 10}, stop)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("settings", random.Random(4).sample(SETTINGS, 8), ids=str)
def test_stopped_often(tmp_path, settings):
    stopped_and_resumed(tmp_path, settings, 1, 4, 6, 12, 17, 25, 39)


@pytest.mark.long(0.1)
@pytest.mark.parametrize("stop", range(1, 40, 3))
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_setting(tmp_path, settings, stop):
    stopped_and_resumed(tmp_path, settings, stop)


def test_dropout_and_data_matter(tmp_path):
    """The comparison can fail: another seed gives other weights."""
    one, other = Play(tmp_path / "one"), Play(tmp_path / "other")
    other.recipe = other.recipe.model_copy(update={"seed": 10})
    one.fit()
    other.fit()
    assert one.ended().weights != other.ended().weights


@pytest.mark.one_of(5)
@pytest.mark.parametrize("seed", range(5))
def test_a_flipped_bit_in_the_newest(tmp_path_factory, seed):
    play, _, (never, _) = stopped(tmp_path_factory.mktemp("flipped"), {"steps": 20, "ema": 0.9}, 13)
    checkpoints = play.output / "training" / "checkpoints"
    flip(random.Random(seed).choice(sorted((checkpoints / "step-000013").iterdir())), seed)
    play.fit()
    assert any("step-000013 is damaged" in event for event in play.reporter.events)
    assert_same(play, never)


def test_two_damaged_of_three(tmp_path_factory):
    play, _, (never, _) = stopped(tmp_path_factory.mktemp("damaged"), {"steps": 20, "ema": 0.9}, 13)
    checkpoints = play.output / "training" / "checkpoints"
    (checkpoints / "step-000013" / "weights.safetensors").write_bytes(b"")
    (checkpoints / "step-000010" / "state.json").unlink()
    play.fit()
    assert play.ended().weights == never.weights
    assert len(list(checkpoints.glob("*.corrupt-*"))) == 2


KILLED = {"steps": 8, "validate_every": 4, "save_every": 2, "keep": 2, "ema": 0.9, "accumulate": 2}


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory):
    """How the run ends that is never killed, all its file operations, and the numbers of those of one checkpoint.

    These are from its first file to the removal of a surplus one.
    """
    play, files = Play(tmp_path_factory.mktemp("unkilled") / "model", recipe(**KILLED)), Count()
    play.fit(files)
    operations = files.operations
    first = next(i for i, one in enumerate(operations) if " ".join(one).startswith("mkdir step-000006.partial"))
    last = next(i for i, (what, _) in enumerate(operations[first:], first) if what == "rmdir")
    return play.ended(), operations, range(first + 1, last + 2)


def killed(tmp_path, unkilled, number, middle=False):
    play = Play(tmp_path / f"model-{number}-{middle}", recipe(**KILLED))
    assert in_child(lambda: play.fit(Killer(number, middle))) == 137
    resumed(play, unkilled)
    shutil.rmtree(play.output)


def resumed(play, unkilled):
    play.fit()
    assert_same(play, unkilled[0])
    checkpoints = play.output / "training" / "checkpoints"
    assert [p.name for p in checkpoints.iterdir() if ".partial" in p.name or ".removing" in p.name] == []
    snapshots = sorted(p.name for p in (play.output / "training" / "snapshots").iterdir())
    assert snapshots == ["step-000001", "step-000002", "step-000004"]


@pytest.mark.parametrize("share", range(12))
@pytest.mark.one_of(12, minutes=0.1)
def test_killed_before_every_operation_of_a_checkpoint(tmp_path, unkilled, share):
    _, operations, one_save = unkilled
    kinds = {"mkdir", "create", "write", "fsync", "rename", "fsync folder", "unlink", "rmdir"}
    assert {operations[number - 1][0] for number in one_save} == kinds
    assert len(one_save) >= 30
    for number in one_save[share::12]:
        killed(tmp_path, unkilled, number)


@pytest.mark.long(minutes=0.05)
def test_killed_in_mid_write_of_every_file_of_a_checkpoint_and_anywhere(tmp_path, unkilled):
    _, operations, one_save = unkilled
    writes = [number for number in one_save if operations[number - 1][0] == "write"]
    assert len(writes) >= 12
    for number in random.Random(2).sample(writes, 5):
        killed(tmp_path, unkilled, number, middle=True)
    for number in random.Random(6).sample(range(1, len(operations) + 1), 4):
        killed(tmp_path, unkilled, number)


@pytest.mark.long(0.5)
@pytest.mark.parametrize("middle", [False, True])
@pytest.mark.parametrize("share", range(8))
def test_killed_before_every_operation_and_in_every_write_of_the_run(tmp_path, unkilled, share, middle):
    for number in range(1 + share, len(unkilled[1]) + 1, 8):
        if not middle or unkilled[1][number - 1][0] == "write":
            killed(tmp_path, unkilled, number, middle)


@pytest.mark.long(minutes=0.04)
def test_killed_again_and_again(tmp_path, unkilled):
    """Each start is killed some operations later; the work still ends, as if nothing had happened."""
    play, generator, code, starts = Play(tmp_path / "model", recipe(**KILLED)), random.Random(8), 137, 0
    while code == 137:
        fatal = generator.randrange(40, 120)
        code = in_child(lambda fatal=fatal: play.fit(Killer(fatal)))
        starts += 1
        assert starts < 40
    assert code == 0
    assert starts >= 4
    resumed(play, unkilled)


def test_an_error_in_the_child_is_not_taken_for_a_kill():
    def fails():
        raise RegardError("no")

    assert in_child(fails) == 1


@pytest.mark.one_of(18, minutes=0.02)
@pytest.mark.parametrize("number", range(1, 17))
def test_killed_while_resuming_a_killed_run_leaves_nothing_half_made(tmp_path, unkilled, number):
    """The next start first cuts the log, which goes beyond its checkpoint; a kill there leaves half of a file."""
    play, fourth = Play(tmp_path / "model", recipe(**KILLED)), unkilled[2][3]
    assert in_child(lambda: play.fit(Killer(fourth))) == 137
    training = play.output / "training"
    assert any('"step": 6' in line for line in (training / "metrics.jsonl").read_text().splitlines())
    for fatal, middle in ((number, True), (fourth, False), (number, False)):  # only what writes has a middle
        assert in_child(lambda fatal=fatal, middle=middle: play.fit(Killer(fatal, middle))) in (0, 137)
    resumed(play, unkilled)
    assert [path.name for path in training.iterdir() if "partial" in path.name] == []
    tails = sorted(path.read_bytes() for path in training.glob("metrics.after-*.jsonl"))
    assert len(tails) == len(set(tails))


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


@pytest.mark.one_of(8)
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


@pytest.mark.one_of(3)
def test_replayed_from_a_checkpoint_before_it(tmp_path, never):
    """The validation at the very step of the review is still one of the first plan."""
    play = older(tmp_path, never)
    with refused(Stopped, None, f"9 of {never.play.review.steps}"):  # the steps there will be
        play.go(Clock(STALLED), stop=StopAt(9))
    gone_on(play, never)
    assert play.reporter.starts == [(9, never.play.review.steps)]
    assert "bleu" not in next(line for line in play.ended().lines if line["kind"] == "valid" and line["step"] == 10)


def killed_and_gone_on(folder, never, number):
    play = begun(folder, never.schedule, name=f"killed-{number}")
    assert in_child(lambda: play.go(Clock(never.slower), Killer(number))) == 137
    decided = play.review
    gone_on(play, never)
    return decided


@pytest.mark.one_of(3)
def test_killed_while_the_review_is_written(tmp_path, never):
    """Up to the rename nothing is decided; behind it all is."""
    first = next(n for n, (_, name) in enumerate(never.operations, 1) if resolved.NAME in name)
    seen = [operation for operation, _ in never.operations[first - 1 : first + 4]]
    assert seen == ["create", "write", "fsync", "rename", "fsync folder"]
    decided = [killed_and_gone_on(tmp_path, never, number) is not None for number in range(first, first + 6)]
    assert decided == [False] * 4 + [True] * 2


@pytest.mark.one_of(9)
@pytest.mark.parametrize("share", range(4))
def test_a_reviewed_run_killed_anywhere(tmp_path, never, share):
    quarter = len(never.operations) // 4
    killed_and_gone_on(tmp_path, never, random.Random(share).randrange(share * quarter, (share + 1) * quarter) + 1)


def test_finished_it_knows_where(never):
    summary = never.play.go(Clock(STALLED))
    assert summary.step == never.play.review.steps
    assert never.play.corpus.drawn == []
    assert never.play.reporter.starts == [(summary.step, summary.step)]


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
