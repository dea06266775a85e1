"""``--minutes``: what fits, at the start and midway, held to runs that are played through."""

import math

import pytest

from regard.config import Training
from regard.errors import UsageError
from regard.training.budget import Costs, Length, Review, length, midway, overrun, review


def seconds_of(steps, every, costs, select, planned=None, last=None):
    """A run played through to step ``last``: each step, validation and save takes its time.

    Of a run that was planned anew, ``planned`` is how many steps it had before.
    """
    total = 7 * costs.save
    for step in range(1, (last or steps) + 1):
        total += costs.step
        known = planned if planned and step <= planned // 2 else steps
        if step % every == 0 or step == known:
            text = select in ("bleu", "chrf") or (select in ("auto", "last") and 2 * step > known)
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
    took = costs.spent + seconds_of(found.steps, found.validate_every, costs, select)
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


@pytest.mark.parametrize("slower", [0.4, 0.6, 0.8, 1.0, 1.3, 1.7])
@pytest.mark.parametrize("select", ["auto", "last", "loss", "bleu"])
@pytest.mark.parametrize("every", [None, 7, 50])
@pytest.mark.parametrize("costs", [Costs(0.05, 0.1, 1.0, 0.02, 3.0), Costs(0.4, 0.5, 9.0, 0.2, 31.0)])
def test_midway_what_is_left_of_the_time_is_filled(slower, select, every, costs):
    """To nine tenths, with dear validations still to come, on a machine of another speed than measured."""
    section = Training(validate_every=every, select=select)
    first = length(5, costs, section)
    half, plan = first.steps // 2, (first.validate_every, costs, select)
    made = slower * seconds_of(first.steps, *plan, last=half)
    found = review(5, costs, section, first, made)
    assert (found.at, found.planned) == (half, first.steps)
    ahead = slower * seconds_of(found.steps, *plan, planned=first.steps) - made
    left = 300 - costs.spent - made
    if found.steps == first.steps:
        assert ahead <= left
        return
    assert ahead <= 0.9 * left + 1e-6
    assert ahead + slower * (costs.step + 2 * costs.text + 2 * costs.save) > 0.9 * left
    assert (found.steps > first.steps) == (slower < 1.2)


@pytest.mark.parametrize(
    ("left", "steps"), [(100, 190), (101, 190), (106, 200), (111, 200), (122, 200), (123, 210), (200, 280), (600, 600)]
)
def test_a_little_more_or_less_is_no_other_plan(left, steps):
    """Of 200 steps of a second each half are made; nine tenths of what is left go on, to no more than 600 in all."""
    found = review((7 + 100 + left) / 60, Costs(1, 0, 0, 0, 7), Training(select="loss"), Length(200, 1000), 100)
    assert found == Review(100, 200, steps)
    assert found.steps - 100 <= left


def test_where_nothing_is_left_one_step_ends_it():
    found = review(1, Costs(1, 0, 0, 0, 7), Training(select="loss"), Length(40, 10), 300)
    assert found == Review(20, 40, 21)


def test_midway_is_behind_a_step():
    assert [midway(steps) for steps in (1, 2, 3, 4, 193)] == [1, 1, 1, 2, 96]


def test_an_overrun_is_said():
    assert overrun(None, 1e9) is None
    assert overrun(2.0, 120.0) is None
    assert overrun(1.0, 62.0) is None  # would read "1.0 minutes instead of 1"
    assert "3.0 minutes instead of 2" in overrun(2.0, 180.0)
