"""Steps made while measuring are the run's own: kept or, after a kill, made again, it is one run, bit by bit."""

import random

import pytest

from regard.system.errors import Stopped
from regard.training import budget, trainer
from regard.training.update import MeasuredSteps
from tests.refusals import refused
from tests.resume.small_runs import SEEN, SETTINGS, results, ticking_train
from tests.training.toy import lines

pytestmark = pytest.mark.usefixtures("counted")
MORE = ["training.schedule=noam", "training.warmup=1", "training.validate_every=5", "training.save_every=4"]


def train(corpus, output, *stops, fatal=None):
    """Train; in its minute two steps are measured. The steps that are kept, if any are."""
    taken = []

    def noted(kept, optimiser, give=MeasuredSteps.give):
        taken.append(len(kept.made))
        give(kept, optimiser)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MeasuredSteps, "give", noted)
        patch.setattr(trainer, "_SNAPSHOTS", (50, 100))  # the first ones of so short a run would be due at once
        patch.setattr(budget, "_AS_BEFORE", 1e9)  # a clock that was killed decides otherwise midway
        ticking_train(corpus, output, *stops, fatal=fatal, minutes=1.0, settings=[*SETTINGS, *MORE])
    return taken


@pytest.fixture(scope="module")
def whole(corpus, counted, tmp_path_factory):
    """A run that kept its first steps, and its file operations."""
    output = tmp_path_factory.mktemp("whole") / "model"
    assert train(corpus, output) == [2]
    return output, list(SEEN)


def same(output, whole):
    assert results(output) == results(whole)
    assert lines(output / "training" / "metrics.jsonl") == lines(whole / "training" / "metrics.jsonl")


def test_every_step_is_in_the_log_once(whole):
    made = [line["step"] for line in lines(whole[0] / "training" / "metrics.jsonl") if line["kind"] == "step"]
    assert made == list(range(1, len(made) + 1))
    assert len(made) > 10


def test_stopped_behind_them_it_goes_on(corpus, whole, tmp_path):
    with refused(Stopped, None, "2"):
        train(corpus, tmp_path / "model", 2)
    assert train(corpus, tmp_path / "model") == []
    same(tmp_path / "model", whole[0])


def test_killed_before_they_are_saved_they_are_made_again(corpus, whole, tmp_path):
    output, operations = whole
    fixed = operations.index("rename .resolved.toml")
    first = next(n for n, operation in enumerate(operations) if operation == "rename step-000004")
    for number in (fixed + 2, first + 1):
        place = tmp_path / f"{number}"
        train(corpus, place, fatal=number)
        assert not list((place / "training").glob("checkpoints/step-??????"))
        assert train(corpus, place) == []
        same(place, output)


@pytest.mark.long(minutes=0.5)
def test_killed_anywhere(corpus, whole, tmp_path):
    output, operations = whole
    for number in random.Random(7).sample(range(1, len(operations) + 1), 12):
        place = tmp_path / f"{number}"
        train(corpus, place, fatal=number)
        train(corpus, place)
        same(place, output)
