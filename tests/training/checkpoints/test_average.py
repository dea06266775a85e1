"""Averages of weights against sums written out."""

import pytest
import torch

from regard.models import store
from regard.system.errors import Damaged, RegardError, UsageError
from regard.training.checkpoints import checkpoint
from regard.training.checkpoints.checkpoint import average, newest, weights
from tests.refusals import refused
from tests.training.toy import Fast, Play, recipe


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    play = Play(tmp_path_factory.mktemp("average") / "m", recipe(steps=15))
    play.fit()
    return play.output / "training"


def test_the_mean(training):
    places = newest(training, 3)
    assert [p.name for p in places] == ["step-000005", "step-000010", "step-000015"]
    found = average(places)
    each = [checkpoint.load(place / "weights.safetensors") for place in places]
    assert set(found) == set(each[0])
    for name, mean in found.items():
        wanted = sum(one[name].double() for one in each) / 3
        assert mean.dtype == each[0][name].dtype
        torch.testing.assert_close(mean.double(), wanted, rtol=1e-7, atol=1e-8)
    assert not torch.equal(found["embedding.weight"], each[2]["embedding.weight"])


def test_snapshots_and_files_do_too(training, tmp_path):
    snapshot = training / "snapshots" / "step-000015"
    average([snapshot, snapshot / "weights.safetensors", *newest(training, 1)])


def test_averaged_weights_are_taken_where_a_checkpoint_has_them(tmp_path):
    play = Play(tmp_path / "m", recipe(steps=4, ema=0.5))
    play.fit()
    (place,) = newest(play.output / "training", 1)
    averages, raw = checkpoint.load(place / "ema.safetensors"), checkpoint.load(place / "weights.safetensors")
    found = weights(place)
    assert torch.equal(found["norm.bias"], averages["norm.bias"])
    assert torch.equal(found["seen"], raw["seen"])


def test_what_does_not_fit_is_said(training, tmp_path):
    with refused(UsageError, "checkpoints"):
        average([])
    with refused(UsageError, "absent"):
        average([tmp_path / "absent"])
    with refused(UsageError, "training", "4", "3"):
        newest(training, 4)
    Fast().write(tmp_path / "x", store.chunks({"embedding.weight": torch.zeros(2)}))
    with refused(RegardError, "x"):
        average([*newest(training, 1), tmp_path / "x"])
    (tmp_path / "x").write_bytes(b"nonsense")
    with pytest.raises(Damaged):
        weights(tmp_path / "x")
