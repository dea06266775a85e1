"""What a run costs, timed on a fake clock; and measuring changes nothing of the run."""

import pytest
import torch
from timed import Clock, SlowDisk, Timed
from toy import Corpus, Fast, Play, Toy, recipe, reseed

from regard.training.budget import Costs
from regard.training.measuring import measure
from regard.training.run import Hooks


def test_measured_exactly_on_a_fake_clock(tmp_path):
    clock = Clock()
    hooks = Hooks(reseed=reseed, clock=clock, files=SlowDisk(clock))
    costs = measure(Timed(clock), Corpus(), recipe(), tmp_path, hooks)
    assert costs == Costs(step=0.5, loss=2.0, text=14.0, save=0.25, spent=5 * 5.0 + 25 * 0.5 + 2.0 + 14.0 + 0.25)
    assert list(tmp_path.iterdir()) == []
    assert measure(Timed(Clock()), Corpus(), recipe(), tmp_path, Hooks(reseed=reseed, clock=Clock())).step == 0.0


def test_an_unlearned_model_that_does_not_stop_is_not_held_against_it(tmp_path):
    clock = Clock()
    costs = measure(Timed(clock, generated=400), Corpus(), recipe(), tmp_path, Hooks(reseed=reseed, clock=clock))
    assert costs.text == 2.0 + (14.0 - 2.0) * 100 / 400


@pytest.mark.parametrize("settings", [{}, {"ema": 0.9, "accumulate": 3, "optimiser": "adamw", "weight_decay": 0.1}])
def test_the_discarded_steps_change_nothing(tmp_path, settings):
    plain, measured = Play(tmp_path / "plain", recipe(**settings)), Play(tmp_path / "measured", recipe(**settings))
    plain.fit()
    toy = Toy()
    before = {name: tensor.clone() for name, tensor in toy.model.state_dict().items()}
    unfixed = recipe(**{**settings, "steps": None, "minutes": 1.0})
    measure(toy, Corpus(), unfixed, tmp_path, Hooks(reseed=reseed, files=Fast()))
    assert all(torch.equal(tensor, before[name]) for name, tensor in toy.model.state_dict().items())
    assert toy.model.training
    measured.fit(objective=toy)
    one, other = plain.ended(), measured.ended()
    for part in ("weights", "moments", "averages", "lines", "model"):
        assert getattr(one, part) == getattr(other, part), part
