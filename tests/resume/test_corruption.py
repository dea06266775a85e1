"""A damaged checkpoint costs time, never bits: the older one is used and the run ends the same."""

import random

import pytest

from regard.system.errors import Stopped
from tests.training.toy import Play, StopAt, assert_same, flip, recipe

SETTINGS = {"steps": 20, "ema": 0.9}


@pytest.fixture(scope="module")
def never(tmp_path_factory):
    play = Play(tmp_path_factory.mktemp("never") / "model", recipe(**SETTINGS))
    play.fit()
    return play.ended()


def stopped(tmp_path):
    play = Play(tmp_path / "model", recipe(**SETTINGS))
    with pytest.raises(Stopped) as caught:
        play.fit(stop=StopAt(13))
    assert caught.value.exit_code == 75
    return play, play.output / "training" / "checkpoints"


@pytest.mark.parametrize("seed", range(5))
def test_a_flipped_bit_in_the_newest(tmp_path, never, seed):
    play, checkpoints = stopped(tmp_path)
    flip(random.Random(seed).choice(sorted((checkpoints / "step-000013").iterdir())), seed)
    play.fit()
    assert any("step-000013 is damaged" in event for event in play.reporter.events)
    assert_same(play, never)


def test_two_damaged_of_three(tmp_path, never):
    play, checkpoints = stopped(tmp_path)
    (checkpoints / "step-000013" / "weights.safetensors").write_bytes(b"")
    (checkpoints / "step-000010" / "state.json").unlink()
    play.fit()
    assert play.ended().weights == never.weights
    assert len(list(checkpoints.glob("*.corrupt-*"))) == 2
