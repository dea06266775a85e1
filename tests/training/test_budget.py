"""``--minutes``: what fits, counted by hand on a fake clock; and measuring changes nothing of the run."""

import math

import pytest
import torch
from toy import Corpus, Fast, Play, Toy, recipe, reseed

from regard.config import Training
from regard.errors import UsageError
from regard.training.budget import Costs, length, measure, overrun
from regard.training.run import Hooks


def seconds_of(steps, every, costs, select):
    """A run played through: each step, validation and save takes its time."""
    total = costs.spent + 7 * costs.save
    for step in range(1, steps + 1):
        total += costs.step
        if step % every == 0 or step == steps:
            text = select in ("bleu", "chrf") or (select in ("auto", "last") and 2 * step > steps)
            total += (costs.text if text else costs.loss) + 2 * costs.save
    return total


@pytest.mark.parametrize("minutes", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("select", ["auto", "last", "loss", "bleu"])
@pytest.mark.parametrize("every", [None, 7, 500])
@pytest.mark.parametrize("costs", [Costs(0.05, 0.1, 1.0, 0.02, 3.0), Costs(0.9, 0.5, 4.0, 0.2, 31.0)])
def test_the_run_fits_and_fills_its_time(minutes, select, every, costs):
    found = length(minutes, costs, Training(validate_every=every, select=select))
    if every is not None:
        assert found.validate_every == every
    took = seconds_of(found.steps, found.validate_every, costs, select)
    budget = 0.9 * 60 * minutes
    assert took <= budget + 1e-6
    validation = costs.text + 2 * costs.save
    slack = costs.step + (validation if every is None else 2 * validation)
    assert took + slack > budget or math.ceil(found.steps / found.validate_every) < 20
    assert took > 0.7 * budget


def test_dear_validations_become_fewer():
    costs = Costs(0.1, 1.0, 10.0, 0.0, 0.0)
    found = length(5, costs, Training(select="bleu"))
    assert math.ceil(found.steps / found.validate_every) == 5
    found = length(5, Costs(0.1, 0.01, 0.1, 0.0, 0.0), Training(select="bleu"))
    assert math.ceil(found.steps / found.validate_every) == 20


def test_too_few_minutes_is_said():
    with pytest.raises(UsageError, match=r"training\.minutes"):
        length(0.1, Costs(0.1, 1.0, 1.0, 1.0, 10.0), Training())
    with pytest.raises(UsageError):
        length(0.1, Costs(0.1, 1.0, 1.0, 1.0, 10.0), Training(validate_every=3))


class Clock:
    """Time passes only by work, so that every measure is exact."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Timed(Toy):
    """A toy whose losses and validations take a known time."""

    def __init__(self, clock, generated=None):
        super().__init__()
        self.clock, self.calls, self.generated = clock, 0, generated

    def loss(self, batch):
        self.calls += 1
        self.clock.now += 5.0 if self.calls <= 5 else 0.5  # the first ones are slow
        return super().loss(batch)

    def validate(self, generate):
        self.clock.now += 14.0 if generate else 2.0
        found = super().validate(generate)
        if generate and self.generated:
            return type(found)(found.loss, {"bleu": 0.0}, (), self.generated, 100)
        return found


class SlowDisk(Fast):
    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def mkdir(self, path):
        self.clock.now += 0.25
        super().mkdir(path)


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


def test_an_overrun_is_said():
    assert overrun(None, 1e9) is None
    assert overrun(2.0, 120.0) is None
    assert overrun(1.0, 62.0) is None  # would read "1.0 minutes instead of 1"
    assert "3.0 minutes instead of 2" in overrun(2.0, 180.0)
