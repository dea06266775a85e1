"""Stopped and resumed = never stopped, to the bit: weights, moments, averages, metrics, sample order, best model."""

import random
from functools import cache

import pytest

from regard.system.errors import Stopped
from tests.training.toy import Play, StopAt, assert_same, recipe

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


def stopped_and_resumed(folder, settings, stops):
    """Both runs of one recipe; every stop is a new process's worth of objects."""
    never, drawn = never_stopped(folder.parent, tuple(sorted(settings.items())))
    play, mine = Play(folder / "stopped", recipe(**settings)), []
    for stop in (*stops, None):
        if stop is None:
            play.fit()
        else:
            with pytest.raises(Stopped):
                play.fit(stop=StopAt(stop))
        mine += play.corpus.drawn
    assert_same(play, never)
    assert mine == drawn


@pytest.mark.one_of(3)
@pytest.mark.parametrize("stop", range(40))
def test_stopped_at_any_step(tmp_path_factory, stop):
    """Epochs end at steps 6, 12, 18 …; validations at 10, 20 …"""
    stopped_and_resumed(tmp_path_factory.mktemp("golden"), {"validate_every": 10}, [stop])


@pytest.mark.one_of(2)
@pytest.mark.parametrize("settings", random.Random(4).sample(SETTINGS, 8), ids=str)
def test_stopped_often(tmp_path, settings):
    stopped_and_resumed(tmp_path, settings, [1, 4, 6, 12, 17, 25, 39])


@pytest.mark.long(0.1)
@pytest.mark.parametrize("stop", range(1, 40, 3))
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_setting(tmp_path, settings, stop):
    stopped_and_resumed(tmp_path, settings, [stop])


def test_dropout_and_data_matter(tmp_path):
    """The comparison can fail: another seed gives other weights."""
    one, other = Play(tmp_path / "one"), Play(tmp_path / "other")
    other.recipe = other.recipe.model_copy(update={"seed": 10})
    one.fit()
    other.fit()
    assert one.ended().weights != other.ended().weights
